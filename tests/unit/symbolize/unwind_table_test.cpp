#include "symbolize/unwind/unwind_table.h"

#include <cstring>

#include <gtest/gtest.h>

#include "symbolize/unwind/unwind_table_writer.h"
#include "tests/unit/symbolize/unwind_rules.h"

namespace xpu {
namespace {

constexpr uint64_t kPage = kUnwindPageBytes;

using test::Rsp;

// Two pages from 0x401000 on; rows at 0, 0x10, 0x20 of the first and 0 and 0x800 of the second.
UnwindTableBytes SmallTable() {
  UnwindTableWriter writer;
  writer.Add(0x401010, Rsp(8));
  writer.Add(0x401020, Rsp(16));
  writer.Add(0x402800, Rsp(24));
  return std::move(writer.Finish(0x403000, nullptr)).value();
}

// The same bytes, to be damaged.
class Copy {
 public:
  Copy() : table_(SmallTable()), words_(table_.bytes().size() / sizeof(uint64_t)) {
    std::memcpy(words_.data(), table_.bytes().data(), table_.bytes().size());
  }
  bool Open(UnwindTable& table, uint64_t bytes) { return table.Open(words_.data(), bytes); }
  bool Open(UnwindTable& table) { return Open(table, bytes()); }
  uint64_t bytes() const { return words_.size() * sizeof(uint64_t); }
  UnwindTableHeader& header() { return *reinterpret_cast<UnwindTableHeader*>(words_.data()); }
  uint32_t& page_row(size_t page) {
    return reinterpret_cast<uint32_t*>(words_.data())[sizeof(UnwindTableHeader) / 4 + page];
  }
  UnwindRow& row(size_t index) {
    char* const base = reinterpret_cast<char*>(words_.data());
    const auto rows = UnwindTable::RowsAt(header().page_count, header().rule_count);
    return reinterpret_cast<UnwindRow*>(base + rows)[index];
  }
  bool IsSound() {
    UnwindTable table;
    return Open(table) && table.IsSound();
  }

 private:
  UnwindTableBytes table_;
  std::vector<uint64_t> words_;
};

TEST(UnwindTable, Find) {
  const UnwindTableBytes bytes = SmallTable();
  const UnwindTable table = bytes.view();
  EXPECT_EQ(table.header->first_page, 0x401u);
  EXPECT_EQ(table.header->page_count, 2u);
  EXPECT_EQ(table.header->row_count, 5u);
  EXPECT_EQ(table.header->rule_count, 5u);
  EXPECT_TRUE(table.IsSound());
  EXPECT_EQ(table.Find(0), UnwindRule{});
  EXPECT_EQ(table.Find(0x400fff), UnwindRule{});
  EXPECT_EQ(table.Find(0x401000), UnwindRule{});
  EXPECT_EQ(table.Find(0x40100f), UnwindRule{});
  EXPECT_EQ(table.Find(0x401010), Rsp(8));
  EXPECT_EQ(table.Find(0x40101f), Rsp(8));
  EXPECT_EQ(table.Find(0x401020), Rsp(16));
  EXPECT_EQ(table.Find(0x402000), Rsp(16));
  EXPECT_EQ(table.Find(0x4027ff), Rsp(16));
  EXPECT_EQ(table.Find(0x402800), Rsp(24));
  EXPECT_EQ(table.Find(0x402fff), Rsp(24));
  EXPECT_EQ(table.Find(0x403000), UnwindRule{});
  EXPECT_EQ(table.Find(~uint64_t{0}), UnwindRule{});
}

TEST(UnwindTable, EveryRowOfAFullPageIsFound) {
  UnwindTableWriter writer;
  for (uint32_t i = 0; i < kPage; ++i) writer.Add(0x1000 + i, Rsp(static_cast<int32_t>(i)));
  const auto built = writer.Finish(0x2000, nullptr);
  const UnwindTable table = built.value().view();
  ASSERT_EQ(table.header->row_count, kPage);
  for (uint32_t i = 0; i < kPage; ++i) {
    ASSERT_EQ(table.Find(0x1000 + i), Rsp(static_cast<int32_t>(i)));
  }
}

TEST(UnwindTable, OpenRefusesWhatDoesNotFit) {
  UnwindTable table;
  Copy good;
  ASSERT_TRUE(good.Open(table));
  for (uint64_t bytes = 0; bytes < good.bytes(); ++bytes) EXPECT_FALSE(good.Open(table, bytes));
  const auto refused = [](auto change) {
    Copy copy;
    change(copy.header());
    UnwindTable opened;
    return !copy.Open(opened);
  };
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.magic ^= 1; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.version = kUnwindVersion + 1; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.bytes -= 8; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.page_count += 2; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.rule_count += 1; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.row_count += 2; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.page_count = ~0u; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.rule_count = ~0u; }));
  EXPECT_TRUE(refused([](UnwindTableHeader& header) { header.row_count = ~0u; }));
}

