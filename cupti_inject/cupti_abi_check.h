// What the files that check our descriptions of CUPTI have in common.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::cupti {

template <size_t N, size_t M>
constexpr bool SameSizes(const size_t (&ours)[N], const size_t (&theirs)[M]) {
  if (N != M) return false;
  for (size_t i = 0; i < N; ++i) {
    if (ours[i] != theirs[i]) return false;
  }
  return true;
}

#define SAME(ours, theirs) static_assert(static_cast<int64_t>(ours) == int64_t{theirs})

// A newer toolkit may append fields: then the newest layouts here are prefixes of its own, and
// only the 13.0 header says their exact sizes and names. The size of a pointer is meant too.
#define AT(ours, our_field, theirs, their_field)                                         \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&            \
                    sizeof(ours::our_field) == sizeof(theirs::their_field), /* NOLINT */ \
                #ours "." #our_field)

}  // namespace xpu::cupti
