#include "symbolize/elf/symbol_table.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

ElfSymbol Function(std::string_view name, uint64_t address, uint64_t size,
                   ElfBinding binding = ElfBinding::kGlobal) {
  return {.link_address = address,
          .size_bytes = size,
          .name = name,
          .binding = binding,
          .is_function = true};
}

std::string_view NameAt(const SymbolTable& table, uint64_t address) {
  const ElfSymbol* symbol = table.Find(address);
  return symbol == nullptr ? "none" : symbol->name;
}

TEST(SymbolTable, FirstAndLastByteOfARange) {
  const SymbolTable table({Function("b", 0x200, 0x10), Function("a", 0x100, 0x80)});
  EXPECT_EQ(NameAt(table, 0xff), "none");
  EXPECT_EQ(NameAt(table, 0x100), "a");
  EXPECT_EQ(NameAt(table, 0x17f), "a");
  EXPECT_EQ(NameAt(table, 0x180), "none");
  EXPECT_EQ(NameAt(table, 0x200), "b");
  EXPECT_EQ(NameAt(table, 0x20f), "b");
  EXPECT_EQ(NameAt(table, 0x210), "none");
  EXPECT_EQ(NameAt(SymbolTable({}), 0x100), "none");
}

TEST(SymbolTable, NestedRangesGiveTheInnermost) {
  const SymbolTable table({Function("outer", 0x100, 0x100), Function("inner", 0x140, 0x10)});
  EXPECT_EQ(NameAt(table, 0x13f), "outer");
  EXPECT_EQ(NameAt(table, 0x148), "inner");
  EXPECT_EQ(NameAt(table, 0x150), "outer");
}

TEST(SymbolTable, ASymbolWithoutSizeReachesToTheNext) {
  const SymbolTable table({Function("label", 0x100, 0), Function("next", 0x180, 0x10)});
  EXPECT_EQ(NameAt(table, 0x17f), "label");
  EXPECT_EQ(NameAt(table, 0x180), "next");
}

TEST(SymbolTable, OfAliasesTheBestName) {
  ElfSymbol label = Function("a_label", 0x100, 0);
  label.is_function = false;
  const std::vector<ElfSymbol> aliases = {
      label,
      Function("a_local", 0x100, 0x10, ElfBinding::kLocal),
      Function("a_weak", 0x100, 0x10, ElfBinding::kWeak),
      Function("a@@V1", 0x100, 0x10),
      Function("__read", 0x100, 0x10),
      Function("zread", 0x100, 0x0),
      Function("read", 0x100, 0x0),
  };
  std::vector<std::string_view> best;
  for (auto left = aliases; !left.empty();) {
    const SymbolTable table(left);
    EXPECT_EQ(table.size(), 1u);
    best.push_back(NameAt(table, 0x100));
    std::erase_if(left, [&](const ElfSymbol& symbol) {
      return symbol.name.substr(0, symbol.name.find('@')) == best.back();
    });
  }
  const std::vector<std::string_view> expected = {"read",   "zread",   "__read", "a",
                                                  "a_weak", "a_local", "a_label"};
  EXPECT_EQ(best, expected);
}

TEST(SymbolTable, TheVersionIsNoPartOfTheName) {
  const SymbolTable table({Function("memcpy@@GLIBC_2.14", 0x100, 0x10),
                           Function("memcpy@plt", 0x200, 0x10), Function("@odd", 0x300, 0x10)});
  EXPECT_EQ(NameAt(table, 0x100), "memcpy");
  EXPECT_EQ(NameAt(table, 0x200), "memcpy@plt");
  EXPECT_EQ(NameAt(table, 0x300), "@odd");
}

TEST(SymbolTable, AliasesShareTheLargestSize) {
  const SymbolTable table({Function("read", 0x100, 0), Function("__read", 0x100, 0x40)});
  EXPECT_EQ(NameAt(table, 0x13f), "read");
  EXPECT_EQ(NameAt(table, 0x140), "none");
}

TEST(SymbolTable, ARangePastTheEndOfAddresses) {
  const SymbolTable table({Function("last", ~uint64_t{0} - 0xf, 0x100)});
  EXPECT_EQ(NameAt(table, ~uint64_t{0} - 1), "last");
}

}  // namespace
}  // namespace xpu
