#include "record/process/process_table.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

#include "format/base/file.h"
#include "format/base/path.h"
#include "record/base/clock.h"

namespace xpu {
namespace {

// After its main thread has ended, others may still run, and its last samples are on their way.
constexpr uint64_t kLingerNs = 2'000'000'000;
// Processes known only from late mappings have no end event, so they are searched for now and then.
constexpr uint64_t kRoundsBetweenSearches = 20000;

// perf's convention: a JIT maps its dump as if it were code; the number is the process's own pid.
bool IsJitDump(std::string_view path) {
  const std::string_view name = FileNameOf(path);
  constexpr std::string_view kBefore = "jit-", kAfter = ".dump";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return false;
  const std::string_view number = name.substr(
      kBefore.size(), name.size() - std::min(name.size(), kBefore.size() + kAfter.size()));
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

template <size_t kSize>
void CopyName(char (&to)[kSize], std::string_view name) {
  name = name.substr(0, kSize - 1);  // the kernel's limit
  std::memset(to, 0, kSize);
  std::copy(name.begin(), name.end(), to);
}

// The first thread whose tid is not below `tid`; `threads` is sorted by tid.
template <typename Threads>
auto LowerBound(Threads& threads, uint32_t tid) {
  return std::lower_bound(threads.begin(), threads.end(), tid,
                          [](const auto& thread, uint32_t wanted) { return thread.tid < wanted; });
}

template <typename Threads>
auto FindThread(Threads& threads, uint32_t tid) {
  const auto found = LowerBound(threads, tid);
  return found != threads.end() && found->tid == tid ? &*found : nullptr;
}

bool IsGone(uint32_t pid) { return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

}  // namespace

// ---- address spaces -----------------------------------------------------------------------------

bool AddressSpace::Add(uint64_t start, const CodeMapping& mapping) {
  const size_t before = mappings_.size();
  const bool added = AddTo(start, mapping);
  *total_ += mappings_.size() - before;
  return added;
}

bool AddressSpace::AddTo(uint64_t start, const CodeMapping& mapping) {
  auto next = mappings_.lower_bound(start);
  if (next != mappings_.begin()) {
    auto& [before_start, before] = *std::prev(next);
    if (before.end > start) {
      const CodeMapping whole = before;
      before.end = start;
      if (whole.end > mapping.end) {  // leaves a gap in the middle
        CodeMapping rest = whole;
        rest.file_offset += mapping.end - before_start;
        mappings_.emplace(mapping.end, rest);
        next = mappings_.lower_bound(start);
      }
    }
  }
  while (next != mappings_.end() && next->first < mapping.end) {
    if (next->second.end > mapping.end) {
      CodeMapping rest = next->second;
      rest.file_offset += mapping.end - next->first;
      mappings_.emplace(mapping.end, rest);
    }
    next = mappings_.erase(next);
  }
  if (mappings_.size() >= kMaxMappings) return false;
  mappings_.emplace(start, mapping);
  return true;
}

// ---- past mappings ------------------------------------------------------------------------------

bool ProcessTable::PastMappings::Add(const PastMapping& mapping) {
  if (own_.size() >= merge_at_) Merge();
  if (own_.size() >= kMaxPastMappingsOfProcess || *total_ >= kMaxPastMappings) return false;
  own_.push_back(mapping);
  ++*total_;
  return true;
}

// A program that maps the same code repeatedly has many equal mappings. They are merged whenever
// there are twice as many as remained the last time.
void ProcessTable::PastMappings::Merge() {
  const size_t before = own_.size();
  for (const PastMappings* list = older_.get(); list != nullptr; list = list->older_.get()) {
    own_.insert(own_.end(), list->own_.begin(), list->own_.end());
  }
  older_.reset();
  depth_ = 0;
  std::sort(own_.begin(), own_.end());
  own_.erase(std::unique(own_.begin(), own_.end()), own_.end());
  *total_ += own_.size() - before;
  merge_at_ = std::clamp(2 * own_.size(), kFirstMerge, kMaxPastMappingsOfProcess);
  // They differ, so sorting them for each new mapping would gain little.
  if (own_.size() > kMaxPastMappingsOfProcess / 8 * 7) merge_at_ = SIZE_MAX;
}

std::shared_ptr<ProcessTable::PastMappings> ProcessTable::PastMappings::Share(
    std::shared_ptr<PastMappings>& past) {
  if (!past) return nullptr;
  size_t& total = *past->total_;
  if (past->own_.empty()) return std::make_shared<PastMappings>(total, past->older_);
  // Keeps chains short, for searches and for the destructor of the last owner.
  if (past->depth_ >= kMaxDepth) past->Merge();
  const std::shared_ptr<const PastMappings> shared = std::move(past);
  past = std::make_shared<PastMappings>(total, shared);
  return std::make_shared<PastMappings>(total, shared);
}

// ---- notes --------------------------------------------------------------------------------------

uint32_t ProcessTable::FileOf(const Mapping& mapping, std::string_view path,
                              std::string_view build_id) {
  std::string key;
  key.reserve(path.size() + build_id.size() + 2 + sizeof(FileIdentity));
  key.append(path).push_back('\0');
  key.append(build_id).push_back('\0');
  const FileIdentity identity{PackedDevice(mapping.device_major, mapping.device_minor),
                              mapping.inode};
  key.append(reinterpret_cast<const char*>(&identity), sizeof(identity));
  if (const auto known = file_numbers_.find(key); known != file_numbers_.end()) {
    return known->second;
  }
  if (files_.size() > kMaxFiles) return 0;
  const auto number = static_cast<uint32_t>(files_.size());
  files_.push_back({.path = std::string(path),
                    .build_id = std::string(build_id),
                    .identity = identity,
                    .holds_code = IsFilePath(path) || path == kVdso});
  file_numbers_.emplace(std::move(key), number);
  return number;
}

void ProcessTable::Observe(const ProcessEvent& event, std::string_view name) {
  Note note;
  note.time_ns = event.time_ns;
  note.pid = event.pid;
  note.parent_pid = event.parent_pid;
  note.parent_tid = event.parent_tid;
  note.mapping.tid = event.tid;
  CopyName(note.name, name);
  switch (event.kind) {
    case ProcessEventKind::kExisting:
      note.names_parent = true;
      break;
    case ProcessEventKind::kName:
      break;
    case ProcessEventKind::kFork:
      note.kind = Note::Kind::kFork;
      break;
    case ProcessEventKind::kExec:
      note.kind = Note::Kind::kExec;
      break;
    case ProcessEventKind::kExit:
      note.kind = Note::Kind::kExit;
      break;
  }
  // Threads share the mappings of their process.
  const bool is_of_process = note.kind == Note::Kind::kExec || event.pid == event.tid;
  if (note.kind != Note::Kind::kThread && is_of_process) last_change_ns_ = MonotonicNs();
  notes_.push_back(note);
}

void ProcessTable::Observe(const Mapping& mapping, std::string_view path,
                           std::string_view build_id) {
  Note note;
  note.kind = Note::Kind::kMapping;
  note.time_ns = mapping.time_ns;
  note.pid = mapping.pid;
  note.start = mapping.start_address;
  note.mapping = {.end = mapping.start_address + mapping.size_bytes,
                  .file_offset = mapping.file_offset,
                  .time_ns = mapping.time_ns,
                  .file = FileOf(mapping, path, build_id),
                  .tid = mapping.tid,
                  .protection = mapping.protection,
                  .flags = mapping.flags};
  notes_.push_back(note);
  last_change_ns_ = MonotonicNs();
}

void ProcessTable::Amend(const Mapping& mapping, std::string_view path, std::string_view build_id) {
  Observe(mapping, path, build_id);
  notes_.back().mapping.is_amended = true;
}

void ProcessTable::EndRound(uint64_t now_ns) {
  now_ns_ = now_ns;
  ApplyNotes();
  if (++rounds_ % kRoundsBetweenSearches == 0) FindEnded(now_ns);
  for (size_t i = 0; i < exits_.size();) {
    Exit& exit = exits_[i];
    const auto process = processes_.find(exit.pid);
    const bool is_over = process == processes_.end() || process->second.exit_ns == 0;
    if (!is_over && now_ns - exit.since_ns < kLingerNs) {
      ++i;
    } else if (!is_over && !IsGone(exit.pid)) {  // only its main thread has ended
      exit.since_ns = now_ns;
      ++i;
    } else {
      const uint32_t pid = exit.pid;
      exits_[i] = exits_.back();
      exits_.pop_back();
      if (!is_over) Forget(pid);
    }
  }
}

void ProcessTable::FindEnded(uint64_t now_ns) {
  for (auto& [pid, process] : processes_) {
    if (process.exit_ns != 0 || !IsGone(pid)) continue;
    EraseThreads(process);
    process.exit_ns = now_ns;
    exits_.push_back({pid, now_ns});
  }
}

void ProcessTable::ApplyNotes() {
  std::stable_sort(notes_.begin(), notes_.end(),
                   [](const Note& a, const Note& b) { return a.time_ns < b.time_ns; });
  for (const Note& note : notes_) Apply(note);
  // Large only after many processes started at once; otherwise the memory is used again.
  if (notes_.size() > 4096) notes_.shrink_to_fit();
  notes_.clear();
}

void ProcessTable::Apply(const Note& note) {
  switch (note.kind) {
    case Note::Kind::kThread:
      return AddThread(processes_[note.pid], note);
    case Note::Kind::kFork:
      return Fork(note);
    case Note::Kind::kExec:
      return Exec(note);
    case Note::Kind::kExit:
      return End(note);
    case Note::Kind::kMapping:
      return Map(note);
  }
}

// ---- processes ----------------------------------------------------------------------------------

std::string_view ProcessTable::Process::name(uint32_t pid) const {
  const Thread* main = FindThread(threads, pid);
  return main != nullptr ? main->name : std::string_view();
}

void ProcessTable::AddThread(Process& process, const Note& note) {
  const uint32_t tid = note.mapping.tid;
  Thread* thread = FindThread(process.threads, tid);
  const bool is_known = thread != nullptr;
  if (!is_known) {
    if (process.exit_ns != 0 || thread_count_ >= kMaxThreads) return;
    ++thread_count_;
    thread = &*process.threads.insert(LowerBound(process.threads, tid), Thread{.tid = tid});
  }
  // A given name holds from its own time on, the parent from the first event on.
  thread->time_ns = note.time_ns;
  if (!is_known || note.names_parent) {
    thread->parent_pid = note.parent_pid;
    thread->parent_tid = note.parent_tid;
  }
  std::memcpy(thread->name, note.name, sizeof(note.name));
}

// A child begins as a copy of its parent: with its name and, if it is a process, its code.
void ProcessTable::Fork(const Note& note) {
  Note begin = note;
  begin.names_parent = true;
  if (const auto parent = processes_.find(note.parent_pid); parent != processes_.end()) {
    const Thread* thread = FindThread(parent->second.threads, note.parent_tid);
    if (thread != nullptr) std::memcpy(begin.name, thread->name, sizeof(begin.name));
  }
  if (note.pid == note.parent_pid) return AddThread(processes_[note.pid], begin);

  const auto old = processes_.find(note.pid);
  // Reported late by the ring of another CPU: what the child has done since then is kept.
  const bool is_late = old != processes_.end() && old->second.fork_ns == 0 &&
                       old->second.exit_ns == 0 &&
                       std::max(old->second.exec_ns, old->second.mapping_ns) > note.time_ns;
  if (old != processes_.end() && !is_late) Forget(note.pid);  // the pid was reused
  Process& child = processes_[note.pid];
  child.fork_ns = note.time_ns;
  child.parent_pid = note.parent_pid;
  if (child.exec_ns == 0) {
    child.owner.began_unix_ns = UnixNsOf(note.time_ns);
    AddThread(child, begin);
  }
  if (const auto parent = processes_.find(note.parent_pid); parent != processes_.end()) {
    Inherit(child, parent->second);
  }
  if (child.exec_ns != 0) return;
  for (ProcessListener* listener : listeners_) listener->OnFork(note.parent_pid, note.pid);
}

void ProcessTable::Inherit(Process& child, Process& parent) {
  if (!child.owner.user) child.owner.user = parent.owner.user;
  if (child.exec_ns == 0) {
    const auto own = std::exchange(child.code, parent.code);
    if (own) {
      AddressSpace& code = Own(child.code);
      for (const auto& [start, mapping] : own->mappings()) code.Add(start, mapping);
    }
  }
  const auto own = std::exchange(child.past, PastMappings::Share(parent.past));
  if (own && !child.past) {
    child.past = own;
  } else if (own) {
    own->ForEach([&](const PastMapping& past) {
      if (!child.past->Add(past)) ++past_dropped_;
    });
  }
}

void ProcessTable::EraseThreads(Process& process) {
  if (process.exit_ns == 0) thread_count_ -= process.threads.size();
  process.threads.clear();
}

// The thread that called exec becomes the main thread.
void ProcessTable::Exec(const Note& note) {
  Process& process = processes_[note.pid];
  Note begin = note;
  begin.mapping.tid = note.pid;
  const Thread* thread = FindThread(process.threads, note.pid);
  if (begin.parent_pid == 0 && thread != nullptr) {
    begin.parent_pid = thread->parent_pid;
    begin.parent_tid = thread->parent_tid;
  }
  EraseThreads(process);
  process.main_thread_ended = false;
  process.exit_ns = 0;  // not 0 if another thread than the first one called exec
  AddThread(process, begin);
  process.exec_ns = note.time_ns;
  process.owner.began_unix_ns = UnixNsOf(note.time_ns);
  process.code.reset();
  for (ProcessListener* listener : listeners_) listener->OnExec(note.pid);
}

void ProcessTable::End(const Note& note) {
  const auto found = processes_.find(note.pid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  // From the previous process with this pid, or already known.
  if (note.time_ns < process.fork_ns || process.exit_ns != 0) return;
  if (note.mapping.tid == note.pid) {
    process.main_thread_ended = true;
  } else {
    const auto ends = [&](const Thread& thread) { return thread.tid == note.mapping.tid; };
    thread_count_ -= std::erase_if(process.threads, ends);
  }
  if (!process.main_thread_ended) return;
  const auto is_other = [&](const Thread& thread) { return thread.tid != note.pid; };
  if (std::ranges::any_of(process.threads, is_other) && LivingThread(note.pid) != note.pid) return;
  // Of an ended thread only the name is needed.
  thread_count_ -= process.threads.size();
  std::erase_if(process.threads, is_other);
  process.exit_ns = note.time_ns;
  exits_.push_back({note.pid, now_ns_});
}

void ProcessTable::Forget(uint32_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  for (ProcessListener* listener : listeners_) listener->OnEnd(pid);
  EraseThreads(found->second);
  processes_.erase(found);
}

// ---- mappings -----------------------------------------------------------------------------------

AddressSpace& ProcessTable::Own(std::shared_ptr<AddressSpace>& code) {
  if (!code) {
    code = std::make_shared<AddressSpace>(mapping_count_);
  } else if (code.use_count() > 1) {
    code = std::make_shared<AddressSpace>(*code);
  }
  return *code;
}

void ProcessTable::Map(const Note& note) {
  Process& process = processes_[note.pid];
  process.mapping_ns = std::max(process.mapping_ns, note.time_ns);
  if (for_symbols_) Remember(process, note);
  if (note.mapping.end <= note.start) return;
  if (note.time_ns >= process.exec_ns) {  // otherwise it belongs to the previous address space
    if (process.code) ReportReplaced(note, *process.code);
    const bool has_room = mapping_count_ < kMaxMappings;
    if (!has_room || !Own(process.code).Add(note.start, note.mapping)) ++mappings_refused_;
  }
  for (ProcessListener* listener : listeners_) {
    listener->OnMapping(note.pid, note.start, note.mapping);
  }
}

void ProcessTable::ReportReplaced(const Note& note, const AddressSpace& code) const {
  if (!files_[note.mapping.file].may_be_generated()) return;
  auto at = code.mappings().upper_bound(note.start);
  if (at != code.mappings().begin()) --at;
  for (; at != code.mappings().end() && at->first < note.mapping.end; ++at) {
    if (at->second.end <= note.start || files_[at->second.file].may_be_generated()) continue;
    const uint64_t start = std::max(at->first, note.start);
    CodeMapping covered = at->second;
    covered.file_offset += start - at->first;
    covered.end = std::min(covered.end, note.mapping.end);
    for (ProcessListener* listener : listeners_) listener->OnReplace(note.pid, start, covered);
  }
}

void ProcessTable::Remember(Process& process, const Note& note) {
  const File& file = files_[note.mapping.file];
  const bool is_dump = IsJitDump(file.path);
  // Repeated at growing intervals: some processes begin as root and continue as another user.
  if (is_dump || std::has_single_bit(++process.mappings_seen)) UpdateOwner(note.pid);
  if (is_dump) process.dump_file = note.mapping.file;
  if (note.mapping.end <= note.start) return;
  if (note.mapping.file == 0) ++past_dropped_;
  if (!file.holds_code) return;
  if (!process.past) process.past = std::make_shared<PastMappings>(past_count_, nullptr);
  if (!process.past->Add(
          {note.start, note.mapping.end, note.mapping.file_offset, note.mapping.file})) {
    ++past_dropped_;
  }
}

void ProcessTable::UpdateOwner(uint32_t pid) {
  auto owner = OwnerOf(pid);
  if (!owner) return;
  ProcessOwner& known = processes_[pid].owner;
  // The kernel's records are exact, and also say when it ran another program.
  const uint64_t began_unix_ns = known.began_unix_ns != 0 ? known.began_unix_ns : BeganUnixNs(pid);
  known = *owner;
  known.began_unix_ns = began_unix_ns;
}

// ---- questions ----------------------------------------------------------------------------------

const ProcessTable::Process* ProcessTable::Find(uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second;
}

const std::pair<const uint64_t, CodeMapping>* ProcessTable::FindCode(uint32_t pid,
                                                                     uint64_t address) const {
  const Process* process = Find(pid);
  if (process == nullptr || !process->code) return nullptr;
  const auto& mappings = process->code->mappings();
  const auto after = mappings.upper_bound(address);
  if (after == mappings.begin()) return nullptr;
  const auto& found = *std::prev(after);
  return address < found.second.end ? &found : nullptr;
}

Mapping ProcessTable::EventOf(uint32_t pid, uint64_t start, const CodeMapping& mapping) const {
  const FileIdentity& identity = files_[mapping.file].identity;
  Mapping event;
  event.time_ns = mapping.time_ns;
  event.pid = pid;
  event.tid = mapping.tid;
  event.start_address = start;
  event.size_bytes = mapping.end - start;
  event.file_offset = mapping.file_offset;
  event.protection = mapping.protection;
  event.flags = mapping.flags;
  event.device_major = static_cast<uint32_t>(identity.device >> 32);
  event.device_minor = static_cast<uint32_t>(identity.device);
  event.inode = identity.inode;
  return event;
}

void ProcessTable::WriteMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping,
                                EventSink& sink) {
  Mapping event = EventOf(pid, start, mapping);
  event.path = sink.Intern(files_[mapping.file].path);
  event.build_id = sink.Intern(files_[mapping.file].build_id);
  sink.Write(event);
  ApplyNotes();
}

MappedFile ProcessTable::MappedFileOf(uint32_t pid, uint64_t start,
                                      const CodeMapping& mapping) const {
  const File& file = files_[mapping.file];
  if (file.path == kVdso) return {.paths = {kVdso}, .build_id = {}};
  MappedFile mapped;
  mapped.paths = PathsOfMapping({pid, start, mapping.end - start, file.path});
  if (mapped.paths.empty()) return mapped;
  mapped.build_id = file.build_id;
  mapped.device = file.identity.device;
  mapped.inode = file.identity.inode;
  return mapped;
}

void ProcessTable::ForEach(const TakeProcess& take_process, const TakeMapping& take_mapping) {
  ApplyNotes();
  std::vector<uint32_t> pids;
  for (const auto& [pid, process] : processes_) {
    if (process.exit_ns == 0) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  for (const uint32_t pid : pids) {
    const Process& process = processes_.at(pid);
    ProcessEvent event;
    event.kind = ProcessEventKind::kExisting;
    event.pid = pid;
    for (const Thread& thread : process.threads) {
      event.time_ns = thread.time_ns;
      event.tid = thread.tid;
      event.parent_pid = thread.parent_pid;
      event.parent_tid = thread.parent_tid;
      take_process(event, thread.name);
    }
    if (!process.code) continue;
    for (const auto& [start, mapped] : process.code->mappings()) {
      const File& file = files_[mapped.file];
      Mapping mapping = EventOf(pid, start, mapped);
      if (mapped.time_ns < process.fork_ns) {  // inherited
        mapping.time_ns = process.fork_ns;
        mapping.tid = pid;
      }
      take_mapping(mapping, file.path, file.build_id);
    }
  }
}

}  // namespace xpu
