#include "report/export/parquet/encoding.h"

#include <algorithm>
#include <array>
#include <bit>

namespace xpu {
namespace {

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendZigzag(std::string& out, int64_t value) {
  AppendVarint(out, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

// A multiple of 8 values, each in `bit_width` bits, the lowest first.
template <typename Value>
void AppendPacked(std::string& out, std::span<const Value> values, int bit_width) {
  unsigned __int128 bits = 0;
  int held = 0;
  for (const Value value : values) {
    bits |= static_cast<unsigned __int128>(value) << held;
    held += bit_width;
    for (; held >= 8; held -= 8) {
      out += static_cast<char>(bits);
      bits >>= 8;
    }
  }
}

}  // namespace

int BitWidth(uint64_t most) { return std::bit_width(most); }

void AppendFixed32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

void AppendFixed64(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

void AppendRuns(std::string& out, std::span<const uint32_t> values, int bit_width) {
  constexpr size_t kGroup = 8;
  const auto run_at = [&](size_t at) {
    size_t end = at + 1;
    while (end < values.size() && values[end] == values[at]) ++end;
    return end - at;
  };
  size_t at = 0;
  while (at < values.size()) {
    if (const size_t run = run_at(at); run >= kGroup || bit_width == 0) {
      AppendVarint(out, run << 1);
      for (int shift = 0; shift < bit_width; shift += 8) {
        out += static_cast<char>(values[at] >> shift);
      }
      at += run;
      continue;
    }
    // Groups of 8 until one begins with a run.
    size_t end = at;
    do {
      end += kGroup;
    } while (end < values.size() && run_at(end) < kGroup);
    const size_t groups = (end - at) / kGroup;
    AppendVarint(out, groups << 1 | 1);
    for (size_t group = 0; group < groups; ++group) {
      std::array<uint32_t, kGroup> packed{};
      const size_t first = at + group * kGroup;
      const size_t last = std::min(first + kGroup, values.size());
      std::copy(values.begin() + static_cast<ptrdiff_t>(first),
                values.begin() + static_cast<ptrdiff_t>(last), packed.begin());
      AppendPacked<uint32_t>(out, packed, bit_width);
    }
    at = end;
  }
}

void AppendDeltas(std::string& out, std::span<const int64_t> values) {
  constexpr size_t kBlock = 128;
  constexpr size_t kMiniBlocks = 4;
  constexpr size_t kMiniBlock = kBlock / kMiniBlocks;
  AppendVarint(out, kBlock);
  AppendVarint(out, kMiniBlocks);
  AppendVarint(out, values.size());
  AppendZigzag(out, values.empty() ? 0 : values.front());
  std::array<uint64_t, kBlock> deltas{};
  for (size_t at = 1; at < values.size(); at += kBlock) {
    const size_t count = std::min(kBlock, values.size() - at);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < count; ++i) {
      // Modulo 2^64: numbers may be as far apart as numbers can be.
      deltas[i] = static_cast<uint64_t>(values[at + i]) - static_cast<uint64_t>(values[at + i - 1]);
      least = std::min(least, static_cast<int64_t>(deltas[i]));
    }
    for (size_t i = 0; i < kBlock; ++i) {
      deltas[i] = i < count ? deltas[i] - static_cast<uint64_t>(least) : 0;
    }
    AppendZigzag(out, least);
    std::array<int, kMiniBlocks> widths{};
    for (size_t mini = 0; mini < kMiniBlocks; ++mini) {
      uint64_t all = 0;
      for (size_t i = 0; i < kMiniBlock; ++i) all |= deltas[mini * kMiniBlock + i];
      widths[mini] = BitWidth(all);
      out += static_cast<char>(widths[mini]);
    }
    // Mini-blocks without a value are left out.
    for (size_t mini = 0; mini * kMiniBlock < count; ++mini) {
      AppendPacked<uint64_t>(out, std::span(deltas).subspan(mini * kMiniBlock, kMiniBlock),
                             widths[mini]);
    }
  }
}

}  // namespace xpu
