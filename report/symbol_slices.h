// The symbol slices of a capture, put together from their parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/model.h"

namespace xpu {

struct AssembledSlice {
  std::string_view path;
  std::string_view build_id;  // raw
  SymbolDetail detail = SymbolDetail::kUnknown;
  std::vector<std::string_view> parts;  // in the model's tables

  std::string Bytes() const;
  size_t size_bytes() const;
};

struct SliceCollection {
  std::vector<AssembledSlice> slices;  // one for each (path, build-id), by these
  uint64_t incomplete = 0;             // files whose slices all lack parts, or are too large
};

// Whether the bytes are an ELF image is for whoever opens them.
SliceCollection CollectSlices(const Model& model);

}  // namespace xpu
