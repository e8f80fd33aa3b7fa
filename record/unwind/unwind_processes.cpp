#include "record/unwind/unwind_processes.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "record/base/clock.h"
#include "record/process/mapped_file.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

constexpr size_t kMaxMappings = 65536;
// Of all processes: each child begins with a copy of its parent's.
constexpr size_t kMaxAllMappings = size_t{1} << 22;

Error NoRoomForMappings() {
  return Error{ErrorKind::kSystem, "more executable mappings than are kept for unwinding", {}};
}

UnwindTables::File FileOf(const PerfMapping& mapping) {
  UnwindTables::File file;
  if (mapping.path == kVdso) {
    file.paths = {kVdso};
    return file;
  }
  file.paths = PathsOfMapping({mapping.pid, mapping.address, mapping.size_bytes, mapping.path});
  if (file.paths.empty()) return file;
  file.build_id = {reinterpret_cast<const char*>(mapping.build_id.data()), mapping.build_id.size()};
  file.device = PackedDevice(mapping.device_major, mapping.device_minor);
  file.inode = mapping.inode;
  return file;
}

}  // namespace

bool CodeMappings::Add(uint64_t start, const Entry& entry) {
  auto next = entries_.lower_bound(start);
  if (next != entries_.begin()) {
    auto& [before_start, before] = *std::prev(next);
    if (before.end > start) {
      const Entry whole = before;
      before.end = start;
      if (whole.end > entry.end) {  // a hole in the middle
        Entry rest = whole;
        rest.file_offset += entry.end - before_start;
        entries_.emplace(entry.end, rest);
        next = entries_.lower_bound(start);
      }
    }
  }
  while (next != entries_.end() && next->first < entry.end) {
    if (next->second.end > entry.end) {
      Entry rest = next->second;
      rest.file_offset += entry.end - next->first;
      entries_.emplace(entry.end, rest);
    }
    next = entries_.erase(next);
  }
  if (entries_.size() >= kMaxMappings) return false;
  entries_.emplace(start, entry);
  return true;
}

bool UnwindProcesses::See(const PerfRecord& record) {
  Note note;
  if (const auto* mapping = std::get_if<PerfMapping>(&record)) {
    if (mapping->size_bytes == 0 || mapping->address + mapping->size_bytes < mapping->address) {
      return false;
    }
    note.time_ns = mapping->origin.time_ns;
    note.pid = mapping->pid;
    note.address = mapping->address;
    note.size_bytes = mapping->size_bytes;
    note.file_offset = mapping->file_offset;
    note.file = FileOf(*mapping);
  } else if (const auto* comm = std::get_if<PerfComm>(&record); comm && comm->is_exec) {
    note.time_ns = comm->origin.time_ns;
    note.kind = Note::Kind::kExec;
    note.pid = comm->pid;
  } else if (const auto* task = std::get_if<PerfTask>(&record); task != nullptr) {
    // Threads share what their process has mapped.
    if (task->is_exit ? task->tid != task->pid : task->pid == task->parent_pid) return false;
    note.time_ns = task->time_ns;
    note.kind = task->is_exit ? Note::Kind::kExit : Note::Kind::kFork;
    note.pid = task->pid;
    note.parent_pid = task->parent_pid;
  } else {
    return false;
  }
  notes_.push_back(std::move(note));
  return true;
}

void UnwindProcesses::Take(const Note& note, uint64_t now_ns) {
  switch (note.kind) {
    case Note::Kind::kMapping:
      TakeMapping(note);
      return;
    case Note::Kind::kExec:
      if (python_ != nullptr) python_->SeeExec(note.pid);
      processes_[note.pid] = {{}, note.time_ns, 0};
      break;
    case Note::Kind::kFork: {
      if (python_ != nullptr) python_->SeeFork(note.parent_pid, note.pid);
      const auto parent = processes_.find(note.parent_pid);
      if (parent == processes_.end()) return;
      all_mappings_ += parent->second.code.entries().size();
      if (all_mappings_ > kMaxAllMappings) {
        full_ = NoRoomForMappings();
        return;
      }
      Process child = parent->second;
      child.published_ns = 0;
      processes_[note.pid] = std::move(child);
      break;
    }
    case Note::Kind::kExit:
      exits_.push_back({note.pid, now_ns});
      return;
  }
  changed_.insert(note.pid);
}

size_t UnwindProcesses::CountMappings() const {
  size_t count = 0;
  for (const auto& [pid, process] : processes_) count += process.code.entries().size();
  return count;
}

