#include "format/block.h"

#include <algorithm>
#include <array>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "format/base/check.h"

namespace xpu {
namespace {

// As PNG's: a byte that is no ASCII, and line ends that a text-mode copy would change.
constexpr std::string_view kBlockMagic("\xb5xpuBLK\n", 8);

std::string_view Chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t Checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// Numbers in the file are little-endian at any alignment.
template <typename T>
void Put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Take() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<T>(static_cast<T>(static_cast<uint8_t>(rest_[i])) << (8 * i));
    }
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view TakeText(size_t size) {
    std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
};

bool IsPrefix(std::string_view bytes, std::string_view of) {
  return of.substr(0, bytes.size()) == bytes.substr(0, of.size());
}

}  // namespace

// ---- file header -------------------------------------------------------------------------------

std::string EncodeFileHeader(const FileHeader& header) {
  const size_t size = kFileHeaderMinBytes + header.writer.size() + header.features.size();
  XPU_CHECK(size <= kFileHeaderMaxBytes);
  std::string out(kFileMagic);
  Put<uint16_t>(out, kContainerVersion);
  Put<uint16_t>(out, static_cast<uint16_t>(size));
  Put<uint32_t>(out, header.generation);
  Put<uint64_t>(out, header.capture_id);
  Put<uint16_t>(out, static_cast<uint16_t>(header.writer.size()));
  Put<uint16_t>(out, static_cast<uint16_t>(header.features.size()));
  Put<uint32_t>(out, 0);
  out += header.writer;
  out += header.features;
  Put<uint64_t>(out, Checksum(out));
  XPU_CHECK(out.size() == size);
  return out;
}

ParsedFileHeader ParseFileHeader(std::span<const std::byte> file) {
  ParsedFileHeader parsed;
  const std::string_view bytes = Chars(file);
  if (bytes.empty() || !IsPrefix(bytes, kFileMagic)) return parsed;
  parsed.state = FileHeaderState::kCut;
  if (bytes.size() < kFileHeaderMinBytes) return parsed;

  Cursor cursor(bytes.substr(kFileMagic.size()));
  parsed.container_version = cursor.Take<uint16_t>();
  const size_t size = cursor.Take<uint16_t>();
  parsed.header.generation = cursor.Take<uint32_t>();
  parsed.header.capture_id = cursor.Take<uint64_t>();
  const size_t writer_bytes = cursor.Take<uint16_t>();
  const size_t features_bytes = cursor.Take<uint16_t>();
  cursor.Take<uint32_t>();

  parsed.state = FileHeaderState::kDamaged;
  if (size < kFileHeaderMinBytes || size > kFileHeaderMaxBytes) return parsed;
  if (size > bytes.size()) {
    parsed.state = FileHeaderState::kCut;
    return parsed;
  }
  const std::string_view covered = bytes.substr(0, size - sizeof(uint64_t));
  if (Cursor(bytes.substr(covered.size())).Take<uint64_t>() != Checksum(covered)) return parsed;
  if (writer_bytes + features_bytes > size - kFileHeaderMinBytes) return parsed;
  parsed.header.writer = cursor.TakeText(writer_bytes);
  parsed.header.features = cursor.TakeText(features_bytes);
  parsed.size_bytes = size;
  parsed.state = parsed.container_version == kContainerVersion ? FileHeaderState::kWhole
                                                               : FileHeaderState::kNewer;
  return parsed;
}

// ---- block header ------------------------------------------------------------------------------

namespace {

void PutBlockHeader(std::string& out, const BlockHeader& header) {
  out += kBlockMagic;
  Put(out, header.capture_id);
  Put(out, header.sequence);
  Put(out, header.events_before);
  Put(out, header.events);
  Put(out, header.generation);
  Put(out, header.raw_bytes);
  Put(out, header.stored_bytes);
  Put(out, header.payload_checksum);
  Put(out, Checksum(out));
}

}  // namespace

size_t FindBlockMagic(std::span<const std::byte> file, size_t from) {
  const size_t found = Chars(file).find(kBlockMagic, from);
  return found == std::string_view::npos ? file.size() : found;
}

