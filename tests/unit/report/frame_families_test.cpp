#include <gtest/gtest.h>

#include "report/workload/framework_names.h"

namespace xpu {
namespace {

FrameFamily Native(std::string name, std::string module = "libtorch_cpu.so") {
  return FrameFamilyOf({.name = std::move(name), .module = std::move(module)});
}
FrameFamily Python(std::string name, std::string path) {
  return FrameFamilyOf(
      {.origin = FrameOrigin::kPython, .name = std::move(name), .module = std::move(path)});
}

TEST(FrameFamiliesTest, TheDispatcherOfPytorch) {
  EXPECT_EQ(Native("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)"),
            FrameFamily::kDispatcher);
  // The operator itself, and its code.
  EXPECT_EQ(Native("at::_ops::add_Tensor::call(at::Tensor const&)"), FrameFamily::kNone);
  EXPECT_EQ(Native("at::native::add_kernel(at::TensorIteratorBase&)"), FrameFamily::kNone);
  EXPECT_EQ(Native("torch::autograd::VariableType::(anonymous namespace)::mm(c10::DispatchKeySet)"),
            FrameFamily::kDispatcher);
  EXPECT_EQ(Native("at::(anonymous namespace)::wrapper_CUDA_add_Tensor(at::Tensor const&)"),
            FrameFamily::kDispatcher);
}

TEST(FrameFamiliesTest, TemplatesBeginWithTheirReturnType) {
  EXPECT_EQ(Native("at::Tensor c10::Dispatcher::callWithDispatchKeySlowPath<at::Tensor, int>(int)"),
            FrameFamily::kDispatcher);
  EXPECT_EQ(Native("std::tuple<at::Tensor, c10::Dispatcher> at::native::f<c10::impl::A>(int)"),
            FrameFamily::kNone);
  EXPECT_EQ(Native("void at::native::g(c10::Dispatcher::Handle x)"), FrameFamily::kNone);
}

TEST(FrameFamiliesTest, PythonsOwnCode) {
  EXPECT_EQ(Native("PyDict_SetDefault", "python3.12"), FrameFamily::kInterpreter);
  EXPECT_EQ(Native("python_bindings_init", "libfoo.so"), FrameFamily::kNone);
  EXPECT_EQ(Python("<frozen importlib._bootstrap>:_find_and_load", "<frozen importlib._bootstrap>"),
            FrameFamily::kImport);
  EXPECT_EQ(Python("module.py:Module._call_impl", "/site-packages/torch/nn/modules/module.py"),
            FrameFamily::kDispatcher);
  EXPECT_EQ(Python("train.py:main", "/app/train.py"), FrameFamily::kNone);
}

TEST(FrameFamiliesTest, OtherKindsOfFramesHaveNone) {
  EXPECT_EQ(
      FrameFamilyOf({.origin = FrameOrigin::kGpuWork, .name = "c10::impl::kernel", .module = {}}),
      FrameFamily::kNone);
  EXPECT_EQ(NameOf(FrameFamily::kImport), "[import]");
}

}  // namespace
}  // namespace xpu
