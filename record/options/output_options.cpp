#include "record/options/output_options.h"

#include <charconv>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr double kMostBytes = 1e15;

double UnitOf(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1;
  if (suffix == "K") return 1 << 10;
  if (suffix == "M") return 1 << 20;
  return suffix == "G" ? 1 << 30 : 0;
}

// The size as users write it on the command line.
std::string SizeOption(uint64_t bytes) {
  return bytes % (1 << 20) == 0 ? Format("{}M", bytes >> 20) : Format("{}K", bytes >> 10);
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view option, std::string_view text, uint64_t least_bytes) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const double unit = UnitOf(text.substr(static_cast<size_t>(end - text.data())));
  const double bytes = number * unit;
  if (error != std::errc() || unit == 0 || !(bytes >= 0 && bytes <= kMostBytes)) {
    return Error{ErrorKind::kUsage, Format("{}: invalid size '{}'", option, text),
                 "expected a number followed by K, M or G, such as 64M"};
  }
  if (bytes < static_cast<double>(least_bytes)) {
    return Error{
        ErrorKind::kUsage,
        Format("{}: {} is too small; the minimum is {}", option, text, SizeOption(least_bytes)),
        "expected a number followed by K, M or G, such as 64M"};
  }
  return static_cast<uint64_t>(bytes);
}

}  // namespace xpu
