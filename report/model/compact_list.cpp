#include "report/model/compact_list.h"

#include <numeric>

namespace xpu {

std::vector<uint32_t> PlacesInOrder(const std::vector<uint64_t>& numbers) {
  std::vector<uint32_t> places(numbers.size());
  std::iota(places.begin(), places.end(), uint32_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](uint32_t a, uint32_t b) { return numbers[a] < numbers[b]; });
  return places;
}

}  // namespace xpu
