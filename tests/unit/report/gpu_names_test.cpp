#include "report/gpu_names.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

TEST(ShortKernelName, WithoutParameters) {
  EXPECT_EQ(ShortKernelName("void softmax<float>(float*, int)"), "softmax<float>");
  EXPECT_EQ(ShortKernelName("void a::f<b(int)>(b (*)(int))"), "a::f<b(int)>");
  EXPECT_EQ(ShortKernelName("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(ShortKernelName("sm80_gemm"), "sm80_gemm");
  EXPECT_EQ(ShortKernelName("[CUDA memset]"), "[CUDA memset]");
  EXPECT_EQ(ShortKernelName("(x)"), "(x)");
  EXPECT_EQ(ShortKernelName("))"), "))");
  EXPECT_EQ(ShortKernelName(""), "");
}

TEST(GpuNames, TitlesAndLeaves) {
  test::ModelBuilder builder;
  builder.AddKernel(1, 1, 1, 2, "_Z7softmaxIfEvPT_i");
  builder.AddKernel(1, 1, 1, 2, "");
  builder.events.memcpys.resize(2);
  builder.events.memcpys[0].copy_kind = 8;
  builder.events.memcpys[1].copy_kind = 99;
  builder.events.graph_launches.resize(1);
  builder.events.graph_launches[0].graph_id = 5;
  const Model model = builder.Build();
  const GpuNames names(model, KernelNames::kDemangled);
  const auto work = [](WorkKind kind, uint32_t index) {
    GpuWork made;
    made.kind = kind;
    made.index = index;
    return made;
  };
  EXPECT_EQ(names.Leaf(work(WorkKind::kKernel, 0)), "[GPU_Kernel]void softmax<float>(float*, int)");
  EXPECT_EQ(names.Leaf(work(WorkKind::kKernel, 1)), "[GPU_Kernel][unnamed]");
  EXPECT_EQ(names.Leaf(work(WorkKind::kMemcpy, 0)), "[GPU_Memcpy]DtoD");
  EXPECT_EQ(names.Leaf(work(WorkKind::kMemcpy, 1)), "[GPU_Memcpy]?");
  EXPECT_EQ(names.Leaf(work(WorkKind::kGraph, 0)), "[GPU_Graph]graph 5");
  EXPECT_EQ(names.Title(work(WorkKind::kMemcpy, 0)), "Memcpy DtoD");
  const GpuNames mangled(model, KernelNames::kMangled);
  EXPECT_EQ(mangled.Title(work(WorkKind::kKernel, 0)), "_Z7softmaxIfEvPT_i");
}

}  // namespace
}  // namespace xpu
