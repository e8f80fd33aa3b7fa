// The files whose code occurs in stacks, and where in them: what symbols are stored for.
//
// Addresses are collected by process and matched with what it had mapped when it has ended, not
// when they are seen: samples and mappings come in no order, through rings of several processors.
// An address belongs to every mapping that ever covered it in this process, through exec too, so a
// name too many may be stored, and never one too few.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/base/handle.h"
#include "format/events.h"
#include "record/base/process_status.h"
#include "record/process/process_table.h"
#include "record/process/target_file.h"
#include "record/sink/event_sink.h"

namespace xpu {

// As the capture's mappings name it.
struct HitFile {
  std::string path;
  std::string build_id;
  std::vector<uint64_t> offsets;  // in the file, of instructions that occur; ascending
  UniqueFd fd;                    // none: it is to be opened by its path
  FileIdentity identity = {};
};

// Code of a process that is in no file.
struct HitCode {
  uint32_t pid = 0;
  ProcessOwner owner;
  std::string dump_path;            // of the jitdump file that it had mapped; empty: none
  std::vector<uint64_t> addresses;  // ascending
};

// What symbols are wanted for.
struct OccurringCode {
  std::vector<HitFile> files;
  std::vector<HitCode> generated;
};

class HitFiles : public EventObserver, public ProcessListener {
 public:
  // Listens to the table, which outlives this. At most so many files are held open, so that what is
  // deleted or in another root is found at the end; the others are opened by their paths then.
  explicit HitFiles(ProcessTable& processes, size_t max_held = DefaultHeld());

  void SeeStack(uint32_t pid, StackId stack, const NodeOf& node_of) override;
  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override;

  // Everything since the last call; files by path and build-id, code by pid. The ids of stacks
  // begin anew.
  OccurringCode Take();

 private:
  struct File {
    UniqueFd fd;
    bool was_seen = false;
    std::unordered_set<uint64_t> offsets;
  };
  // What occurs in one process.
  struct Hits {
    std::unordered_set<uint32_t> nodes;  // of stacks, already walked
    std::unordered_set<uint64_t> addresses;
  };

  static size_t DefaultHeld();
  File& FileOf(uint32_t number);
  void Match(uint32_t pid, Hits& hits);
  void MatchPast(const ProcessTable::Process& process, const std::vector<uint64_t>& addresses,
                 std::vector<bool>& in_file);
  std::vector<HitFile> TakeFiles();
  std::vector<HitCode> TakeCode();

  ProcessTable& processes_;
  size_t max_held_;
  size_t held_ = 0;
  std::unordered_map<uint32_t, Hits> hits_;
  // Of SeeStack: a loop that launches kernels does so from a few stacks.
  std::array<std::pair<uint32_t, StackId>, 256> recent_{};
  std::vector<File> files_;           // by their numbers in the table
  size_t offsets_ = 0;                // of all of them
  std::map<uint32_t, HitCode> code_;  // by pid
  size_t code_addresses_ = 0;         // of all of them
};

}  // namespace xpu
