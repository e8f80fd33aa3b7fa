// The lines of source files that a capture has (`xpu-record --sources=hit`).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/model/model.h"

namespace xpu {

struct SourcePart {
  std::string_view path;
  uint32_t first_line = 0;
  std::string_view text;  // whole lines
};

// Each once, and no more than a recorder stores: a small file may refer to a large text from many
// places. They point into the model. `left_out` gets the number of the others, which the ledger
// has: source_text_full.
std::vector<SourcePart> SourcePartsOf(const Model& model, uint64_t* left_out = nullptr);

}  // namespace xpu
