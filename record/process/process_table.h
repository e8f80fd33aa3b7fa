// The processes of a recording: their names, the code that they have mapped, and when they forked,
// called exec and ended. Only this table follows them: stacks, symbols, Python, probes and the GPU
// side query it and are notified of changes.
//
// It observes events on their way into the capture, so it knows what the capture knows, whichever
// source reported it; when the capture continues in another part, it repeats the live processes.
// The kernel's records come from one ring per CPU, unordered among the rings, so they are noted
// first and applied by EndRound in order of time. Processes share an address space, and the list of
// what they ever had mapped, until one of them changes it: a fork costs a pointer. One follower in
// each module was rejected, because they disagreed about when a process had ended.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/events.h"
#include "format/live_state.h"
#include "record/base/process_status.h"
#include "record/process/mapped_file.h"
#include "record/process/target_file.h"
#include "record/sink/event_sink.h"

namespace xpu {

// One executable mapping; the key is its start.
struct CodeMapping {
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint64_t time_ns = 0;
  uint32_t file = 0;  // number for ProcessTable::file
  uint32_t tid = 0;   // that mapped it
  uint32_t protection = 0;
  uint32_t flags = 0;
  bool is_amended = false;  // found by ProcessTable::Amend: an event for it may follow
};

// What one process has mapped at a given time, by start address. Mappings do not overlap.
class AddressSpace {
 public:
  static constexpr size_t kMaxMappings = 65536;

  // `total`: counts the mappings of all address spaces; outlives this object.
  explicit AddressSpace(size_t& total) : total_(&total) {}
  AddressSpace(const AddressSpace& other) : mappings_(other.mappings_), total_(other.total_) {
    *total_ += mappings_.size();
  }
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace() { *total_ -= mappings_.size(); }

  // Replaces the mappings that the new one overlaps. Returns false if there are too many mappings.
  bool Add(uint64_t start, const CodeMapping& mapping);
  const std::map<uint64_t, CodeMapping>& mappings() const { return mappings_; }

 private:
  bool AddTo(uint64_t start, const CodeMapping& mapping);

  std::map<uint64_t, CodeMapping> mappings_;
  size_t* total_;
};

// A mapping that a process had at any time, also before its exec and in its ancestors.
struct PastMapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint32_t file = 0;
  auto operator<=>(const PastMapping&) const = default;
};

// Notified by ProcessTable::EndRound in order of time. Listeners must not write events.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  virtual void OnFork(uint32_t /*parent_pid*/, uint32_t /*pid*/) {}
  virtual void OnExec(uint32_t /*pid*/) {}
  // Code of a file is about to be replaced by code that may be generated: the part of its mapping
  // that is covered.
  virtual void OnReplace(uint32_t /*pid*/, uint64_t /*start*/, const CodeMapping& /*file*/) {}
  // The address space already holds the mapping, if it is current and fits.
  virtual void OnMapping(uint32_t /*pid*/, uint64_t /*start*/, const CodeMapping& /*mapping*/) {}
  // The process ended some time ago, so that its last samples have been recorded, or its pid was
  // reused. The table still holds it during the call.
  virtual void OnEnd(uint32_t /*pid*/) {}
};

class ProcessTable : public EventObserver, public LiveState {
 public:
  // Threads and mappings beyond these limits are in the capture once, but not repeated in later
  // parts.
  static constexpr size_t kMaxThreads = 65536;
  static constexpr size_t kMaxFiles = 65536;
  // For all processes together. Shared mappings count once.
  static constexpr size_t kMaxMappings = size_t{1} << 22;
  static constexpr size_t kMaxPastMappings = size_t{1} << 23;
  static constexpr size_t kMaxPastMappingsOfProcess = 65536;

  // What mappings refer to: files, "[vdso]", "//anon".
  struct File {
    std::string path;
    std::string build_id;  // raw bytes; empty: unknown
    FileIdentity identity;
    bool holds_code = false;  // a file or the vdso, not anonymous memory
    // An ELF file has a build-id, nearly always.
    bool may_be_generated() const {
      return !holds_code || (build_id.empty() && MayBeGeneratedCode(path));
    }
  };

  struct Thread {
    uint32_t tid = 0;
    uint32_t parent_pid = 0;
    uint32_t parent_tid = 0;
    char name[16] = {};
    uint64_t time_ns = 0;  // when the thread got this name
  };

  class PastMappings;

  struct Process {
    std::vector<Thread> threads;  // by tid
    std::shared_ptr<AddressSpace> code;
    std::shared_ptr<PastMappings> past;  // nullptr: none, or not needed
    uint32_t parent_pid = 0;
    uint32_t dump_file = 0;  // the jitdump that it has mapped; 0: none
    uint32_t mappings_seen = 0;
    ProcessOwner owner;
    uint64_t fork_ns = 0;
    uint64_t exec_ns = 0;
    uint64_t mapping_ns = 0;         // of the latest mapping
    uint64_t exit_ns = 0;            // 0: it still runs
    bool main_thread_ended = false;  // others may go on

    // The name of its main thread; empty if unknown.
    std::string_view name(uint32_t pid) const;
  };

  // `for_symbols`: also keep past mappings and owners, which only symbols need.
  explicit ProcessTable(bool for_symbols = true) : for_symbols_(for_symbols) {}
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // The listener must outlive the table's use. Listeners are called in the order in which they were
  // added.
  void AddListener(ProcessListener* listener) { listeners_.push_back(listener); }
  void RemoveListeners() { listeners_.clear(); }

  void Observe(const ProcessEvent& event, std::string_view name) override;
  void Observe(const Mapping& mapping, std::string_view path, std::string_view build_id) override;
  // Adds code that was found in a process and is in no event, or in one that has not arrived.
  void Amend(const Mapping& mapping, std::string_view path, std::string_view build_id);

