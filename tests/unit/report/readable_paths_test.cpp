#include "report/query/readable_paths.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

class ReadablePathsTest : public testing::Test {
 protected:
  FrameId Python(std::string name, std::string path) {
    return analysis_.frames.Intern(
        {.origin = FrameOrigin::kPython, .name = std::move(name), .module = std::move(path)});
  }
  FrameId Native(std::string name) {
    return analysis_.frames.Intern({.name = std::move(name), .module = "libtorch.so"});
  }
  FrameId Import() {
    return Python("<frozen importlib._bootstrap>:_find_and_load", "<frozen importlib._bootstrap>");
  }
  std::string Readable(const std::vector<FrameId>& frames) {
    PathId path = tree_.Child(PathId{}, analysis_.frames.Intern("python3"));
    for (const FrameId frame : frames) path = tree_.Child(path, frame);
    ReadablePaths readable(analysis_, tree_);
    return FoldedText(analysis_.frames, tree_.Path(readable.Of(path)));
  }

  Analysis analysis_{test::ModelBuilder().Build()};
  CallTree tree_{analysis_.call_trees};
  const FrameId main_ = Python("main.py:<module>", "/app/main.py");
  const FrameId torch_ =
      Python("__init__.py:<module>", "/venv/lib/python3.12/site-packages/torch/__init__.py");
};

TEST_F(ReadablePathsTest, AnImportOfAPackageIsOneFrame) {
  EXPECT_EQ(Readable({Native("_PyEval"), main_, Import(), torch_, Import(),
                      Python("re.py:compile", "/usr/lib/python3.12/re.py"), Native("sre")}),
            "python3;main.py:<module>;[import torch]");
  EXPECT_EQ(Readable({main_, Import(),
                      Python("fx.py:<module>", "/venv/lib/python3.12/site-packages/torch/fx.py")}),
            "python3;main.py:<module>;[import torch.fx]");
  EXPECT_EQ(Readable({main_, Import(), Python("re.py:<module>", "/usr/lib/python3.12/re.py")}),
            "python3;main.py:<module>;[import re]");
  EXPECT_EQ(Readable({main_, Import()}), "python3;main.py:<module>;[import]");
}

TEST_F(ReadablePathsTest, WhatItLaunchesStays) {
  const FrameId call = analysis_.frames.Intern("cudaMemcpy", FrameOrigin::kApi);
  EXPECT_EQ(Readable({main_, Import(), torch_, Native("init"), call}),
            "python3;main.py:<module>;[import torch];cudaMemcpy");
}

// A launcher may import the whole of it.
TEST_F(ReadablePathsTest, AnImportOfTheProgramItselfIsNone) {
  const FrameId launcher = Python("run.py:<module>", "/usr/lib/python3.12/run.py");
  EXPECT_EQ(Readable({launcher, Import(), main_, Python("main.py:train", "/app/main.py"),
                      Native("addmm")}),
            "python3;run.py:<module>;main.py:<module>;main.py:train;addmm");
}

}  // namespace
}  // namespace xpu
