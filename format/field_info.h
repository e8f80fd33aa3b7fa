// What capture.capnp says of a field, for those who go through the fields of events.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace xpu {

enum class Clock : uint8_t { kNone, kMonotonic, kRealtime, kCupti };

enum class Meaning : uint8_t {
  kNumber,
  kProcess,     // of a process or a thread
  kDefinition,  // of another event of the capture: defines it or refers to it
  kAddress,     // shown in hexadecimal
  kStackFlags,  // StackFlag's bits (format/stack.h)
  kBytes,       // of a StringId: what it names is not text
};

struct FieldInfo {
  const char* name;
  Clock clock = Clock::kNone;  // other than kNone: the field is a time in nanoseconds
  Meaning meaning = Meaning::kNumber;

  // Most visitors want nothing but the name.
  constexpr operator const char*() const { return name; }       // NOLINT
  constexpr operator std::string_view() const { return name; }  // NOLINT
};

// An event, const or not.
template <typename T, typename Event>
concept SameEvent = std::same_as<std::remove_const_t<T>, Event>;

}  // namespace xpu
