// Collects the files whose code occurs in stacks, and the offsets in them, for which symbols are
// stored.
//
// Addresses are collected by process and matched with its mappings only when it has ended: samples
// and mappings arrive unordered, through the rings of several processors. An address is matched
// with every mapping that ever covered it in this process, also before an exec, so a name too many
// may be stored but never one too few. Files are held open where possible, because they may be
// deleted or lie in another root by the end.
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
#include "record/symbols/source_places.h"

namespace xpu {

// A file as named by the capture's mappings.
struct HitFile {
  std::string path;
  std::string build_id;
  std::vector<uint64_t> offsets;  // of instructions that occur, as offsets in the file; ascending
  UniqueFd fd;                    // empty: opened by its path
  SourceNamer namer;              // that mapped it first, if sources are wanted
  FileIdentity identity = {};
};

// Code of a process that is in no file.
struct HitCode {
  uint32_t pid = 0;
  ProcessOwner owner;
  std::string dump_path;            // of its jitdump file; empty: none
  std::vector<uint64_t> addresses;  // ascending
};

// The code for which symbols are needed.
struct OccurringCode {
  std::vector<HitFile> files;
  std::vector<HitCode> generated;
};

class HitFiles : public EventObserver, public ProcessListener {
 public:
  // Listens to the table, which outlives this object. At most `max_held` files are held open, so
  // that deleted files and files in other roots are available at the end; others are opened by path
  // then.
  // `places`: for the sources of these files; nullptr: they are not wanted.
  explicit HitFiles(ProcessTable& processes, SourcePlaces* places = nullptr,
                    size_t max_held = DefaultHeld());

  void ObserveStack(uint32_t pid, StackId stack, const NodeOf& node_of) override;
  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override;

  // Everything since the last call, with files ordered by path and build-id, code by pid. Ids of
  // stacks begin anew.
  OccurringCode Take();

 private:
  struct File {
    UniqueFd fd;
    SourceNamer namer;
    bool was_seen = false;
    std::unordered_set<uint64_t> offsets;
  };
  // The code that occurs in one process.
  struct Hits {
    std::unordered_set<uint32_t> nodes;  // stack nodes already visited
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
  SourcePlaces* places_;
  size_t max_held_;
  size_t held_ = 0;
  std::unordered_map<uint32_t, Hits> hits_;
  // Recent calls of ObserveStack: programs that launch kernels in a loop do so from few stacks.
  std::array<std::pair<uint32_t, StackId>, 256> recent_{};
  std::vector<File> files_;           // indexed by their number in the table
  size_t offsets_ = 0;                // of all files
  std::map<uint32_t, HitCode> code_;  // by pid
  size_t code_addresses_ = 0;         // of all processes
};

}  // namespace xpu
