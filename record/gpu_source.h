// The GPU side of a recording: the injected library in every CUDA process of the target, and the
// probe on its marker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/cupti_watch.h"
#include "record/event_sink.h"
#include "record/gpu_peer.h"
#include "record/inject_server.h"
#include "record/launch_source.h"
#include "record/options.h"

namespace xpu {

class GpuSource {
 public:
  // Puts into `environment` what makes the driver load the library.
  static Result<GpuSource> Open(const RecordOptions& options,
                                std::vector<std::string>& environment);
  // The probe; before the target's exec.
  Status Arm();

  int fd() const { return server_.fd(); }
  void Drain(EventSink& sink);
  void CountLosses(EventSink& sink);
  void Stop(EventSink& sink);

 private:
  explicit GpuSource(InjectServer server) : server_(std::move(server)) {}
  void AcceptPeers(EventSink& sink);
  void FinishPeer(GpuPeer& peer, EventSink& sink, bool recording_ends);
  void CountMissingStacks(EventSink& sink);
  void WatchCupti(GpuPeer& peer);

  RecordOptions options_;
  std::string library_;
  InjectServer server_;
  std::optional<LaunchSource> launches_;
  std::optional<CuptiWatch> cupti_watch_;  // where the probe on the marker is possible
  TestDrop drop_;
  std::vector<std::unique_ptr<GpuPeer>> peers_;
  struct Markers {
    uint32_t pid = 0;
    uint64_t count = 0;
  };
  std::map<InstanceId, Markers> markers_;  // of the processes that have ended
};

// Sets NAME=value in a list of such strings.
void SetVariable(std::vector<std::string>& environment, const std::string& name,
                 const std::string& value);
// Its value, nullopt: not set.
std::optional<std::string> FindVariable(const std::vector<std::string>& environment,
                                        const std::string& name);

}  // namespace xpu
