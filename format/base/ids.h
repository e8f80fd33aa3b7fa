// Ids are types, not integers: a StringId cannot be passed where a StackId is meant.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace xpu {

template <typename Tag, typename Rep>
struct Id {
  using Value = Rep;
  Rep value = 0;  // 0 is "none" for every id of this project

  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

}  // namespace xpu

template <typename Tag, typename Rep>
struct std::hash<xpu::Id<Tag, Rep>> {
  size_t operator()(xpu::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
