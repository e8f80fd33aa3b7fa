#include "symbolize/unwind/function_ranges.h"

#include <random>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "symbolize/elf/symbol_slice.h"
#include "symbolize/file_symbols.h"

namespace xpu {
namespace {

// This program, which the linker gave a table to search in.
class FunctionRangesTest : public testing::Test {
 protected:
  FunctionRangesTest()
      : bytes_(ReadFile("/proc/self/exe").value()),
        image_(ElfImage::Parse(std::as_bytes(std::span(bytes_)), "self").value()) {}

  std::string bytes_;
  ElfImage image_;
};

TEST_F(FunctionRangesTest, AreThoseOfTheUnwindTables) {
  const FunctionRanges ranges(image_);
  const CfiEntries entries = ReadEntries(FindEhFrame(image_).value());
  ASSERT_GT(entries.fdes.size(), 1000u);
  for (const Fde& fde : entries.fdes) {
    for (const uint64_t address : {fde.begin, fde.end - 1}) {
      const auto range = ranges.Find(address);
      ASSERT_TRUE(range) << std::hex << address;
      ASSERT_EQ(range->begin, fde.begin);
      ASSERT_EQ(range->end, fde.end);
    }
  }
  EXPECT_FALSE(ranges.Find(0));
  EXPECT_FALSE(ranges.Find(~uint64_t{0}));
}

TEST_F(FunctionRangesTest, NamelessFunctionsTravelInSlices) {
  const std::vector<ElfSymbol> all = image_.CodeSymbols();
  const FunctionRanges ranges(image_);
  const FileSymbols named(image_);
  EXPECT_TRUE(named.NamelessAt(std::vector{all.front().link_address}).empty());

  // A function of the unwind tables with all names taken away.
  const CfiEntries entries = ReadEntries(FindEhFrame(image_).value());
  const Fde& fde = entries.fdes[entries.fdes.size() / 2];
  const ElfSymbol nameless{.link_address = fde.begin,
                           .size_bytes = fde.end - fde.begin,
                           .name = {},
                           .binding = ElfBinding::kLocal,
                           .is_function = true};
  const SymbolTable table = SymbolTable({}).With({&nameless, 1});
  const std::string slice = WriteSymbolSlice(image_, table, std::vector{fde.end - 1});
  const ElfImage read = ElfImage::Parse(std::as_bytes(std::span(slice)), "slice").value();
  const SymbolTable symbols(read.CodeSymbols());
  ASSERT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols.symbols()[0].name, "");
  EXPECT_EQ(symbols.symbols()[0].link_address, fde.begin);
  EXPECT_EQ(symbols.symbols()[0].size_bytes, fde.end - fde.begin);
}

TEST(SymbolTableTest, NamesAreBetterThanNone) {
  const ElfSymbol named{.link_address = 0x10, .size_bytes = 4, .name = "f"};
  const ElfSymbol nameless{.link_address = 0x10, .size_bytes = 8, .name = {}, .is_function = true};
  for (const auto& symbols : {std::vector{named, nameless}, std::vector{nameless, named}}) {
    EXPECT_EQ(SymbolTable(symbols).Find(0x11)->name, "f");
  }
}

TEST_F(FunctionRangesTest, DamagedTablesGiveRangesThatHoldTheAddressOrNone) {
  const auto header = image_.eh_frame_header();
  const auto frames = FindEhFrame(image_).value();
  const auto offset_of = [&](std::span<const std::byte> part) {
    return static_cast<size_t>(reinterpret_cast<const char*>(part.data()) - bytes_.data());
  };
  std::mt19937_64 random(7);
  std::string damaged = bytes_;
  const ElfImage image = ElfImage::Parse(std::as_bytes(std::span(damaged)), "damaged").value();
  const CfiEntries entries = ReadEntries(frames);
  size_t found = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto& part = round % 2 == 0 ? header.bytes : frames.bytes;
    // The heads decide most.
    const size_t most = round % 4 < 2 ? std::min<size_t>(part.size(), 64) : part.size();
    const size_t at = offset_of(part) + random() % most;
    const char old = damaged[at];
    damaged[at] = static_cast<char>(random());
    const FunctionRanges ranges(image);
    for (int i = 0; i < 20; ++i) {
      const uint64_t address = entries.fdes[random() % entries.fdes.size()].begin + random() % 64;
      const auto range = ranges.Find(address);
      if (!range) continue;
      ++found;
      ASSERT_LE(range->begin, address);
      ASSERT_LT(address, range->end);
    }
    damaged[at] = old;
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace xpu
