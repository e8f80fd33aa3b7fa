// The files other than ELF files that tell the recorder of a program: who writes them may be the
// program. The first byte chooses which one the rest is.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "format/base/check.h"
#include "record/base/process_status.h"
#include "record/kernel/perf_records.h"
#include "record/process/loader.h"
#include "record/process/process_maps.h"
#include "record/symbols/generated_code.h"

namespace {

using namespace xpu;

void Check(const std::vector<GeneratedCode>& code, const std::vector<uint64_t>& addresses) {
  for (const GeneratedCode& one : code) {
    bool covers = false;
    for (const uint64_t address : addresses) covers |= address - one.address < one.size_bytes;
    XPU_CHECK(covers && one.name.size() <= 1024);
  }
}

// Addresses that the text has a chance to cover.
std::vector<uint64_t> SomeAddresses() {
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < 64; ++i) addresses.push_back(i * i * 7);
  addresses.push_back(0x7f0000001000);
  addresses.push_back(UINT64_MAX);
  return addresses;
}

void ReadMaps(std::string_view text) {
  const auto mappings = ParseProcessMaps(text);
  for (const ProcessMapping& mapping : mappings) {
    XPU_CHECK(mapping.end_address > mapping.start_address);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Of exactly the size, so that a read beyond its end is detected.
  const auto copy = std::make_unique<char[]>(size - 1);
  std::memcpy(copy.get(), data + 1, size - 1);
  const std::string_view text(copy.get(), size - 1);
  const std::vector<uint64_t> addresses = SomeAddresses();
  switch (data[0] % 6) {
    case 0:
      Check(ParsePerfMap(text, addresses), addresses);
      break;
    case 1:
      Check(ParseJitDump(text, addresses), addresses);
      break;
    case 2:
      ReadMaps(text);
      break;
    case 3:
      static_cast<void>(ParseProcessStat(text));
      break;
    case 4:
      LibrariesOfLoaderCache(text);
      CudaLibrariesOfCache(text);
      break;
    default:
      static_cast<void>(ParsePerfRecord(std::as_bytes(std::span(text))));
      break;
  }
  return 0;
}
