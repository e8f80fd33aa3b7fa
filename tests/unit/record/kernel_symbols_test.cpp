#include "record/symbols/kernel_symbols.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

constexpr char kText[] =
    "0000000000000000 A per_cpu_start\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 T do_work\n"
    "ffffffff81000100 t do_work_alias\n"
    "ffffffff81000180 d some_data\n"
    "ffffffff81000200 t helper.cold\n"
    "not a line\n"
    "ffffffffc0000040 t module_function\t[nvidia]\n"
    "ffffffffc0000000 T module_first\t[nvidia]";

TEST(KernelSymbols, NamesAddressesThatOccur) {
  const KernelSymbolLookup lookup = FindKernelSymbols(
      kText, {0xffffffffc0000041, 0xffffffff81000104, 0xffffffff810001ff, 0xffffffff81000000});
  EXPECT_FALSE(lookup.hidden);
  EXPECT_EQ(lookup.unnamed, 0u);
  ASSERT_EQ(lookup.symbols.size(), 3u);
  EXPECT_EQ(lookup.symbols[0].name, "_stext");
  EXPECT_EQ(lookup.symbols[0].address, 0xffffffff81000000u);
  EXPECT_EQ(lookup.symbols[0].size_bytes, 0x100u);
  EXPECT_EQ(lookup.symbols[0].module, "");
  EXPECT_EQ(lookup.symbols[1].name, "do_work");  // of two at one address the first
  EXPECT_EQ(lookup.symbols[1].size_bytes, 0x100u);
  EXPECT_EQ(lookup.symbols[2].name, "module_function");
  EXPECT_EQ(lookup.symbols[2].module, "nvidia");
}

TEST(KernelSymbols, AddressesOutsideAllSymbols) {
  const KernelSymbolLookup lookup =
      FindKernelSymbols(kText, {0x1000, 0xffffffff81000210, 0xffffffffa0000000});
  EXPECT_EQ(lookup.unnamed, 2u);  // before the first, and far after the last before a gap
  ASSERT_EQ(lookup.symbols.size(), 1u);
  EXPECT_EQ(lookup.symbols[0].name, "helper.cold");
}

TEST(KernelSymbols, FunctionsByName) {
  const KernelFunction function = FindKernelFunction(kText, "do_work");
  EXPECT_EQ(function.begin, 0xffffffff81000100u);
  EXPECT_EQ(function.end, 0xffffffff81000180u);  // not its alias
  EXPECT_TRUE(function.Contains(0xffffffff81000100));
  EXPECT_FALSE(function.Contains(0xffffffff81000180));
  EXPECT_EQ(FindKernelFunction(kText, "work").end, 0u);  // a part of a name
  EXPECT_EQ(
      FindKernelFunction("0000000000000000 T do_work\n0000000000000000 T other\n", "do_work").end,
      0u);
  EXPECT_EQ(FindKernelFunction("ffffffff81000000 T last\n", "last").end, 0u);
}

TEST(KernelSymbols, Hidden) {
  const KernelSymbolLookup lookup = FindKernelSymbols(
      "0000000000000000 T _stext\n0000000000000000 T do_work\n", {0xffffffff81000104});
  EXPECT_TRUE(lookup.hidden);
  EXPECT_EQ(lookup.unnamed, 1u);
  EXPECT_TRUE(lookup.symbols.empty());
}

TEST(KernelSymbols, Nothing) {
  EXPECT_FALSE(FindKernelSymbols("", {}).hidden);
  EXPECT_EQ(FindKernelSymbols("", {1}).unnamed, 1u);
}

}  // namespace
}  // namespace xpu
