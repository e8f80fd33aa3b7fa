#include "report/import/import_processes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace xpu {
namespace {

// Two imported captures that are shown as one need different instances, one text gives the same
// each time.
InstanceId InstanceOf(uint32_t pid, uint64_t first_ns) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const uint64_t value : {uint64_t{pid}, first_ns}) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (value >> shift & 0xff)) * 0x100000001b3ull;
    }
  }
  return {hash == 0 ? 1 : hash};
}

}  // namespace

uint64_t DropInnerCalls(std::vector<Imported<ApiCall>>& calls) {
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>> runtime;  // by pid and id
  for (const Imported<ApiCall>& call : calls) {
    if (call.event.domain != ApiDomain::kRuntime) continue;
    runtime[{call.pid, call.event.correlation_id}] = {call.event.start_ns, call.event.end_ns};
  }
  return std::erase_if(calls, [&](const Imported<ApiCall>& call) {
    if (call.event.domain != ApiDomain::kDriver) return false;
    const auto outer = runtime.find({call.pid, call.event.correlation_id});
    return outer != runtime.end() && outer->second.first <= call.event.start_ns &&
           call.event.end_ns <= outer->second.second;
  });
}

ImportProcesses::ImportProcesses(const ImportedTrace& trace) {
  std::map<uint32_t, uint64_t> first_ns;
  for (const Imported<ApiCall>& call : trace.calls) {
    const ApiCall& event = call.event;
    calls_[event.correlation_id].push_back({event.start_ns, call.pid});
    Process& process = processes_[call.pid];
    process.tids.insert(event.tid);
    const auto [first, is_new] = first_ns.try_emplace(call.pid, event.start_ns);
    if (is_new || event.start_ns < first->second) {
      first->second = event.start_ns;
      process.main_tid = event.tid;
    }
  }
  for (const auto& memory : trace.memory_operations) Add(memory.pid);
  // Lines before the first that says a process are of the first that any says.
  if (processes_.size() > 1) processes_.erase(0);
  if (processes_.empty()) Add(0);
  first_pid_ = processes_.begin()->first;
  for (const auto& call : trace.calls) {
    if (call.pid == 0) continue;
    first_pid_ = call.pid;
    break;
  }
  for (auto& [id, calls] : calls_) {
    std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
      return std::tie(a.start_ns, a.pid) < std::tie(b.start_ns, b.pid);
    });
  }
  for (auto& [pid, process] : processes_) {
    process.instance = InstanceOf(pid, first_ns[pid]);
    if (process.tids.contains(pid)) process.main_tid = pid;
  }
}

uint32_t ImportProcesses::PidOf(uint32_t correlation_id, uint64_t time_ns,
                                uint32_t said_pid) const {
  const auto found = calls_.find(correlation_id);
  if (found == calls_.end()) return KnownPid(said_pid);
  const auto later =
      std::partition_point(found->second.begin(), found->second.end(),
                           [&](const Call& call) { return call.start_ns <= time_ns; });
  const Call& call = later == found->second.begin() ? *later : *(later - 1);
  return KnownPid(call.pid);
}

}  // namespace xpu
