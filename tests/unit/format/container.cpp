#include "container.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "format/base/check.h"

namespace xpu::test {
namespace {

template <typename T>
void Put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

uint64_t Xxh3(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string Zstd(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1);
  XPU_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

std::string WithFileHeaderChecksum(std::string header) {
  header.resize(header.size() - 8);
  Put(header, Xxh3(header));
  return header;
}

std::string RawBlock(const BlockHeader& header, std::string_view payload) {
  std::string out = "\xb5xpuBLK\n";
  Put(out, header.capture_id);
  Put(out, header.sequence);
  Put(out, header.events_before);
  Put(out, header.events);
  Put(out, header.generation);
  Put(out, header.raw_bytes);
  Put(out, header.stored_bytes);
  Put(out, header.payload_checksum);
  Put(out, Xxh3(out));
  out += payload;
  return out;
}

std::string BlockOf(std::span<const std::byte> message, uint64_t sequence, uint32_t events) {
  BlockEncoder encoder(1);
  return std::string(
      encoder.Encode({.capture_id = kCaptureId, .sequence = sequence, .events = events}, message));
}

std::vector<std::byte> FileOf(const std::vector<std::string>& blocks) {
  std::string file = EncodeFileHeader({.capture_id = kCaptureId, .writer = "", .features = ""});
  for (const std::string& block : blocks) file += block;
  const auto bytes = std::as_bytes(std::span(file));
  return {bytes.begin(), bytes.end()};
}

}  // namespace xpu::test
