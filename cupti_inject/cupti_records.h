// CUPTI's activity records as structs, from their description in cupti_records.inc: the part of
// cupti_abi.h that the decoder needs.
//
// Records grow at their end from one CUPTI version to the next. A struct here is the newest layout
// (13.0); `k<Record>Sizes` lists the sizes of it and of its predecessors, which are its prefixes.
// Read a record with Load(): what its version does not have is 0, also where it has padding that a
// later version made a field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace xpu::cupti {

// CUpti_ActivityKind
#define KIND(kind, number, cupti_kind, name, event) inline constexpr uint32_t kind = number;
#define RAW_KIND(kind, number, cupti_kind, name) KIND(kind, number, cupti_kind, name, RawActivity)
#include "cupti_inject/cupti_records.inc"
inline constexpr uint32_t kKindInternalLaunchApi = 48;

// Every record begins with its kind.
struct alignas(8) Record {
  uint32_t kind;
};

#define RECORD(name, type) \
  struct alignas(8) name { \
    uint32_t kind;
#define FIELD(c_type, member, offset, cupti_name, since) c_type member;
#define ARRAY(c_type, count, member, offset, cupti_name, since) c_type member[count];
#define TEXT(member, offset, cupti_name, since) uint64_t member;
#define POINTER(member, offset, cupti_name, since) uint64_t member;
#define PADDING(offset, bytes) uint8_t padding_##offset[bytes];
#define END(name, type) \
  }                     \
  ;
#include "cupti_inject/cupti_records.inc"

// The sizes of a record's versions, the oldest first.
#define RECORD(name, type) inline constexpr size_t k##name##Sizes[] = {
#define VERSION(name, type, bytes, cuda) bytes,
#define END(name, type) \
  }                     \
  ;
#include "cupti_inject/cupti_records.inc"

namespace detail {

constexpr bool IsBefore(size_t size, size_t since) { return size < since; }

inline void ClearPadding(Record&, size_t) {}

// What a record of `size` bytes has as padding and a later version as a field.
#define CLEAR(member, offset, since)            \
  static_assert(offsetof(R, member) == offset); \
  if (IsBefore(size, since)) std::memset(&record.member, 0, sizeof(record.member));
#define RECORD(name, type)                                                                \
  inline void ClearPadding([[maybe_unused]] name& record, [[maybe_unused]] size_t size) { \
    using R = name;
#define FIELD(c_type, member, offset, cupti_name, since) CLEAR(member, offset, since)
#define ARRAY(c_type, count, member, offset, cupti_name, since) CLEAR(member, offset, since)
#define TEXT(member, offset, cupti_name, since) CLEAR(member, offset, since)
#define POINTER(member, offset, cupti_name, since) CLEAR(member, offset, since)
#define END(name, type)                                                      \
  static_assert(sizeof(R) == k##name##Sizes[std::size(k##name##Sizes) - 1]); \
  }
#include "cupti_inject/cupti_records.inc"
#undef CLEAR

}  // namespace detail

// The record of `size` bytes at `bytes` (any alignment, any version); `size` of 0 gives zeros.
template <typename T>
T Load(const void* bytes, size_t size) {
  T record{};
  if (size >= sizeof(T)) {
    std::memcpy(&record, bytes, sizeof(T));
  } else if (size > 0) {
    std::memcpy(&record, bytes, size);
    detail::ClearPadding(record, size);
  }
  return record;
}

}  // namespace xpu::cupti
