// Handles the launch stacks that one injected library takes inside its process: turns its messages
// into events and answers its questions (cupti_inject/wire.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cupti_inject/wire_stacks.h"
#include "record/base/fair_budget.h"
#include "record/gpu/code_ranges.h"
#include "record/gpu/inject_server.h"
#include "record/gpu/inline_python.h"
#include "record/gpu/stack_copies.h"
#include "record/process/process_maps.h"
#include "record/process/process_table.h"
#include "record/process/process_tracker.h"
#include "record/sink/event_sink.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/table_arena.h"

namespace xpu {

// Messages are untrusted: Take... returns false if one is invalid.
class InlineStacks {
 public:
  using Bytes = std::span<const std::byte>;

  struct Settings {
    SharedTables* tables = nullptr;  // nullptr: no stacks are taken in the process
    ProcessTable* processes = nullptr;
    ProcessTracker* tracker = nullptr;  // used if the kernel does not report threads and mappings
    PythonFiles* python = nullptr;      // nullptr: without Python stacks
  };

  // `header`: of the peer's ring. `memory`: of the process. Both outlive this object. Reads what is
  // mapped now, while the process has only begun to load the library.
  InlineStacks(const Settings& settings, uint32_t pid, InstanceId instance,
               wire::RingHeader& header, FairBudget::Account& memory);

  bool are_taken() const { return settings_.tables != nullptr; }
  bool TakeCodeFile(Bytes message);
  bool TakeCodeFileGone(Bytes message);
  bool TakeCodeFilesComplete(Bytes message);
  bool TakeStack(Bytes message);
  bool TakeLaunch(Bytes message, EventSink& sink);
  bool TakeStackCopy(Bytes message);
  bool TakeBlock(Bytes message, EventSink& sink);
  bool TakeOtherCode(Bytes message);
  bool TakePythonCode(Bytes message, EventSink& sink) { return python_.TakeCode(message, sink); }
  bool TakePythonStack(Bytes message) { return python_.TakeStack(message); }

  // Called after the messages of a round: answers questions and walks copies that need not wait.
  void Update(EventSink& sink);
  // The process has ended, so nothing is read from /proc for it.
  void EndProcess() { process_ended_ = true; }
  // True while stacks wait for a table. Finish walks them with what is there.
  bool waits() const { return !copies_.empty(); }
  void Finish(EventSink& sink);

 private:
  struct Stack {
    StackWalk walk;
    std::vector<uint64_t> frames;
    StackId id{};         // valid in the tables of that number
    uint64_t tables = 0;  // 0: none
    // Estimated memory, including the entry in the table.
    uint64_t Cost() const { return 64 + sizeof(*this) + frames.size() * sizeof(uint64_t); }
  };
  struct File {
    UnwindTables::Id table = 0;
    uint32_t location = wire::kTablePending;
    bool known = false;
  };
  struct NewFile {
    CodeRange range;
    uint64_t start = 0;
    uint64_t file_offset = 0;
    std::string build_id;
    std::string name;
  };

  // True if `map` has the key or the budget allows another entry.
  template <typename Map>
  bool HasRoomFor(const Map& map, uint64_t key);
  void ChargeCopies();
  void UpdateProcess(EventSink& sink);
  void ReportCode(const ProcessMapping& mapping, const std::string& build_id, EventSink& sink);
  ProcessMapping MappingOf(const NewFile& file) const;
  void AddFile(const NewFile& file, const ProcessMapping& mapping, EventSink& sink);
  bool WasReplaced(const NewFile& file, const ProcessMapping& mapping) const;
  // Returns true if there are new tables.
  bool AnswerTables();
  void AnswerQuestions();
  void AddOtherCode(uint64_t start_address, uint64_t end_address);
  CodeKind FindRule(const CodeRanges::Version& code, uint64_t address, UnwindRule* rule) const;
  void WalkCopies(EventSink& sink, bool last);
  void ReportThread(uint32_t tid, EventSink& sink);
  StackId IdOf(Stack& stack, EventSink& sink);
  void Write(const wire::LaunchCall& call, const std::optional<wire::Block>& block, Stack& stack,
             EventSink& sink);
  AllocatorEvent EventOf(const wire::LaunchCall& call, const wire::Block& block) const;

  Settings settings_;
  uint32_t pid_;
  InstanceId instance_;
  wire::RingHeader& header_;
  FairBudget::Account& memory_;
  bool process_ended_ = false;

  InlinePython python_;
  std::vector<NewFile> new_files_;
  uint32_t loads_reported_ = 0;
  std::vector<File> files_;  // by number
  CodeRanges ranges_;
  std::vector<uint64_t> questions_;
  std::map<uint64_t, uint64_t> other_code_;  // from start to end

  ChargedTable<Stack> stacks_{memory_};
  StackCopies copies_;
  uint64_t copy_bytes_ = 0;       // charged to `memory_` for copies
  bool copies_have_room_ = true;  // if false, copies do not wait
  bool new_copies_ = false;
  uint64_t next_walk_ns_ = 0;
  std::unordered_set<uint32_t> threads_;  // reported ones
  uint32_t last_thread_ = 0;              // the last of these, tested first
  std::vector<Frame> frames_;
};

}  // namespace xpu
