// The pointers in CUPTI's records, which mean nothing outside the program, and the ids of calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {

namespace detail {

// Offsets in a record; 0: it has no such thing.
struct NoPointers {
  static constexpr size_t kText = 0;
  static constexpr size_t kOther = 0;
};
#define RECORD(name, type) struct name##Pointers : NoPointers {
#define TEXT(member, offset, cupti_name, since) static constexpr size_t kText = offset;
#define POINTER(member, offset, cupti_name, since) static constexpr size_t kOther = offset;
#define END(name, type) \
  }                     \
  ;
#include "cupti_inject/cupti_records.inc"

}  // namespace detail

// Offset of the pointer to the name, or other text, in a record of this kind; 0: it has none.
constexpr size_t NameOffset(uint32_t kind) {
  switch (kind) {
#define KIND(kind, number, cupti_kind, name, event) \
  case cupti::kind:                                 \
    return detail::name##Pointers::kText;
#define RAW_KIND(kind, number, cupti_kind, name) KIND(kind, number, cupti_kind, name, RawActivity)
#include "cupti_inject/cupti_records.inc"
    default:
      return 0;
  }
}

// Offset of another pointer in a record of this kind; 0: it has none.
constexpr size_t OtherPointerOffset(uint32_t kind) {
  switch (kind) {
#define KIND(kind, number, cupti_kind, name, event) \
  case cupti::kind:                                 \
    return detail::name##Pointers::kOther;
#include "cupti_inject/cupti_records.inc"
    default:
      return 0;
  }
}

template <typename Record>
constexpr size_t CorrelationOffsetIn() {
  if constexpr (requires { Record{}.correlation_id; }) {
    return offsetof(Record, correlation_id);
  } else {
    return 0;
  }
}

// Offset of the correlation id of the call that a record is of; 0: it is of none, or of the state
// of the device, which calls in a pause change too: its memory, its streams.
constexpr size_t CorrelationOffset(uint32_t kind) {
  switch (kind) {
#define KIND(kind, number, cupti_kind, name, event) \
  case cupti::kind:                                 \
    return cupti::kind == cupti::kKindMemory2 ? 0 : CorrelationOffsetIn<cupti::name>();
#include "cupti_inject/cupti_records.inc"
    default:
      return 0;
  }
}

// Offset of the time at which the GPU began what the record describes, which is followed by the
// end; 0: it describes no work of the GPU.
constexpr size_t WorkStartOffset(uint32_t kind) {
  switch (kind) {
    case cupti::kKindConcurrentKernel:
    case cupti::kKindMemcpy:
    case cupti::kKindMemcpy2:
    case cupti::kKindMemset:
      return offsetof(cupti::Kernel, start_ns);
    case cupti::kKindGraphTrace:
      return offsetof(cupti::GraphTrace, start_ns);
    default:
      return 0;
  }
}
static_assert(offsetof(cupti::Kernel, start_ns) == offsetof(cupti::Memcpy, start_ns));
static_assert(offsetof(cupti::Kernel, start_ns) == offsetof(cupti::MemcpyPeer, start_ns));
static_assert(offsetof(cupti::Kernel, start_ns) == offsetof(cupti::Memset, start_ns));

}  // namespace xpu::inject
