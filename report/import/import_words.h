// What CUPTI's samples call the values of its enumerations, each list by value.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "format/events.h"

namespace xpu {

inline constexpr std::array<std::string_view, 4> kChannelTypes = {"INVALID", "COMPUTE",
                                                                  "ASYNC_MEMCPY", "DECOMP"};
inline constexpr std::array<std::string_view, 11> kCopyKindWords = {
    "UNKNOWN", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
inline constexpr std::array<std::string_view, 8> kMemoryKinds = {
    "UNKNOWN", "PAGEABLE", "PINNED",        "DEVICE",
    "ARRAY",   "MANAGED",  "DEVICE_STATIC", "MANAGED_STATIC"};
inline constexpr std::array<std::string_view, 3> kMemoryOperations = {"INVALID", "ALLOCATE",
                                                                      "RELEASE"};
inline constexpr std::array<std::string_view, 3> kPoolTypes = {"INVALID", "LOCAL", "IMPORTED"};
inline constexpr std::array<std::string_view, 5> kSynchronizationTypes = {
    "UNKNOWN", "EVENT_SYNCHRONIZE", "STREAM_WAIT_EVENT", "STREAM_SYNCHRONIZE",
    "CONTEXT_SYNCHRONIZE"};

// The value of a word; 0, the unknown one of each list, when it is not there.
uint32_t IndexIn(std::span<const std::string_view> words, std::string_view word);

// CUpti_ActivityOverheadKind of "CUPTI_RESOURCE" or, as older samples have it, "RESOURCE".
uint32_t OverheadKindOf(std::string_view word);
// CUpti_ActivityObjectKind of the first of its words in the fields of an OVERHEAD line.
uint32_t ObjectKindIn(std::string_view fields);

struct MarkerTexts {
  std::string_view name;    // empty: none, as of the end of a range
  std::string_view domain;  // empty: the default one
};
// ", domain ..., name ..." or ", name ..., domain ...", what comes last to the end of the line.
MarkerTexts MarkerTextsOf(std::string_view fields);

// A payload is printed as an integer and as a floating-point number, "42/0.000000", and what it
// was is not: the bits of a small integer are next to 0 as a number, those of a negative one none.
NvtxPayload PayloadTypeOf(uint64_t bits, std::string_view printed);

}  // namespace xpu
