// What a capture says of the state of the injected library.
#pragma once

#include "cupti_inject/wire.h"
#include "format/events.h"

namespace xpu {

inline InjectState StateOf(wire::State state) {
  switch (state) {
    case wire::State::kActive:
      return InjectState::kActive;
    case wire::State::kDormant:
    case wire::State::kAbandoned:
      return InjectState::kDormant;
    case wire::State::kFinished:
      return InjectState::kFinished;
    default:
      return InjectState::kConnected;
  }
}

}  // namespace xpu