size_t FindBlockMagic(std::span<const std::byte> file, std::span<const ByteRange> data,
                      size_t from) {
  auto range =
      std::upper_bound(data.begin(), data.end(), from,
                       [](size_t place, const ByteRange& part) { return place < part.end; });
  for (; range != data.end(); ++range) {
    const size_t end = std::min(range->end, file.size());
    const size_t found = FindBlockMagic(file.first(end), std::max(from, range->begin));
    if (found < end) return found;
  }
  return file.size();
}

std::optional<BlockHeader> ParseBlockHeader(std::span<const std::byte> from) {
  const std::string_view bytes = Chars(from);
  if (bytes.size() < kBlockHeaderBytes || !bytes.starts_with(kBlockMagic)) return std::nullopt;
  const std::string_view covered = bytes.substr(0, kBlockHeaderBytes - sizeof(uint64_t));
  if (Cursor(bytes.substr(covered.size())).Take<uint64_t>() != Checksum(covered)) {
    return std::nullopt;
  }
  Cursor cursor(covered.substr(kBlockMagic.size()));
  BlockHeader header;
  header.capture_id = cursor.Take<uint64_t>();
  header.sequence = cursor.Take<uint64_t>();
  header.events_before = cursor.Take<uint64_t>();
  header.events = cursor.Take<uint32_t>();
  header.generation = cursor.Take<uint32_t>();
  header.raw_bytes = cursor.Take<uint32_t>();
  header.stored_bytes = cursor.Take<uint32_t>();
  header.payload_checksum = cursor.Take<uint64_t>();
  if (header.raw_bytes > kMaxRawBytes || header.raw_bytes % sizeof(uint64_t) != 0 ||
      header.stored_bytes > kMaxStoredBytes || header.events > kMaxEventsPerBlock) {
    return std::nullopt;
  }
  return header;
}

bool BeginsBlockHeader(std::span<const std::byte> bytes) {
  return !bytes.empty() && bytes.size() < kBlockHeaderBytes && IsPrefix(Chars(bytes), kBlockMagic);
}

// ---- payload -----------------------------------------------------------------------------------

BlockEncoder::BlockEncoder(int compression_level)
    : context_(ZSTD_createCCtx()), compression_level_(compression_level) {
  XPU_CHECK(context_ != nullptr);
}

void BlockEncoder::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

std::string_view BlockEncoder::Encode(BlockHeader header, std::span<const std::byte> message) {
  XPU_CHECK(message.size() <= kMaxRawBytes && header.events <= kMaxEventsPerBlock);
  buffer_.resize(kBlockHeaderBytes + ZSTD_compressBound(message.size()));
  const size_t stored = ZSTD_compressCCtx(context_.get(), buffer_.data() + kBlockHeaderBytes,
                                          buffer_.size() - kBlockHeaderBytes, message.data(),
                                          message.size(), compression_level_);
  XPU_CHECK(!ZSTD_isError(stored) && stored <= kMaxStoredBytes);
  buffer_.resize(kBlockHeaderBytes + stored);

  header.raw_bytes = static_cast<uint32_t>(message.size());
  header.stored_bytes = static_cast<uint32_t>(stored);
  header.payload_checksum = Checksum(std::string_view(buffer_).substr(kBlockHeaderBytes));
  std::string bytes;
  PutBlockHeader(bytes, header);
  XPU_CHECK(bytes.size() == kBlockHeaderBytes);
  std::copy(bytes.begin(), bytes.end(), buffer_.begin());
  return buffer_;
}

bool IsPayloadOf(const BlockHeader& header, std::span<const std::byte> payload) {
  return payload.size() == header.stored_bytes &&
         Checksum(Chars(payload)) == header.payload_checksum;
}

BlockDecoder::BlockDecoder() : context_(ZSTD_createDCtx()) { XPU_CHECK(context_ != nullptr); }

void BlockDecoder::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

std::optional<std::span<const std::byte>> BlockDecoder::Decode(const BlockHeader& header,
                                                               std::span<const std::byte> payload) {
  XPU_CHECK(header.raw_bytes <= kMaxRawBytes && header.raw_bytes % sizeof(uint64_t) == 0);
  buffer_.resize(header.raw_bytes / sizeof(uint64_t));
  const size_t raw = ZSTD_decompressDCtx(context_.get(), buffer_.data(), header.raw_bytes,
                                         payload.data(), payload.size());
  if (ZSTD_isError(raw) || raw != header.raw_bytes) return std::nullopt;
  return std::as_bytes(std::span(buffer_));
}

}  // namespace xpu
