// Checks cupti_records.inc against the toolkit's cupti.h: sizes of all versions of the records that
// this toolkit has, places and widths of their fields. Compiled where a toolkit is found
// (XPU_CUDA_TOOLKIT); produces no code.
#include <cstddef>
#include <cstdint>

#include <cupti.h>

#include "cupti_inject/cupti_versions.h"

// Declares the versions that this toolkit does not have, without defining them.
#include "cupti_missing.h"

namespace xpu::cupti {
namespace {

template <typename T>
constexpr bool kIsThere = requires {
  sizeof(T);
};

// An older version has the fields that came with it or before.
#define CHECK(bytes, offset, cupti_name, since)                                              \
  if constexpr (sizeof(Version) >= since) {                                                  \
    static_assert(offsetof(Version, cupti_name) == offset, #cupti_name);                     \
    static_assert(sizeof(static_cast<Version*>(nullptr)->cupti_name) == bytes, #cupti_name); \
  }
#define RECORD(name, type)    \
  template <typename Version> \
  constexpr bool Is##name() { \
    CHECK(sizeof(uint32_t), 0, kind, 0)
#define FIELD(c_type, member, offset, cupti_name, since) \
  CHECK(sizeof(c_type), offset, cupti_name, since)
#define FIELD_LATE(c_type, member, offset, cupti_name, since)               \
  if constexpr (requires { static_cast<Version*>(nullptr)->cupti_name; }) { \
    CHECK(sizeof(c_type), offset, cupti_name, since)                        \
  }
#define ARRAY(c_type, count, member, offset, cupti_name, since) \
  CHECK(sizeof(c_type[count]), offset, cupti_name, since)
#define TEXT(member, offset, cupti_name, since) CHECK(sizeof(char*), offset, cupti_name, since)
#define POINTER(member, offset, cupti_name, since) CHECK(sizeof(char*), offset, cupti_name, since)
#define END(name, type) \
  return true;          \
  }
#include "cupti_inject/cupti_records.inc"
#undef CHECK

template <typename Version, size_t kBytes>
constexpr bool HasSize() {
  if constexpr (kIsThere<Version>) return sizeof(Version) == kBytes;
  return true;
}

// A header has all records that are older than it, and none that are newer.
#define VERSION(name, type, bytes, cuda)                                            \
  static_assert(kIsThere<type> == (cuda <= CudaVersionOfCupti(CUPTI_API_VERSION))); \
  static_assert(HasSize<type, bytes>());                                            \
  static_assert([]<typename Version>(Version*) {                                    \
    if constexpr (kIsThere<Version>) return Is##name<Version>();                    \
    return true;                                                                    \
  }(static_cast<type*>(nullptr)));
#include "cupti_inject/cupti_records.inc"

#define KIND(kind, number, cupti_kind, name, event) static_assert(number == cupti_kind);
#define RAW_KIND(kind, number, cupti_kind, name) KIND(kind, number, cupti_kind, name, RawActivity)
#include "cupti_inject/cupti_records.inc"

}  // namespace
}  // namespace xpu::cupti
