// The symbol slices of a capture, put together from their parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/model.h"

namespace xpu {

struct AssembledSlice {
  std::string_view path;
  std::string_view build_id;  // raw
  SymbolDetail detail = SymbolDetail::kUnknown;
  std::vector<std::string_view> parts;  // in the model's tables
  // Those before it, of other parts of the recording for instance, have other functions.
  std::vector<std::vector<std::string_view>> older;

  std::string Bytes() const;
  size_t size_bytes() const;  // with the older ones
};

struct SliceCollection {
  std::vector<AssembledSlice> slices;  // one for each (path, build-id), by these
  uint64_t incomplete = 0;             // files whose slices all lack parts, or are too large
};

// Whether the bytes are an ELF image is for whoever opens them.
SliceCollection CollectSlices(const Model& model);

}  // namespace xpu
