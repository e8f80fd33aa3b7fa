#include "format/fused_calls.h"

#include <map>
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
      FusedCallsOf("  # Source Nodes: [a, , b c, d;e, f\n  kernel.run(", 4'000'000'000);
  ASSERT_EQ(calls.size(), 1);
  EXPECT_EQ(calls[0].nodes, (Names{"a", "f"}));
  EXPECT_EQ(calls[0].operators, Names{});
  std::string many = "  # Source Nodes: [";
  for (int i = 0; i < 1'000; ++i) many += "a, ";
  EXPECT_EQ(FusedCallsOf(many + "b]\n  kernel.run()", 1).at(0).nodes.size(), 64);
}

// name -> line of its only assignment, or 0.
using Lines = std::map<std::string, uint32_t>;
Lines LinesOf(std::string_view text) {
  Lines lines;
  for (const auto& [name, binding] : BindingsOf(text)) {
    lines[std::string(name)] = binding.is_sole ? binding.line : 0;
  }
  return lines;
}

TEST(Bindings, OfOneStatement) {
  EXPECT_EQ(LinesOf("def f(x):\n    gate = F.silu(x)\n"), (Lines{{"gate", 2}}));
  EXPECT_EQ(LinesOf("\tgate: Tensor = F.silu(\n\tx,\n\ty=1)\n"), (Lines{{"gate", 1}}));
  EXPECT_EQ(LinesOf("  gate += x; größe=1"), (Lines{{"gate", 1}, {"größe", 1}}));
  EXPECT_EQ(LinesOf("  if a: b = 1\n  else: c = 2\n"), (Lines{{"b", 1}, {"c", 2}}));
  EXPECT_EQ(LinesOf("  a = \\\n 1\n  b = f'{a}' + r\"\\\" \" # c = 1\n  d = 2\n"),
            (Lines{{"a", 1}, {"b", 3}, {"d", 4}}));
}

TEST(Bindings, OfSeveralOrOtherStatementsHaveNoLine) {
  EXPECT_EQ(LinesOf("  a = 1\n  a = 2\n"), (Lines{{"a", 0}}));
  EXPECT_EQ(LinesOf("  a = b = 2\n"), (Lines{{"a", 0}, {"b", 0}}));
  EXPECT_EQ(LinesOf("  a, (b, c.d), *e = x\n  f.g[0] = 1\n"),
            (Lines{{"a", 0}, {"b", 0}, {"e", 0}}));
  EXPECT_EQ(LinesOf("  for a, b in f(c): d = 1\n  with e as g: pass\n"),
            (Lines{{"a", 0}, {"b", 0}, {"d", 1}, {"g", 0}}));
  EXPECT_EQ(LinesOf("  if (a := f(x)) > 1:\n    import b, c as d\n"),
            (Lines{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}}));
}

TEST(Bindings, AreNoneElsewhere) {
  for (const std::string_view text :
       {"gate = x", "  gate == x", "  f(gate=x)", "  return gate", "  gate.weight = x", "",
        "  # gate = x", "  = x", "  gate - x", "  gate: int", "  gate[0] = x", "  f(\n  gate=x,\n)",
        "  \"\"\"\n  gate = x\n  \"\"\"\n", "  x <= gate\n"}) {
    EXPECT_EQ(LinesOf(text), Lines{}) << text;
  }
}

TEST(Bindings, AreNotKnownWhereTheTextEndsEarly) {
  for (const std::string_view text :
       {"  a = (1", "  a = 1\n  \"\"\"", "  a = 1\n  b = 'x\n", "  a = '\\"}) {
    EXPECT_EQ(LinesOf(text), Lines{}) << text;
  }
}

TEST(Bindings, OfHostileTextTakeNoLongerThanOfOther) {
  std::string many("  ");
  while (many.size() < size_t{1} << 20) many += "for:a=else:";
  EXPECT_LE(LinesOf(many).size(), 3);
  many = "  a";
  while (many.size() < size_t{1} << 20) many += "=a";
  EXPECT_EQ(LinesOf(many), (Lines{{"a", 0}}));
}

}  // namespace
}  // namespace xpu
