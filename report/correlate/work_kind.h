// The kinds of GPU work that calls start.
#pragma once

#include <cstdint>

namespace xpu {

enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset, kGraph, kSynchronization };

}  // namespace xpu
