#include "symbolize/elf/debug_data.h"

#include <algorithm>

#include <lzma.h>

namespace xpu {
namespace {

// xz -9 asks for 65 MiB, and no section of 64 MiB needs a larger dictionary.
constexpr uint64_t kMaxDecoderBytes = uint64_t{80} << 20;
constexpr size_t kFirstBytes = size_t{256} << 10;

class Decoder {
 public:
  Decoder() { is_ready_ = lzma_stream_decoder(&stream_, kMaxDecoderBytes, 0) == LZMA_OK; }
  ~Decoder() { lzma_end(&stream_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Up to `limit_bytes`; empty: more, or damaged.
  std::string Decode(std::span<const std::byte> input, size_t limit_bytes) {
    if (!is_ready_) return {};
    stream_.next_in = reinterpret_cast<const uint8_t*>(input.data());
    stream_.avail_in = input.size();
    std::string output;
    lzma_ret state = LZMA_OK;
    for (size_t used = 0; state == LZMA_OK && used < limit_bytes;) {
      output.resize(std::min(limit_bytes, std::max(kFirstBytes, output.size() * 2)));
      stream_.next_out = reinterpret_cast<uint8_t*>(output.data()) + used;
      stream_.avail_out = output.size() - used;
      // Without more input a cut stream ends in LZMA_BUF_ERROR.
      state = lzma_code(&stream_, LZMA_FINISH);
      used = output.size() - stream_.avail_out;
    }
    // The checksum of the content has been compared by then.
    if (state != LZMA_STREAM_END) return {};
    output.resize(output.size() - stream_.avail_out);
    return output;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool is_ready_ = false;
};

}  // namespace

std::string DecompressDebugData(std::span<const std::byte> section) {
  if (section.empty()) return {};
  const size_t size = std::min(section.size(), kMaxDebugDataBytes);
  return Decoder().Decode(
      section, std::clamp(size * kMaxDebugDataRatio, kSmallDebugDataBytes, kMaxDebugDataBytes));
}

}  // namespace xpu
