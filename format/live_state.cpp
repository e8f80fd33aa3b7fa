#include "format/live_state.h"

#include <utility>

namespace xpu {

void LiveState::Note(const ProcessEvent& event, std::string_view name) {
  switch (event.kind) {
    case ProcessEventKind::kExisting:
      return AddThread(event, name);
    case ProcessEventKind::kFork:
      return Fork(event);
    case ProcessEventKind::kExec:
      return Exec(event, name);
    case ProcessEventKind::kName:
      return AddThread(event, name);
    case ProcessEventKind::kExit:
      return Exit(event);
  }
}

void LiveState::AddThread(const ProcessEvent& event, std::string_view name) {
  auto process = processes_.find(event.pid);
  const bool known = process != processes_.end() && process->second.threads.contains(event.tid);
  if (!known && thread_count_ >= kMaxThreads) return;
  if (process == processes_.end()) process = processes_.try_emplace(event.pid).first;
  Thread& thread = process->second.threads[event.tid];
  if (!known) {
    ++thread_count_;
    thread.event = event;
  }
  // A name that is given holds from its own time on, the parent from the first event.
  thread.event.time_ns = event.time_ns;
  if (event.kind != ProcessEventKind::kName) {
    thread.event.parent_pid = event.parent_pid;
    thread.event.parent_tid = event.parent_tid;
  }
  thread.event.kind = ProcessEventKind::kExisting;
  thread.name = name;
}

void LiveState::Fork(const ProcessEvent& event) {
  // The child begins as a copy of its parent: its name and, when it is a process, its mappings.
  std::string name;
  const auto parent = processes_.find(event.parent_pid);
  if (parent != processes_.end()) {
    const auto thread = parent->second.threads.find(event.parent_tid);
    if (thread != parent->second.threads.end()) name = thread->second.name;
  }
  if (event.pid != event.parent_pid) EraseProcess(event.pid);  // a reused pid whose exit was lost
  AddThread(event, name);
  const auto child = processes_.find(event.pid);
  if (event.pid == event.parent_pid || parent == processes_.end() || child == processes_.end()) {
    return;
  }
  if (mapping_count_ + parent->second.mappings.size() > kMaxMappings) return;
  child->second.mappings = parent->second.mappings;
  mapping_count_ += child->second.mappings.size();
  for (auto& [start, live] : child->second.mappings) {
    live.mapping.pid = event.pid;
    live.mapping.tid = event.tid;
    live.mapping.time_ns = event.time_ns;
  }
}

void LiveState::Exec(const ProcessEvent& event, std::string_view name) {
  uint32_t parent_pid = event.parent_pid;
  uint32_t parent_tid = event.parent_tid;
  if (const auto process = processes_.find(event.pid); process != processes_.end()) {
    const auto main_thread = process->second.threads.find(event.pid);
    if (parent_pid == 0 && main_thread != process->second.threads.end()) {
      parent_pid = main_thread->second.event.parent_pid;
      parent_tid = main_thread->second.event.parent_tid;
    }
  }
  EraseProcess(event.pid);
  ProcessEvent existing = event;
  existing.tid = event.pid;  // whichever thread called exec is now the main one
  existing.parent_pid = parent_pid;
  existing.parent_tid = parent_tid;
  AddThread(existing, name);
}

void LiveState::Exit(const ProcessEvent& event) {
  if (event.tid == event.pid) return EraseProcess(event.pid);
  const auto process = processes_.find(event.pid);
  if (process == processes_.end()) return;
  thread_count_ -= process->second.threads.erase(event.tid);
}

void LiveState::EraseProcess(uint32_t pid) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  thread_count_ -= process->second.threads.size();
  mapping_count_ -= process->second.mappings.size();
  processes_.erase(process);
}

void LiveState::Note(const Mapping& mapping, std::string_view path, std::string_view build_id) {
  if (mapping_count_ >= kMaxMappings) return;
  auto& mappings = processes_[mapping.pid].mappings;
  const uint64_t end = mapping.start_address + mapping.size_bytes;
  // Of older mappings, those that it covers wholly are gone. What begins in it and goes on behind
  // it keeps its rest; what begins before it stays as it is: older, so readers let it lose here.
  auto old = mappings.lower_bound(mapping.start_address);
  while (old != mappings.end() && old->first < end) {
    auto node = mappings.extract(old++);
    --mapping_count_;
    Mapping& rest = node.mapped().mapping;
    const uint64_t covered_bytes = end - rest.start_address;
    if (rest.size_bytes <= covered_bytes) continue;
    rest.start_address += covered_bytes;
    rest.file_offset += covered_bytes;
    rest.size_bytes -= covered_bytes;
    node.key() = rest.start_address;
    mapping_count_ += mappings.insert(std::move(node)).inserted ? 1 : 0;
    break;
  }
  mappings.insert_or_assign(mapping.start_address,
                            LiveMapping{mapping, std::string(path), std::string(build_id)});
  ++mapping_count_;
}

}  // namespace xpu
