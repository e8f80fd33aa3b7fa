// The frames of the stacks of a trace. They are looked up when somebody asks.
#pragma once

#include "report/stacks/frames.h"
#include "report/stacks/mixed_stacks.h"
#include "report/stacks/stack_resolver.h"
#include "report/stacks/symbol_slices.h"
#include "report/trace/trace.h"
#include "symbolize/symbolizer.h"

namespace xpu {

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