  // Applies the noted events in order of time.
  void ApplyNotes();
  // Does the same, then removes processes that ended some time ago.
  void EndRound(uint64_t now_ns);
  // When a mapping was last noted; CLOCK_MONOTONIC.
  uint64_t last_change_ns() const { return last_change_ns_; }

  // nullptr if the process is unknown or has ended.
  const Process* Find(uint32_t pid) const;
  const File& file(uint32_t number) const { return files_[number]; }
  size_t file_count() const { return files_.size(); }
  // The code at an address of a process; nullptr if none is known.
  const std::pair<const uint64_t, CodeMapping>* FindCode(uint32_t pid, uint64_t address) const;
  // True if the mapping belongs to the program that the process runs now, not to one before its
  // exec.
  bool IsCurrent(uint32_t pid, const CodeMapping& mapping) const {
    const Process* process = Find(pid);
    return process != nullptr && mapping.time_ns >= process->exec_ns;
  }
  // Writes a mapping that the kernel does not report, and applies it at once.
  void WriteMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping, EventSink& sink);
  // How the recorder can find the file of a mapping. No paths if it is not a file.
  MappedFile MappedFileOf(uint32_t pid, uint64_t start, const CodeMapping& mapping) const;
  template <typename Visit>
  void ForEachProcess(Visit&& visit) const {
    for (const auto& [pid, process] : processes_) visit(pid, process);
  }
  // Calls visit(past_mapping) for each mapping that the process ever had, some more than once.
  template <typename Visit>
  static void ForEachPastMapping(const Process& process, Visit&& visit);
  // Reads the owner of the process again; the process must not have ended.
  void UpdateOwner(uint32_t pid);

  // LiveState. Applies the noted events first.
  void ForEach(const TakeProcess& take_process, const TakeMapping& take_mapping) override;

  // Counts since the last call: mappings that did not fit into address spaces, and past mappings
  // that symbols will miss.
  uint64_t TakeMappingsRefused() { return std::exchange(mappings_refused_, 0); }
  uint64_t TakePastMappingsDropped() { return std::exchange(past_dropped_, 0); }

 private:
  struct Note {
    enum class Kind : uint8_t { kThread, kFork, kExec, kExit, kMapping };
    Kind kind = Kind::kThread;
    bool names_parent = false;  // for kThread
    uint32_t pid = 0;
    uint32_t parent_pid = 0;
    uint32_t parent_tid = 0;
    char name[16] = {};
    uint64_t time_ns = 0;
    uint64_t start = 0;
    CodeMapping mapping;  // its tid is used by all kinds
  };
  struct Exit {
    uint32_t pid;
    uint64_t since_ns;
  };

  uint32_t FileOf(const Mapping& mapping, std::string_view path, std::string_view build_id);
  void Apply(const Note& note);
  void AddThread(Process& process, const Note& note);
  void Fork(const Note& note);
  void Inherit(Process& child, Process& parent);
  void Exec(const Note& note);
  void End(const Note& note);
  void Map(const Note& note);
  // The mapping as an event, without its strings.
  Mapping EventOf(uint32_t pid, uint64_t start, const CodeMapping& mapping) const;
  void ReportReplaced(const Note& note, const AddressSpace& code) const;
  void Remember(Process& process, const Note& note);
  void EraseThreads(Process& process);
  void Forget(uint32_t pid);
  void FindEnded(uint64_t now_ns);
  AddressSpace& Own(std::shared_ptr<AddressSpace>& code);

  const bool for_symbols_;
  std::vector<ProcessListener*> listeners_;
  std::vector<Note> notes_;
  std::vector<File> files_ = std::vector<File>(1);  // indexed by number
  std::unordered_map<std::string, uint32_t> file_numbers_;
  size_t mapping_count_ = 0;  // declared before the processes, whose destructors decrease it
  size_t past_count_ = 0;
  size_t thread_count_ = 0;
  std::unordered_map<uint32_t, Process> processes_;
  std::vector<Exit> exits_;
  uint64_t now_ns_ = 0;  // time of the last round
  uint64_t rounds_ = 0;
  uint64_t last_change_ns_ = 0;
  uint64_t mappings_refused_ = 0;
  uint64_t past_dropped_ = 0;
};

// A list of mappings. Related processes share its beginning.
class ProcessTable::PastMappings {
 public:
  PastMappings(size_t& total, std::shared_ptr<const PastMappings> older)
      : total_(&total), older_(std::move(older)), depth_(older_ ? older_->depth_ + 1 : 0) {}
  PastMappings(const PastMappings&) = delete;
  PastMappings& operator=(const PastMappings&) = delete;
  ~PastMappings() { *total_ -= own_.size(); }

  // Returns false if there are too many different mappings.
  bool Add(const PastMapping& mapping);
  // Splits the list so that two processes can share what it holds now.
  static std::shared_ptr<PastMappings> Share(std::shared_ptr<PastMappings>& past);
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const PastMappings* list = this; list != nullptr; list = list->older_.get()) {
      for (const PastMapping& mapping : list->own_) visit(mapping);
    }
  }

 private:
  static constexpr size_t kFirstMerge = 1024;
  static constexpr uint32_t kMaxDepth = 64;
  void Merge();

  size_t* total_;
  std::shared_ptr<const PastMappings> older_;
  uint32_t depth_;
  std::vector<PastMapping> own_;
  size_t merge_at_ = kFirstMerge;  // number of own mappings at which equal ones are merged
};

template <typename Visit>
void ProcessTable::ForEachPastMapping(const Process& process, Visit&& visit) {
  if (process.past) process.past->ForEach(visit);
}

}  // namespace xpu
