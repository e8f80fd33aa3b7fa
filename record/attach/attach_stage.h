#pragma once

#include <cstdint>
#include <functional>

namespace xpu {

// Stages of an attach, in their order. Tests end the recorder or the process at each.
enum class AttachStage : uint8_t {
  kSeized,
  kStopped,
  kFrameWritten,
  kInFirstCall,
  kAreaMapped,
  kInSecondCall,
  kCallReturns,  // only where a wait with a time limit goes on, or the first call failed
  kReleased,
  kThreadRuns,
  kLibraryCopied,
  kOffered,
};
using AttachObserver = std::function<void(AttachStage)>;

}  // namespace xpu
