#include "cupti_inject/nvtx_copies.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

TEST(NvtxCopies, LibrariesThatExportItAreCounted) {
  const uint32_t before = CountNvtxLibraries();
  void* library = dlopen(XPU_STUB_NVTX, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(CountNvtxLibraries(), before + 1);
  dlclose(library);
  EXPECT_EQ(CountNvtxLibraries(), before);
}

}  // namespace
}  // namespace xpu::inject
