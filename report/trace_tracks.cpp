#include "report/trace_tracks.h"

#include <algorithm>

#include "format/base/text.h"

namespace xpu {
namespace {

// Within a process: calls of a thread, then its samples. GPUs come after all processes.
constexpr uint64_t kGpuSortBase = uint64_t{1} << 24;

}  // namespace

std::string TraceTracks::ProcessTitle(ProcessId process) const {
  if (!process) return "unknown process";
  const std::string_view name = analysis_.processes.Name(process);
  return name.empty() ? Format("pid {}", analysis_.processes[process].pid) : std::string(name);
}

std::string TraceTracks::ThreadTitle(const Owner& owner) const {
  const std::string_view name =
      analysis_.processes.ThreadName(owner.process, owner.tid, ~uint64_t{0});
  return name.empty() ? Format("tid {}", owner.tid) : std::string(name);
}

uint64_t TraceTracks::Pid(ProcessId process) {
  const auto [at, is_new] = pids_.try_emplace(process);
  if (is_new) {
    const uint32_t pid = process ? analysis_.processes[process].pid : 0;
    at->second = pid != 0 && real_pids_used_.insert(pid).second ? pid : next_id_++;
    writer_.NameProcess(at->second, ProcessTitle(process), process.value);
  }
  return at->second;
}

TraceTrack TraceTracks::Thread(const Owner& owner) {
  const auto [at, is_new] = threads_.try_emplace({owner.process, owner.tid});
  if (is_new) {
    const uint64_t pid = Pid(owner.process);
    at->second = {pid, owner.tid != 0 ? owner.tid : next_id_++};
    writer_.NameThread(at->second, ThreadTitle(owner), uint64_t{owner.tid} * 2);
  }
  return at->second;
}

TraceTrack TraceTracks::Samples(const Owner& owner) {
  const auto [at, is_new] = samples_.try_emplace({owner.process, owner.tid});
  if (is_new) {
    at->second = {Pid(owner.process), next_id_++};
    writer_.NameThread(at->second,
                       Format("{} (tid {}): CPU samples", ThreadTitle(owner), owner.tid),
                       uint64_t{owner.tid} * 2 + 1);
  }
  return at->second;
}

uint64_t TraceTracks::GpuPid(ProcessId process, InstanceId instance, uint32_t device_id) {
  const GpuDevices::Gpu gpu = analysis_.gpus.Of(instance, device_id);
  const auto [at, is_new] = gpu_pids_.try_emplace({process, gpu.number});
  if (is_new) {
    at->second = next_id_++;
    std::string title = Format("GPU {}", gpu.number);
    if (gpu.device != nullptr && gpu.device->name) {
      AppendFormat(title, " {}", analysis_.model.Text(gpu.device->name));
    }
    AppendFormat(title, " of {}", ProcessTitle(process));
    if (process) AppendFormat(title, " ({})", analysis_.processes[process].pid);
    if (gpu.number != device_id) AppendFormat(title, ", its device {}", device_id);
    writer_.NameProcess(at->second, title, kGpuSortBase + at->second);
  }
  return at->second;
}

TraceTrack TraceTracks::FreeLane(Lanes& lanes, uint64_t pid, const std::string& title,
                                 uint64_t start_ns, uint64_t end_ns) {
  auto lane = std::find_if(lanes.begin(), lanes.end(),
                           [&](const Lane& each) { return each.busy_until_ns <= start_ns; });
  if (lane == lanes.end()) {
    const TraceTrack track{pid, next_id_++};
    writer_.NameThread(track, lanes.empty() ? title : Format("{} ({})", title, lanes.size() + 1),
                       track.tid);
    lane = lanes.insert(lanes.end(), Lane{track, 0});
  }
  lane->busy_until_ns = end_ns;
  return lane->track;
}

TraceTrack TraceTracks::Gpu(ProcessId process, InstanceId instance, uint32_t device_id, GpuRow row,
                            uint32_t stream_id, uint64_t start_ns, uint64_t end_ns) {
  const uint64_t pid = GpuPid(process, instance, device_id);
  const uint32_t number = analysis_.gpus.Of(instance, device_id).number;
  const std::string title =
      row == GpuRow::kStream ? Format("stream {}", stream_id) : "synchronizations";
  return FreeLane(lanes_[{process, number, row, stream_id}], pid, title, start_ns, end_ns);
}

TraceTrack TraceTracks::Overheads(ProcessId process, uint64_t start_ns, uint64_t end_ns) {
  return FreeLane(overheads_[process], Pid(process), "CUDA overheads", start_ns, end_ns);
}

}  // namespace xpu
