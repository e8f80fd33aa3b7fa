// Which track of a trace shows what. Processes and threads keep their numbers; everything else
// (a second process with a pid, GPUs, streams, samples) gets numbers that no pid can have.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "report/analysis.h"
#include "report/call_paths.h"
#include "report/trace_writer.h"

namespace xpu {

class TraceTracks {
 public:
  // Names each track when it is first asked for.
  TraceTracks(const Analysis& analysis, TraceWriter& writer)
      : analysis_(analysis), writer_(writer) {}

  TraceTrack Thread(const Owner& owner);
  TraceTrack Samples(const Owner& owner);

  // A track of a GPU on which [start_ns, end_ns] is free: slices of one track must not overlap,
  // so work that runs beside other work of its stream gets a further track. In order of start.
  enum class GpuRow : uint8_t { kStream, kSynchronizations };
  TraceTrack Gpu(ProcessId process, InstanceId instance, uint32_t device_id, GpuRow row,
                 uint32_t stream_id, uint64_t start_ns, uint64_t end_ns);
  // The same for what the driver and CUPTI do for themselves in a process.
  TraceTrack Overheads(ProcessId process, uint64_t start_ns, uint64_t end_ns);

 private:
  struct Lane {
    TraceTrack track;
    uint64_t busy_until_ns = 0;
  };
  using Lanes = std::vector<Lane>;
  TraceTrack FreeLane(Lanes& lanes, uint64_t pid, const std::string& title, uint64_t start_ns,
                      uint64_t end_ns);

  uint64_t Pid(ProcessId process);
  uint64_t GpuPid(ProcessId process, InstanceId instance, uint32_t device_id);
  std::string ProcessTitle(ProcessId process) const;
  std::string ThreadTitle(const Owner& owner) const;

  const Analysis& analysis_;
  TraceWriter& writer_;
  // Linux has no pids above 2^22. All of ours differ, because viewers take a thread id for one
  // thread of the whole trace.
  uint64_t next_id_ = (uint64_t{1} << 22) + 1;
  std::map<ProcessId, uint64_t> pids_;
  std::unordered_set<uint32_t> real_pids_used_;
  std::map<std::pair<ProcessId, uint32_t>, TraceTrack> threads_;
  std::map<std::pair<ProcessId, uint32_t>, TraceTrack> samples_;
  std::map<std::pair<ProcessId, uint32_t>, uint64_t> gpu_pids_;
  std::map<std::tuple<ProcessId, uint32_t, GpuRow, uint32_t>, Lanes> lanes_;
  std::map<ProcessId, Lanes> overheads_;
};

}  // namespace xpu
