#include "symbolize/dwarf/sections.h"

#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include "format/base/text.h"
#include "symbolize/dwarf/byte_reader.h"

namespace xpu::dwarf {
namespace {

constexpr std::array<std::string_view, kSectionCount> kNames = {
    "info",   "abbrev",   "str",  "line_str",    "line",
    "ranges", "rnglists", "addr", "str_offsets", "cu_index"};

// DWARF shrinks to a third, rarely to a tenth; a header that promises more than this lies.
constexpr uint64_t kLargestRatio = 2048;
constexpr uint64_t kLargestSection = uint64_t{1} << 34;

constexpr uint32_t kCompressZlib = 1;  // ELFCOMPRESS_
constexpr uint32_t kCompressZstd = 2;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool InflateZlib(std::string_view from, char* to, uint64_t to_bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return false;
  // zlib counts in 32 bits.
  constexpr uint64_t kMost = uint64_t{1} << 30;
  uint64_t given = 0;
  uint64_t made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const uint64_t in = std::min<uint64_t>(kMost, from.size() - given);
    const uint64_t out = std::min<uint64_t>(kMost, to_bytes - made);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data() + given));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(to + made);
    stream.avail_out = static_cast<uInt>(out);
    status = inflate(&stream, Z_NO_FLUSH);
    given += in - stream.avail_in;
    made += out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out) break;
  }
  inflateEnd(&stream);
  return made == to_bytes;
}

bool InflateZstd(std::string_view from, char* to, uint64_t to_bytes) {
  return ZSTD_decompress(to, to_bytes, from.data(), from.size()) == to_bytes;
}

}  // namespace

SectionStore::SectionStore(const ElfImage& image, SectionNames names) {
  for (size_t i = 0; i < kSectionCount; ++i) {
    const bool is_index = i == static_cast<size_t>(Section::kUnitIndex);
    const char* end = names == SectionNames::kSplit && !is_index ? ".dwo" : "";
    const ElfSection section = image.Section(Format(".debug_{}{}", kNames[i], end));
    if (section.exists) {
      const std::string_view bytes = AsText(section.bytes);
      sections_.bytes[i] = section.is_compressed ? Inflate(bytes) : bytes;
      continue;
    }
    const ElfSection old = image.Section(Format(".zdebug_{}{}", kNames[i], end));
    sections_.bytes[i] = InflateGnu(AsText(old.bytes));
  }
}

std::string_view SectionStore::Inflate(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto header = reader.Read<Elf64_Chdr>();
  if (reader.failed()) return {};
  if (header.ch_type != kCompressZlib && header.ch_type != kCompressZstd) return {};
  return Inflated(bytes.substr(reader.offset()), header.ch_size, header.ch_type == kCompressZstd);
}

// "ZLIB", the size with the largest byte first, the stream.
std::string_view SectionStore::InflateGnu(std::string_view bytes) {
  if (bytes.substr(0, 4) != "ZLIB") return {};
  ByteReader reader(bytes, 4);
  const uint64_t size_bytes = __builtin_bswap64(reader.U64());
  if (reader.failed()) return {};
  return Inflated(bytes.substr(reader.offset()), size_bytes, false);
}

std::string_view SectionStore::Inflated(std::string_view compressed, uint64_t size_bytes,
                                        bool zstd) {
  if (size_bytes > kLargestSection || size_bytes / kLargestRatio > compressed.size()) return {};
  auto inflated = std::make_unique_for_overwrite<char[]>(size_bytes);
  const bool good = zstd ? InflateZstd(compressed, inflated.get(), size_bytes)
                         : InflateZlib(compressed, inflated.get(), size_bytes);
  if (!good) return {};
  inflated_.push_back(std::move(inflated));
  return {inflated_.back().get(), size_bytes};
}

}  // namespace xpu::dwarf
