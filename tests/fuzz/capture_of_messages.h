// A capture whose blocks hold the given messages, everything around them right: what a hostile
// writer can do. An input is a row of messages, each after its length in four bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "format/block.h"

namespace xpu::fuzz {

inline std::string CaptureOfMessages(std::span<const uint8_t> input) {
  static BlockEncoder encoder(-50);
  std::string file = EncodeFileHeader({.capture_id = 1, .writer = {}, .features = {}});
  for (uint64_t sequence = 1; input.size() > sizeof(uint32_t); ++sequence) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, input.data(), sizeof(bytes));
    input = input.subspan(sizeof(bytes));
    const auto message = input.first(std::min<size_t>({bytes, input.size(), kMaxRawBytes}));
    input = input.subspan(message.size());
    std::vector<uint64_t> words(message.size() / sizeof(uint64_t));
    if (!words.empty()) std::memcpy(words.data(), message.data(), words.size() * sizeof(uint64_t));
    file += encoder.Encode({.capture_id = 1, .sequence = sequence, .events = kMaxEventsPerBlock},
                           std::as_bytes(std::span(words)));
  }
  return file;
}

}  // namespace xpu::fuzz
