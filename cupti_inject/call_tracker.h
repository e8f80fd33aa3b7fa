// The calls that one thread is in, so that a runtime call and the driver calls inside it, which
// carry the same correlation id, are one call: the outermost.
#pragma once

#include <cstdint>

namespace xpu::inject {

struct TrackedCall {
  uint64_t start_ns;
  uint32_t correlation_id;
  uint32_t key;          // domain and callback id of the outermost call
  uint8_t nested;        // calls of the same id inside it that have not returned
  bool is_recorded;      // it is reported; else it came in a pause
  bool has_stack;        // that was sent; of the marker nobody here knows
  bool waits;            // for the GPU; reported when it returns
  uint32_t graph_nodes;  // made inside it
};

// Plain data without a constructor: it lies in initial-exec TLS, whose room is scarce.
//
// Calls with other ids nest when the driver makes calls of its own inside one of the program's; no
// deeper than this has been seen. Where it is deeper the outermost is forgotten, its exit ignored.
// An entry whose exit never came (the thread left by an exception or longjmp) is dropped when a
// call around it returns, or forgotten likewise.
struct CallTracker {
  static constexpr uint32_t kMaxDepth = 4;

  // The call to mark, when this entry is the outermost of its id; else nullptr.
  TrackedCall* Enter(uint32_t correlation_id, uint32_t key) {
    if (TrackedCall* outer = Find(correlation_id)) {
      ++outer->nested;
      return nullptr;
    }
    if (depth == kMaxDepth) {
      for (uint32_t i = 1; i < kMaxDepth; ++i) calls[i - 1] = calls[i];
      --depth;
    }
    TrackedCall* call = &calls[depth++];
    *call = {0, correlation_id, key, 0, false, false, false, 0};
    return call;
  }

  // True, with `*finished`, when this exit ends the outermost call of its id.
  bool Exit(uint32_t correlation_id, uint32_t key, TrackedCall* finished) {
    TrackedCall* call = Find(correlation_id);
    if (call == nullptr) return false;
    if (call->nested > 0) {
      --call->nested;
      return false;
    }
    if (call->key != key) return false;  // its entry came before we listened
    *finished = *call;
    depth = static_cast<uint32_t>(call - calls);
    return true;
  }

  // The call that the thread is in; nullptr: in none.
  TrackedCall* Current() { return depth == 0 ? nullptr : &calls[depth - 1]; }

  TrackedCall* Find(uint32_t correlation_id) {
    for (uint32_t i = depth; i > 0; --i) {
      if (calls[i - 1].correlation_id == correlation_id) return &calls[i - 1];
    }
    return nullptr;
  }

  TrackedCall calls[kMaxDepth];
  uint32_t depth;
};

}  // namespace xpu::inject
