// Records GPUs as a whole: clocks, power and errors, and with --gpu-metrics hardware counters. All
// of it is read by a helper process (metrics_helper.h), whose packets are written to the capture.
//
// Clocks are read from the first recorded process on that uses CUDA, because reading them wakes a
// GPU that sleeps; counters from the beginning, so that none of the program's work is missed. What
// does not work here is said in the ledger, and the recording goes on without it. The helper ends
// with the recorder's end of the socket, however that ends, and the driver frees the counters then.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/gpu_metrics/metrics_packets.h"
#include "record/process/process_table.h"
#include "record/source/source.h"

namespace xpu {

class GpuMetricsSource : public Source, public ProcessListener {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);
  ~GpuMetricsSource() override;

  void Begin(EventSink& sink) override;
  void Switch(const SwitchState& wanted) override;
  void Drain(EventSink& sink) override;
  void Stop(EventSink& sink, bool may_go_on) override;
  // While the counters are set up, which the program waits for.
  bool IsStarting() const override { return counters_ && is_started_ && !is_ready_; }

  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;

 private:
  // Clocks alone are recorded without being asked for: nothing is lost.
  LossKind RefusedKind() const {
    return counters_ ? LossKind::kGpuMetricsRefused : LossKind::kGpuClocksRefused;
  }
  explicit GpuMetricsSource(SourceContext& context);
  Status Start();
  bool ReadPacket(EventSink& sink);
  void Write(std::span<const char> packet, EventSink& sink);
  void Write(const gpu_metrics::DevicePacket& packet, EventSink& sink);
  void Write(const gpu_metrics::StatePacket& packet, EventSink& sink);
  void Write(const gpu_metrics::FaultPacket& packet, EventSink& sink);
  void Write(const gpu_metrics::MetricPacket& packet, EventSink& sink);
  void Write(const gpu_metrics::SamplePacket& packet, EventSink& sink);
  void Write(const gpu_metrics::ClockPacket& packet, EventSink& sink);
  void Write(const gpu_metrics::LostPacket& packet, EventSink& sink);
  void Write(const gpu_metrics::RefusedPacket& packet, EventSink& sink);
  void Send(gpu_metrics::Command command);
  void End();

  SourceContext& context_;
  const bool counters_;
  const InstanceId instance_;  // whose clock the counters have
  UniqueFd socket_;
  pid_t helper_ = -1;
  bool is_wanted_ = false;  // a recorded process uses CUDA
  bool is_started_ = false;
  bool is_ready_ = false;
  bool is_over_ = false;  // the helper has closed its end
  bool paused_;
  std::vector<char> buffer_;
};

}  // namespace xpu
