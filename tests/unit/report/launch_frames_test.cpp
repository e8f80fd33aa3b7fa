#include <gtest/gtest.h>

#include "report/stacks/frames.h"

namespace xpu {
namespace {

class LaunchFramesTest : public testing::Test {
 protected:
  FrameId User(const char* name) { return frames_.Intern({.name = name, .module = "app"}); }
  FrameId Internal(const char* name) {
    return frames_.Intern({.is_cuda_internal = true, .name = name, .module = "libcuda.so.1"});
  }
  // A function of the API in the program itself: a static libcudart.
  FrameId Api(const char* name) {
    return frames_.Intern({.is_api_entry = true, .name = name, .module = "app"});
  }
  size_t Count(std::vector<FrameId> innermost_first) {
    return CountInternalFrames(innermost_first, frames_);
  }
  FrameTable frames_;
};

TEST_F(LaunchFramesTest, LibrariesAtTheInnermostEnd) {
  EXPECT_EQ(Count({Internal("marker"), Internal("cuda"), User("forward"), User("main")}), 2u);
  EXPECT_EQ(Count({User("forward"), User("main")}), 0u);
  EXPECT_EQ(Count({Internal("marker"), Internal("cuda")}), 2u);
  EXPECT_EQ(Count({}), 0u);
}

TEST_F(LaunchFramesTest, AStaticRuntimeEndsAtItsOutermostFunction) {
  EXPECT_EQ(Count({Internal("marker"), Internal("cuda"), User("libcudart_static_1a2b"),
                   Api("cudaLaunchKernel"), User("forward"), User("main")}),
            4u);
  // CUDA 13: __cudaLaunchKernel calls cudaLaunchKernel.
  EXPECT_EQ(Count({Internal("marker"), Api("cudaLaunchKernel"), Api("__cudaLaunchKernel"),
                   User("forward")}),
            3u);
}

TEST_F(LaunchFramesTest, FramesThatTheWalkInventedDoNotEndTheLibraries) {
  const FrameId unknown = frames_.Intern("[unknown]");
  EXPECT_EQ(Count({Internal("marker"), unknown, Internal("cuda"), User("forward")}), 3u);
  EXPECT_EQ(Count({Internal("marker"), unknown, User("forward"), User("main")}), 1u);
  EXPECT_EQ(Count({Internal("marker"), unknown, unknown, unknown, Internal("cuda")}), 1u);
}

// The program on a thread of libcuda's: what called it is libcuda too, but it is not removed.
TEST_F(LaunchFramesTest, ACallBackIntoTheProgramStays) {
  EXPECT_EQ(Count({Internal("marker"), Internal("cuda"), User("callback"), Internal("worker"),
                   User("start_thread")}),
            2u);
  const FrameId outer = frames_.Intern({.is_cuda_internal = true,
                                        .is_api_entry = true,
                                        .name = "cudaLaunchHostFunc",
                                        .module = "libcudart.so.13"});
  EXPECT_EQ(Count({Internal("marker"), User("callback"), outer, User("main")}), 1u);
}

}  // namespace
}  // namespace xpu
