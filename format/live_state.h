// The processes, threads and mappings that are alive at a point of a recording, so that the writer
// can state them again and a later part of the file can be read alone.
//
// Times stay those of the original events: stating something again changes nothing for a reader
// that knows it already.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/events.h"

namespace xpu {

class LiveState {
 public:
  // Beyond these, new ones are not restated (they are still in the file, once).
  static constexpr size_t kMaxThreads = 65536;
  static constexpr size_t kMaxMappings = 262144;

  // `name`, `path`, `build_id`: the texts of the event's ids, which do not outlive its block.
  void Note(const ProcessEvent& event, std::string_view name);
  void Note(const Mapping& mapping, std::string_view path, std::string_view build_id);

  // Calls emit(process_event, name) for each live thread, main threads first, then
  // emit(mapping, path, build_id).
  template <typename EmitThread, typename EmitMapping>
  void Restate(EmitThread&& emit_thread, EmitMapping&& emit_mapping) const;

 private:
  struct Thread {
    ProcessEvent event;
    std::string name;
  };
  struct LiveMapping {
    Mapping mapping;
    std::string path;
    std::string build_id;
  };
  struct Process {
    std::map<uint32_t, Thread> threads;        // by tid
    std::map<uint64_t, LiveMapping> mappings;  // by start address
  };

  void AddThread(const ProcessEvent& event, std::string_view name);
  void Fork(const ProcessEvent& event);
  void Exec(const ProcessEvent& event, std::string_view name);
  void Exit(const ProcessEvent& event);
  void EraseProcess(uint32_t pid);

  std::map<uint32_t, Process> processes_;  // by pid
  size_t thread_count_ = 0;
  size_t mapping_count_ = 0;
};

template <typename EmitThread, typename EmitMapping>
void LiveState::Restate(EmitThread&& emit_thread, EmitMapping&& emit_mapping) const {
  for (const auto& [pid, process] : processes_) {
    for (const auto& [tid, thread] : process.threads) emit_thread(thread.event, thread.name);
    for (const auto& [start, live] : process.mappings) {
      emit_mapping(live.mapping, live.path, live.build_id);
    }
  }
}

}  // namespace xpu
