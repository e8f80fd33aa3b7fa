#include "report/analysis/gpu_names.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

TEST(GpuNames, TitlesAndLeaves) {
  test::ModelBuilder builder;
  builder.AddKernel(1, 1, 1, 2, "_Z7softmaxIfEvPT_i");
  builder.AddKernel(1, 1, 1, 2, "");
  builder.events.memcpys.resize(2);
  builder.events.memcpys[0].copy_kind = 8;
  builder.events.memcpys[1].copy_kind = 99;
  builder.events.graph_launches.resize(1);
  builder.events.graph_launches[0].graph_id = 5;
  const Analysis analysis(builder.Build());
  const GpuNames names(analysis, KernelNames::kFull);
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
  const GpuNames mangled(analysis, KernelNames::kMangled);
  EXPECT_EQ(mangled.Title(work(WorkKind::kKernel, 0)), "_Z7softmaxIfEvPT_i");
}

TEST(GpuNames, GpusAndGraphSizes) {
  test::ModelBuilder builder;
  builder.AddKernel(1, 1, 1, 2, "k");
  builder.AddKernel(1, 1, 1, 2, "k").device_id = 1;
  Memcpy& copy = builder.events.memcpys.emplace_back();
  copy.peer_to_peer = true;
  copy.copy_kind = 10;
  copy.device_id = 1;
  copy.source_device_id = 1;
  builder.events.memsets.resize(1);
  builder.events.graph_launches.resize(1);
  builder.events.graph_launches[0].graph_id = 5;
  for (uint64_t i = 0; i < 2; ++i) {
    builder.events.graph_nodes.push_back(
        {.instance = {}, .change = GraphNodeChange::kCloned, .node_id = uint64_t{5} << 32 | i});
  }
  const Analysis analysis(builder.Build());
  const GpuNames names(analysis, KernelNames::kFull, true);
  std::vector<std::string> leaves;
  for (const GpuWork& work : analysis.correlation.work) leaves.push_back(names.Leaf(work));
  EXPECT_EQ(leaves,
            (std::vector<std::string>{"[GPU0_Kernel]k", "[GPU1_Kernel]k", "[GPU1_Memcpy]PtoP",
                                      "[GPU0_Memset]", "[GPU0_Graph]graph 5 (2 nodes)"}));
  EXPECT_EQ(names.Title(analysis.correlation.work[2]), "Memcpy PtoP 1->0");
}

TEST(GpuNames, Overheads) {
  EXPECT_EQ(OverheadName(0), "unknown");
  EXPECT_EQ(OverheadName(1), "driver compiler");
  EXPECT_EQ(OverheadName(2 << 16), "CUPTI instrumentation");
  EXPECT_EQ(OverheadName(5 << 16), "lazy function loading");
  EXPECT_EQ(OverheadName(8 << 16), "UVM activity init");
  EXPECT_EQ(OverheadName(9 << 16), "unknown (newer CUPTI)");
  EXPECT_EQ(OverheadName((1 << 16) + 1), "unknown (newer CUPTI)");
}

TEST(KernelOfHostFunction, StubsAndOthers) {
  EXPECT_EQ(KernelOfHostFunction("_Z7softmaxIfEvPT_i"), "_Z7softmaxIfEvPT_i");
  EXPECT_EQ(KernelOfHostFunction("_Z29__device_stub__Z6matmulPfS_S_PfS_S_"), "_Z6matmulPfS_S_");
  EXPECT_EQ(KernelOfHostFunction("_ZL32__device_stub__Z7softmaxIfEvPT_iRPfi"),
            "_Z7softmaxIfEvPT_i");
  EXPECT_EQ(KernelOfHostFunction("__device_stub__plain"), "plain");
  EXPECT_EQ(KernelOfHostFunction("main"), "main");
  EXPECT_EQ(KernelOfHostFunction(""), "");
}

}  // namespace
}  // namespace xpu
