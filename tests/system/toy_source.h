// An event source as an example of what one takes, recorded by source_test.py: a tick each time the
// recorder looks, as the hit of a probe that nobody placed.
#pragma once

#include "record/source/source.h"

namespace xpu {

class ToySource : public Source {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);

  void Begin(EventSink& sink) override;
  void Switch(const SwitchState& wanted) override { is_on_ = wanted.is_on; }
  void Drain(EventSink& sink) override;
  int DrainIntervalMs(uint64_t /*now_ns*/) const override { return 10; }

 private:
  explicit ToySource(SourceContext& context) : context_(context) {}

  SourceContext& context_;
  bool is_on_ = false;
};

}  // namespace xpu
