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

// Each part once, and no more than a recorder stores: a small file may refer to a large text from
// many places. They point into the model, which must outlive this.
struct SourceParts {
  explicit SourceParts(const Model& model);

  std::vector<SourcePart> parts;
  uint64_t left_out = 0;  // the number of the others; in the ledger: source_text_full
};

}  // namespace xpu
