// The message of a block, with everything right around it: what a hostile writer can do. The input
// is read as two blocks with the same content, so definitions meet definitions.
#include <cstring>
#include <span>
#include <vector>

#include "format/block.h"
#include "read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace xpu;
  if (size > kMaxRawBytes) return 0;
  std::vector<uint64_t> words(size / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint64_t));
  static BlockEncoder encoder(-50);
  std::string file = EncodeFileHeader({.capture_id = 1, .writer = {}, .features = {}});
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    file += encoder.Encode({.capture_id = 1, .sequence = sequence, .events = kMaxEventsPerBlock},
                           std::as_bytes(std::span(words)));
  }
  auto reader = CaptureReader::FromBytes(std::as_bytes(std::span(file)), "fuzz");
  XPU_CHECK(reader.ok());
  fuzz::ReadAll(*reader);
  XPU_CHECK(reader->problems().blocks_read + reader->problems().blocks_damaged == 2);
  return 0;
}
