#include "format/fused_calls.h"

#include <string>

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Names = std::vector<std::string_view>;

// As Inductor of PyTorch 2.11 writes it, with its debug handles.
constexpr std::string_view kText =
    "# Topologically Sorted Source Nodes: [x], Original ATen: [aten.relu]\n"
    "relu = async_compile.triton('relu', '''\n"
    "def call(self, args):\n"
    "        # Topologically Sorted Source Nodes: [gate, scaled_2], Original ATen: [aten.silu, "
    "prims.mul]\n"
    "        # [Provenance debug handles] triton_0:1\n"
    "        stream0 = get_raw_stream(0)\n"
    "        triton_0.run(buf0, buf1, 32768, stream=stream0)\n"
    "        del buf0\n"
    "        # Unsorted Source Nodes: [], Original ATen: [aten.mm]\n"
    "        extern_kernels.mm(buf1, arg0, out=buf2)\n"
    "        # Topologically Sorted Source Nodes: [y], Original ATen: [aten.add]\n";

TEST(FusedCalls, AreThoseOfTheCommentsAboveThem) {
  const std::vector<FusedCall> calls = FusedCallsOf(kText, 101);
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls[0].first_line, 105);
  EXPECT_EQ(calls[0].last_line, 107);
  EXPECT_EQ(calls[0].nodes, (Names{"gate", "scaled_2"}));
  EXPECT_EQ(calls[0].operators, (Names{"aten.silu", "prims.mul"}));
  EXPECT_EQ(calls[1].first_line, 110);
  EXPECT_EQ(calls[1].last_line, 110);
  EXPECT_EQ(calls[1].nodes, Names{});
  EXPECT_EQ(calls[1].operators, Names{"aten.mm"});
}

TEST(FusedCalls, AreNoneFarFromTheComment) {
  std::string text = "    # Source Nodes: [a], Original ATen: [aten.add]\n";
  for (int i = 0; i < 8; ++i) text += "    assert_size_stride(arg0_1, (1, ), (1, ))\n";
  text += "    kernel.run(arg0_1)\n";
  EXPECT_TRUE(FusedCallsOf(text, 1).empty());
  EXPECT_TRUE(FusedCallsOf("    kernel.run(arg0_1)\n", 1).empty());
}

TEST(FusedCalls, OfDamagedTextAreWhatIsThere) {
  const std::vector<FusedCall> calls =
      FusedCallsOf("  # Source Nodes: [a, , b\n  kernel.run(", 4'000'000'000);
  ASSERT_EQ(calls.size(), 1);
  EXPECT_EQ(calls[0].nodes, (Names{"a", "b"}));
  EXPECT_EQ(calls[0].operators, Names{});
  std::string many = "  # Source Nodes: [";
  for (int i = 0; i < 1'000; ++i) many += "a, ";
  EXPECT_EQ(FusedCallsOf(many + "b]\n  kernel.run()", 1).at(0).nodes.size(), 64);
}

TEST(FusedCalls, NodesAreNumberedVariables) {
  EXPECT_EQ(VariableOf("hidden_states_12"), "hidden_states");
  EXPECT_EQ(VariableOf("x"), "x");
  EXPECT_EQ(VariableOf("conv2"), "conv2");
  EXPECT_EQ(VariableOf("_1"), "_1");
  EXPECT_EQ(VariableOf("12"), "12");
  EXPECT_EQ(VariableOf(""), "");
}

TEST(FusedCalls, AssignedVariables) {
  EXPECT_EQ(AssignedVariable("    gate = F.silu(x)"), "gate");
  EXPECT_EQ(AssignedVariable("\tgate: Tensor = F.silu(x)"), "gate");
  EXPECT_EQ(AssignedVariable("    gate += x"), "gate");
  EXPECT_EQ(AssignedVariable("    größe=1"), "größe");
  for (const std::string_view line :
       {"gate = x", "    gate == x", "    gate(x)", "    return gate", "    gate.weight = x", "",
        "    # gate = x", "    = x", "    if gate: x = 1", "    gate - x", "    gate:"}) {
    EXPECT_EQ(AssignedVariable(line), "") << line;
  }
}

}  // namespace
}  // namespace xpu
