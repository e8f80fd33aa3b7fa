#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "record/base/environment.h"
#include "record/probes/probe_source.h"
#include "record/process/loader.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::TempDirectory;
using Paths = std::vector<std::string>;

TEST(ProbeLibraries, Names) {
  EXPECT_TRUE(IsCudaLibrary("/usr/lib/x86_64-linux-gnu/libcuda.so.580.82.07"));
  EXPECT_TRUE(IsCudaLibrary("libcuda.so"));
  EXPECT_TRUE(IsCudaLibrary("/a/libcudart.so.13"));
  EXPECT_TRUE(IsCudaLibrary("/torch/lib/libcudart-9335f6a2.so.12"));
  EXPECT_FALSE(IsCudaLibrary("/a/libcudadebugger.so.1"));
  EXPECT_FALSE(IsCudaLibrary("/a/libcudart_static.a"));
  EXPECT_FALSE(IsCudaLibrary("/a/libcudart-notes.txt"));
  EXPECT_FALSE(IsCudaLibrary("/libcuda.so.1/other"));
  EXPECT_FALSE(IsCudaLibrary("//anon"));
  EXPECT_FALSE(IsCudaLibrary(""));
}

TEST(ProbeLibraries, OfTheLoadersCache) {
  constexpr char kPaths[] =
      "/lib/libc.so.6\0libcuda.so.1\0/usr/lib/libcuda.so.1\0/opt/cuda/libcudart.so.12";
  const std::string cache = std::string("glibc-ld.so.cache1.1") + std::string(40, '\0') +
                            std::string(kPaths, sizeof(kPaths));
  EXPECT_EQ(CudaLibrariesOfCache(cache),
            (Paths{"/usr/lib/libcuda.so.1", "/opt/cuda/libcudart.so.12"}));
  EXPECT_EQ(CudaLibrariesOfCache(""), Paths{});
}

TEST(ProbeLibraries, DirectoriesOfRunPaths) {
  EXPECT_EQ(DirectoriesOf("$ORIGIN/../lib:/opt/cuda;:lib:${ORIGIN}", "/app/bin"),
            (Paths{"/app/bin/../lib", "/opt/cuda", "/app/bin"}));
  EXPECT_EQ(DirectoriesOf("", "/app"), Paths{});
}

TEST(ProbeLibraries, InTheDirectoriesOfTheEnvironmentEachFileOnce) {
  TempDirectory directory;
  std::ofstream(directory / "libcudart.so.13.0.48") << "x";
  std::ofstream(directory / "libother.so") << "x";
  std::filesystem::create_symlink("libcudart.so.13.0.48", directory / "libcudart.so.13");
  std::filesystem::create_symlink("nowhere", directory / "libcuda.so.1");
  const std::string real = std::filesystem::canonical(directory.path()).native();
  Paths here;
  for (const std::string& path :
       FindCudaLibraries("sh", {"PATH=/bin", "LD_LIBRARY_PATH=/nowhere:" + directory.path()})) {
    if (path.starts_with(real)) here.push_back(path);
  }
  EXPECT_EQ(here, Paths{real + "/libcudart.so.13.0.48"});
}

TEST(ProbeLibraries, Programs) {
  EXPECT_EQ(FindProgram("./a", "/bin"), "./a");
  EXPECT_EQ(FindProgram("sh", "/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(FindProgram("no such program", "/bin"), "");
}

TEST(FramesFromCaller, CallerFirstOnce) {
  const auto user = [](uint64_t address) { return Frame{FrameKind::kUser, address}; };
  const std::vector<Frame> missed = {user(1), user(30), user(40)};
  const std::vector<Frame> found = {user(1), user(20), user(30), user(40)};
  const std::vector<Frame> expected = {user(20), user(30), user(40)};
  EXPECT_EQ(FramesFromCaller(missed, 20), expected);
  EXPECT_EQ(FramesFromCaller(found, 20), expected);
  EXPECT_EQ(FramesFromCaller(found, 0), expected);  // not readable: what the walk has
  EXPECT_EQ(FramesFromCaller({}, 20), std::vector<Frame>{user(20)});
  EXPECT_EQ(FramesFromCaller({}, 0), std::vector<Frame>{});
}

}  // namespace
}  // namespace xpu