TEST(UnwindTable, IsSoundSeesEveryBrokenIndex) {
  EXPECT_TRUE(Copy().IsSound());
  const auto broken = [](auto change) {
    Copy copy;
    change(copy);
    return !copy.IsSound();
  };
  EXPECT_TRUE(broken([](Copy& copy) { copy.page_row(0) = 1; }));
  EXPECT_TRUE(broken([](Copy& copy) { copy.page_row(1) = 0; }));  // a page without rows
  EXPECT_TRUE(broken([](Copy& copy) { copy.page_row(1) = 9; }));
  EXPECT_TRUE(broken([](Copy& copy) { copy.page_row(2) = 4; }));
  EXPECT_TRUE(broken([](Copy& copy) { copy.row(0).offset = 1; }));
  EXPECT_TRUE(broken([](Copy& copy) { copy.row(2).offset = 0x10; }));
  EXPECT_TRUE(broken([](Copy& copy) { copy.row(4).offset = 0x1000; }));
  EXPECT_TRUE(broken([](Copy& copy) { copy.row(4).rule = 5; }));
}

TEST(UnwindTable, FindIsSafeOnAnyContent) {
  for (uint64_t at = sizeof(UnwindTableHeader); at < Copy().bytes(); ++at) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      Copy copy;
      reinterpret_cast<uint8_t*>(&copy.header())[at] ^= flip;
      UnwindTable table;
      ASSERT_TRUE(copy.Open(table));
      for (uint64_t address = 0x400ff0; address < 0x403010; address += 8) {
        static_cast<void>(table.Find(address));
      }
    }
  }
}

TEST(UnwindTable, DerefsArePackedWithTheirSigns) {
  for (const int16_t offset : {int16_t{-32768}, int16_t{-8}, int16_t{0}, int16_t{32767}}) {
    for (const int16_t addend : {int16_t{-32768}, int16_t{-1}, int16_t{0}, int16_t{32767}}) {
      const UnwindRule rule{.cfa = UnwindCfa::kAtRsp,
                            .cfa_offset = UnwindRule::PackDeref(offset, addend)};
      EXPECT_EQ(rule.DerefOffset(), offset);
      EXPECT_EQ(rule.DerefAddend(), addend);
    }
  }
}

TEST(UnwindTableWriter, EqualRulesMakeOneRow) {
  UnwindTableWriter writer;
  writer.Add(0x1000, Rsp(8));
  writer.Add(0x1010, Rsp(8));
  writer.Add(0x1020, Rsp(16));
  writer.Add(0x1030, Rsp(8));
  UnwindStats stats;
  const auto built = writer.Finish(0x1040, &stats);
  EXPECT_EQ(stats.rows, 4u);  // and the end
  EXPECT_EQ(built.value().view().header->rule_count, 4u);
}

TEST(UnwindTableWriter, TheRulesThatDoNotFitAreUnsupported) {
  UnwindTableWriter writer;
  constexpr uint32_t kRules = kMaxUnwindRules + 10;
  for (uint32_t i = 0; i < kRules; ++i) writer.Add(0x1000 + i, Rsp(static_cast<int32_t>(i)));
  writer.Add(0x1000 + kRules, Rsp(0));  // this one is there
  UnwindStats stats;
  const auto built = writer.Finish(0x1000 + kRules + 1, &stats);
  const UnwindTable table = built.value().view();
  EXPECT_TRUE(table.IsSound());
  EXPECT_EQ(table.header->rule_count, kMaxUnwindRules);
  constexpr uint32_t kFit = kMaxUnwindRules - 2;
  EXPECT_EQ(table.Find(0x1000 + kFit - 1), Rsp(static_cast<int32_t>(kFit - 1)));
  EXPECT_EQ(table.Find(0x1000 + kFit).cfa, UnwindCfa::kUnsupported);
  EXPECT_EQ(table.Find(0x1000 + kRules), Rsp(0));
  // One row, and one where the next page begins.
  EXPECT_EQ(stats.unsupported, 2u);
}

TEST(UnwindTableWriter, MoreCodeThanATableHolds) {
  const auto of_pages = [](uint64_t pages) {
    UnwindTableWriter writer;
    writer.Add(kPage, Rsp(8));
    return writer.Finish(kPage * (pages + 1), nullptr);
  };
  const auto largest = of_pages(kMaxUnwindPages);
  ASSERT_TRUE(largest.ok());
  EXPECT_EQ(largest.value().view().header->page_count, kMaxUnwindPages);
  EXPECT_EQ(of_pages(kMaxUnwindPages + 1).error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace xpu
