#include "cupti_inject/nvtx_copies.h"

#include "cupti_inject/loaded_files.h"
#include "cupti_inject/loaded_symbols.h"

namespace xpu::inject {
namespace {

constexpr char kFunction[] = "nvtxRangePushA";

// Of ForEachLoadedFile.
int CountOne(dl_phdr_info* info, size_t /*size*/, void* count) {
  LoadedSymbols symbols;
  if (symbols.Find(*info) && symbols.AddressOf(kFunction) != 0) ++*static_cast<uint32_t*>(count);
  return 0;
}

}  // namespace

uint32_t CountNvtxLibraries() {
  uint32_t count = 0;
  ForEachLoadedFile(&CountOne, &count);
  return count;
}

}  // namespace xpu::inject
