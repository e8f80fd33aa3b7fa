// One line of a printed trace, taken apart without knowing which record it is of.
//
//   KIND WORD "quoted" [ 100, 250 ] duration 150, size 4096, srcKind PAGEABLE, grid [ 1, 2, 3 ]
//
// Versions of CUPTI's samples write times as [ 100, 250 ] or [ 100 - 250 ], fields as `name value`,
// `name=value` or `name: value`. Texts point into the line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "format/events.h"

namespace xpu {

// Without spaces at the ends.
std::string_view Trimmed(std::string_view text);
// Decimal or 0x..., after spaces; a negative one as its two's complement.
std::optional<uint64_t> LeadingNumber(std::string_view text);

class TraceLine {
 public:
  explicit TraceLine(std::string_view line);

  std::string_view text() const { return text_; }
  bool is_empty() const;
  // Further lines of a record are indented, or go on with a comma.
  bool goes_on() const {
    return !text_.empty() && (text_[0] == ' ' || text_[0] == '\t' || text_[0] == ',');
  }
  // "CONCURRENT_KERNEL"; of text that is no record perhaps any word.
  std::string_view kind() const { return kind_; }
  bool looks_like_record() const;

  struct Times {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;  // as start_ns where only one time is given
  };
  // The times in the first brackets of the line.
  std::optional<Times> times() const { return times_; }

  // Between the first and the last quotation mark: names of kernels hold anything.
  std::string_view quoted() const { return quoted_; }
  // Between the kind and what comes next: "HtoD" of older MEMCPY lines, the kind of OVERHEAD.
  std::string_view word() const { return word_; }
  // The text after the times and the quotation, or all of a further line.
  std::string_view fields() const { return fields_; }

  // The first of these fields that is there, in fields() or word(). Negative numbers as their two's
  // complement.
  std::optional<uint64_t> Number(std::initializer_list<std::string_view> names) const;
  // 0 when it is not there or does not fit.
  uint32_t Number32(std::initializer_list<std::string_view> names) const;
  uint64_t Number64(std::initializer_list<std::string_view> names) const {
    return Number(names).value_or(0);
  }
  // Up to a space or comma; empty: not there.
  std::string_view Word(std::string_view name) const;
  // "grid [ 1, 2, 3 ]"
  std::optional<std::array<uint32_t, 3>> Triple(std::string_view name) const;

  // The line is cut within a quotation, or a number that was asked for does not fit.
  bool is_broken() const { return is_broken_; }

 private:
  void TakeTimesAt(size_t bracket);
  void TakeQuoted();
  std::optional<std::string_view> ValueOf(std::string_view name) const;

  std::string_view text_;
  std::string_view kind_;
  std::string_view quoted_;
  std::string_view word_;
  std::string_view fields_;
  std::optional<Times> times_;
  mutable bool is_broken_ = false;
};

// Names that CUPTI's samples give the values of its enumerations, each list by value.
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