void UnwindProcesses::TakeMapping(const Note& note) {
  Process& process = processes_[note.pid];
  if (note.time_ns < process.exec_ns) return;  // of the address space before
  CodeMappings::Entry entry{note.address + note.size_bytes, note.file_offset, 0};
  if (!note.file.paths.empty()) entry.table = tables_.Request(note.file);
  if (!process.code.Add(note.address, entry)) full_ = NoRoomForMappings();
  if (python_ != nullptr) {
    python_->SeeMapping(note.pid, {note.address, note.size_bytes, note.file_offset}, note.file);
  }
  changed_.insert(note.pid);
}

void UnwindProcesses::TakeFinishedTables(uint64_t limit_ns) {
  for (const UnwindTables::Id id : tables_.TakeFinished()) finished_.push_back(id);
  const uint64_t start_ns = MonotonicNs();
  std::unordered_set<UnwindTables::Id> taken;
  while (!finished_.empty() && MonotonicNs() - start_ns < limit_ns) {
    const UnwindTables::Id id = finished_.front();
    finished_.pop_front();
    taken.insert(id);
    if (tables_.state(id) == UnwindTables::State::kReady) {
      if (auto place = maps_.Add(tables_.table(id)); place.ok()) {
        places_[id] = *place;
        if (const auto file = tables_.CodeFileOf(id)) {
          maps_.SetFile(file->device, file->inode, *place, file->link_delta);
        }
      } else {
        full_ = place.error();
        unplaced_.insert(id);
      }
    }
  }
  if (taken.empty()) return;
  for (const auto& [pid, process] : processes_) {
    const auto& entries = process.code.entries();
    if (std::any_of(entries.begin(), entries.end(),
                    [&](const auto& entry) { return taken.contains(entry.second.table); })) {
      changed_.insert(pid);
    }
  }
}

xpu_mapping UnwindProcesses::ForMaps(uint64_t start, const CodeMappings::Entry& entry) const {
  xpu_mapping mapping{start, entry.end, 0, 0, XPU_TABLE_NONE};
  if (entry.table == 0) return mapping;
  const auto place = places_.find(entry.table);
  if (place == places_.end()) {
    const bool is_failed = tables_.state(entry.table) == UnwindTables::State::kFailed ||
                           unplaced_.contains(entry.table);
    if (!is_failed) mapping.page_count = XPU_TABLE_NOT_READY;
    return mapping;
  }
  const auto link_address =
      tables_.LinkAddressOfMapping(entry.table, entry.file_offset, entry.end - start);
  if (!link_address) return mapping;
  mapping.origin = start - *link_address + place->second.first_link_address;
  mapping.first_page = place->second.first_page;
  mapping.page_count = place->second.page_count;
  return mapping;
}

Status UnwindProcesses::Publish(uint32_t pid, Process& process, uint64_t now_ns) {
  process.published_ns = now_ns;
  std::vector<xpu_mapping> mappings;
  mappings.reserve(process.code.entries().size());
  for (const auto& [start, entry] : process.code.entries()) {
    mappings.push_back(ForMaps(start, entry));
  }
  return maps_.SetCode(pid, mappings, now_ns);
}

// Those that have to wait stay in `changed_`.
void UnwindProcesses::PublishDue(uint64_t now_ns) {
  std::erase_if(changed_, [&](uint32_t pid) {
    const auto found = processes_.find(pid);
    if (found == processes_.end()) return true;
    Process& process = found->second;
    const uint64_t interval_ns = PublishIntervalNs(process.code.entries().size());
    if (process.published_ns != 0 && now_ns - process.published_ns < interval_ns) return false;
    if (Status set = Publish(pid, process, now_ns); !set.ok()) full_ = std::move(set);
    return true;
  });
}

// A while after the end of its first thread: the others may still run, and its last samples are
// still to come.
void UnwindProcesses::ForgetTheDead(uint64_t now_ns) {
  constexpr uint64_t kWhileNs = 2'000'000'000;
  std::erase_if(exits_, [&](Exit& exit) {
    if (now_ns - exit.since_ns < kWhileNs) return false;
    if (::kill(static_cast<pid_t>(exit.pid), 0) == 0) {
      exit.since_ns = now_ns;
      return false;
    }
    processes_.erase(exit.pid);
    maps_.Forget(exit.pid, now_ns);
    if (python_ != nullptr) python_->Forget(exit.pid);
    return true;
  });
}

Status UnwindProcesses::Apply(uint64_t now_ns) {
  std::stable_sort(notes_.begin(), notes_.end(),
                   [](const Note& a, const Note& b) { return a.time_ns < b.time_ns; });
  all_mappings_ = CountMappings();
  for (const Note& note : std::exchange(notes_, {})) Take(note, now_ns);
  // A part of them at a time, so that each is in use as soon as it can be.
  constexpr uint64_t kPlacingNs = 2'000'000;
  TakeFinishedTables(kPlacingNs);
  PublishDue(now_ns);
  ForgetTheDead(now_ns);
  return std::exchange(full_, Ok());
}

}  // namespace xpu
