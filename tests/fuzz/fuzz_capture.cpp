// A whole file. Checksums stop most inputs early: fuzz_message bypasses them.
#include <span>

#include "read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto reader = xpu::CaptureReader::FromBytes(std::as_bytes(std::span(data, size)), "fuzz");
  if (reader.ok()) xpu::fuzz::ReadAll(*reader);
  return 0;
}
