// What a process that reads debug information and the one that asks it say to each other.
//
// The asking one opens the files and hands them over with the greeting: the reader needs no path,
// and its user may not be able to open it. Then requests and replies take turns. What the reader
// sends is believed no more than the file it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {

struct ReaderGreeting {
  static constexpr uint32_t kMagic = 0x78707264;
  uint32_t magic = kMagic;
  uint32_t has_alternate = 0;  // a second file
  uint32_t becomes_user = 0;
  uint32_t user = 0;
  uint32_t group = 0;
  uint32_t seconds = 0;      // for each answer
  uint32_t cpu_seconds = 0;  // of a CPU, likewise
  // The file is the root directory of a process, below which texts are read, not debug information.
  uint32_t reads_texts = 0;
  uint64_t memory_bytes = 0;
};

enum class ReaderQuestion : uint32_t { kFrames = 1, kFunctions = 2, kText = 3 };

struct ReaderRequest {  // then the addresses; of a text its path, filled up with zeros
  ReaderQuestion question = ReaderQuestion::kFrames;
  uint32_t count = 0;
};

struct ReaderReply {  // then the bytes
  uint64_t bytes = 0;
};
constexpr uint64_t kMostReplyBytes = uint64_t{1} << 30;
// A larger file is not a source that anybody wrote.
constexpr uint64_t kMostTextBytes = uint64_t{1} << 20;
constexpr size_t kMostPathBytes = 4096;
// The reply to kText begins with one of these: the text follows, or the reason why there is none;
// the last one says that this user may not read it.
constexpr char kIsText = '+';
constexpr char kIsNoText = '-';
constexpr char kIsRefused = '!';

using FrameLists = std::vector<std::vector<SourceFrame>>;

std::string Encode(const FrameLists& frames);
std::string Encode(const std::vector<SourceFunction>& functions);
// Texts point into `bytes`. nullopt: damaged; the functions are such that WriteDebugSections may
// have them.
std::optional<FrameLists> DecodeFrames(std::string_view bytes, size_t count);
std::optional<std::vector<SourceFunction>> DecodeFunctions(std::string_view bytes);

}  // namespace xpu::dwarf
