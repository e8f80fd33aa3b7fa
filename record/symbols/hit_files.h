// The files whose code occurs in stacks, and where in them: what symbols are stored for.
//
// Addresses are collected by process and matched with what it had mapped when it has ended, not
// when they are seen: samples, mappings and forks come in no order, through rings of several
// processors. An address belongs to every mapping that ever covered it in this process, through
// exec too, so a name too many may be stored, and never one too few.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/base/handle.h"
#include "format/events.h"
#include "record/process/process_owner.h"
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

class HitFiles : public EventObserver {
 public:
  // At most so many files are held open, so that what is deleted or in another root is found at the
  // end; the others are opened by their paths then.
  explicit HitFiles(size_t max_held = DefaultHeld());

  struct MappedRange {
    uint32_t pid = 0;
    uint64_t address = 0;
    uint64_t size_bytes = 0;
    uint64_t file_offset = 0;
    std::string_view path;
    std::string_view build_id;
    FileIdentity identity = {};
  };
  void See(const ProcessEvent& event, std::string_view name) override;
  void See(const Mapping& mapping, std::string_view path, std::string_view build_id) override;
  void SeeMapping(const MappedRange& mapping);
  void SeeFork(uint32_t pid, uint32_t parent_pid, uint64_t time_ns);
  void SeeExit(uint32_t pid, uint64_t time_ns);
  void SeeStack(uint32_t pid, StackId stack, const NodeOf& node_of) override;
  // Once a round, behind its events: processes that ended before the round before it are done with.
  void EndRound();

  // Both.
  OccurringCode Take();
  // Everything since the last call; files by path and build-id, then code by pid. The ids of stacks
  // begin anew.
  std::vector<HitFile> TakeFiles();
  std::vector<HitCode> TakeCode();

  // Mappings for which there was no room since the last call: symbols of theirs may be missing.
  uint64_t TakeDropped() { return std::exchange(dropped_, 0); }

 private:
  struct Range {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t file_offset = 0;
    uint32_t file = 0;  // index; kNoFile
    auto operator<=>(const Range&) const = default;
  };
  static constexpr uint32_t kNoFile = UINT32_MAX;
  static constexpr size_t kFirstMerge = 1024;
  struct File {
    UniqueFd fd;
    FileIdentity identity;
    std::unordered_set<uint64_t> offsets;
  };
  struct Process {
    std::vector<Range> ranges;
    size_t merge_at = kFirstMerge;  // so many ranges: equal ones become one
    uint64_t mappings_seen = 0;
    ProcessOwner owner;
    std::string dump_path;
    std::unordered_set<uint32_t> nodes;  // of stacks, already walked
    std::unordered_set<uint64_t> addresses;
    uint32_t parent = 0;
    uint64_t forked_ns = 0;
    uint64_t ended_round = 0;  // 0: it runs
  };

  static size_t DefaultHeld();
  uint32_t FileOf(const MappedRange& mapping);
  bool HasRoom(Process& process);
  void Match(uint32_t pid, Process& process);
  void FindEnded();
  void MatchRanges(const std::vector<Range>& ranges, const std::vector<uint64_t>& addresses,
                   std::vector<bool>& in_file);

  size_t max_held_;
  size_t held_ = 0;
  uint64_t round_ = 1;
  size_t all_ranges_ = 0;  // of all processes
  uint64_t dropped_ = 0;
  std::unordered_map<uint32_t, Process> processes_;
  // Of SeeStack: a loop that launches kernels does so from a few stacks.
  std::array<std::pair<uint32_t, StackId>, 256> recent_{};
  std::unordered_set<uint32_t> ended_;                           // pids in processes_
  std::map<std::pair<std::string, std::string>, uint32_t> ids_;  // by path and build-id
  std::vector<File> files_;
  size_t offsets_ = 0;                // of all of them
  std::map<uint32_t, HitCode> code_;  // by pid
  size_t code_addresses_ = 0;         // of all of them
};

}  // namespace xpu
