// The frames of the stacks of a trace. They are looked up on demand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/model.h"
#include "report/stacks/frames.h"
#include "report/stacks/mixed_stacks.h"
#include "report/stacks/stack_resolver.h"
#include "report/trace/trace.h"
#include "symbolize/symbolizer.h"

namespace xpu {

// The symbol slices of a capture, put together from their parts.
struct AssembledSlice {
  std::string_view path;
  std::string_view build_id;  // raw
  SymbolDetail detail = SymbolDetail::kUnknown;
  std::vector<std::string_view> parts;  // in the model's tables
  // Earlier slices, from other parts of the recording for instance, have other functions.
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

// How addresses become frames.
struct SymbolOptions {
  Symbolizer::Options symbolizer = {};
  FramePlaces places = {};
  PythonView python = PythonView::kMerge;
  bool lines_if_any = false;  // the view shows lines, which nobody asked for
};

struct StackNames {
  // `trace` must outlive this.
  StackNames(const Trace& trace, SymbolOptions options);
  StackNames(const StackNames&) = delete;
  StackNames& operator=(const StackNames&) = delete;

  const bool lines_if_any;  // as in SymbolOptions
  SliceCollection slices;
  Symbolizer symbolizer;
  FrameTable frames;
  StackResolver resolver;
  MixedStacks stacks;
};

}  // namespace xpu
