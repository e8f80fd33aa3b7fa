// The container: the file header and the frame of a block. FORMAT.md describes these bytes; they
// are frozen. What is inside a block is message.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace xpu {

// What a capture begins with.
inline constexpr std::string_view kFileMagic("\x89XPU\r\n\x1a\n", 8);

inline constexpr uint16_t kContainerVersion = 1;
// Raised when a reader that does not know a change would misread a file.
inline constexpr uint32_t kReaderGeneration = 1;

inline constexpr size_t kFileHeaderMinBytes = 40;
inline constexpr size_t kFileHeaderMaxBytes = 4096;
inline constexpr size_t kBlockHeaderBytes = 64;
inline constexpr uint32_t kMaxRawBytes = uint32_t{4} << 20;
inline constexpr uint32_t kMaxStoredBytes = kMaxRawBytes + (uint32_t{64} << 10);
inline constexpr uint32_t kMaxEventsPerBlock = 65536;
// A reader reads so many events of a file, and as many more as the messages of their blocks have
// bytes: events that are all alike take none. Recordings take 4 bytes an event and more.
inline constexpr uint64_t kEventsWithoutBytes = uint64_t{1} << 18;
inline constexpr uint64_t kDefinitionsWithoutBytes = uint64_t{1} << 19;  // likewise

struct FileHeader {
  uint32_t generation = kReaderGeneration;  // a reader must be at least of this one
  uint64_t capture_id = 0;
  std::string writer = {};    // "xpu 0.1.0"
  std::string features = {};  // names that a reader must know, separated by blanks
};

std::string EncodeFileHeader(const FileHeader& header);

enum class FileHeaderState {
  kWhole,
  kNewer,    // whole, but of another container version
  kCut,      // the bytes are the beginning of a header
  kDamaged,  // the magic is there, the checksum is wrong
  kAbsent,   // no magic
};
struct ParsedFileHeader {
  FileHeaderState state = FileHeaderState::kAbsent;
  uint16_t container_version = 0;
  FileHeader header;
  size_t size_bytes = 0;  // of the header in the file; 0 unless whole
};
ParsedFileHeader ParseFileHeader(std::span<const std::byte> file);

struct BlockHeader {
  uint64_t capture_id = 0;
  uint64_t sequence = 0;       // of the blocks of the file, from 1
  uint64_t events_before = 0;  // events in the blocks before it
  uint32_t events = 0;
  uint32_t generation = kReaderGeneration;
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;
  uint64_t payload_checksum = 0;
};

// The first place at or after `from` where a block's magic stands, or the file's size.
size_t FindBlockMagic(std::span<const std::byte> file, size_t from);
// The same without the zeros between the parts of `data`.
size_t FindBlockMagic(std::span<const std::byte> file, std::span<const ByteRange> data,
                      size_t from);
// nullopt: no block header with a right checksum and sizes within the limits begins here.
std::optional<BlockHeader> ParseBlockHeader(std::span<const std::byte> bytes);
// True when `bytes` (shorter than a header) may be the beginning of a block header.
bool BeginsBlockHeader(std::span<const std::byte> bytes);

// Compresses messages into blocks.
class BlockEncoder {
 public:
  explicit BlockEncoder(int compression_level);

  // Header and payload. Fills the sizes and the checksum of `header`. Valid until the next call.
  std::string_view Encode(BlockHeader header, std::span<const std::byte> message);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  int compression_level_;
  std::string buffer_;
};

// How often, on average, a byte of a file may be part of the payload of a damaged block.
inline constexpr uint64_t kSearchesPerByte = 8;

// True: these are the bytes that the header was written for, so its sizes hold too.
bool IsPayloadOf(const BlockHeader& header, std::span<const std::byte> payload);

class BlockDecoder {
 public:
  BlockDecoder();

  // The message in the payload, 8-byte aligned, or nullopt when it is not a compressed message of
  // the size that the header says. Allocates at most kMaxRawBytes. Valid until the next call.
  std::optional<std::span<const std::byte>> Decode(const BlockHeader& header,
                                                   std::span<const std::byte> payload);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<uint64_t> buffer_;
};

}  // namespace xpu
