// Small sound tables for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "symbolize/unwind/unwind_table.h"

namespace xpu::test {

// `rows_per_page` rows of 2 bytes of code each, all of the rule rsp + `cfa_offset`.
inline std::vector<uint64_t> MakeTable(int32_t cfa_offset, uint32_t pages = 2,
                                       uint32_t rows_per_page = 3) {
  const uint64_t bytes = UnwindTable::Bytes(pages, 1, uint64_t{pages} * rows_per_page);
  std::vector<uint64_t> words(bytes / 8);
  auto* base = reinterpret_cast<char*>(words.data());
  const UnwindTableHeader header{.magic = kUnwindMagic,
                                 .version = kUnwindVersion,
                                 .bytes = bytes,
                                 .first_page = 1,
                                 .page_count = pages,
                                 .rule_count = 1,
                                 .row_count = pages * rows_per_page,
                                 .reserved = 0};
  std::memcpy(base, &header, sizeof(header));
  const UnwindRule rule{.cfa = UnwindCfa::kRsp, .cfa_offset = cfa_offset};
  std::memcpy(base + UnwindTable::RulesAt(pages), &rule, sizeof(rule));
  auto* page_rows = reinterpret_cast<uint32_t*>(base + sizeof(header));
  auto* rows = reinterpret_cast<UnwindRow*>(base + UnwindTable::RowsAt(pages, 1));
  for (uint32_t page = 0; page < pages; ++page) {
    page_rows[page + 1] = (page + 1) * rows_per_page;
    for (uint32_t row = 0; row < rows_per_page; ++row) {
      rows[page * rows_per_page + row] = {.offset = static_cast<uint16_t>(row * 2), .rule = 0};
    }
  }
  return words;
}

}  // namespace xpu::test
