#include "tests/system/toy_source.h"

#include "record/base/clock.h"

namespace xpu {
namespace {

constexpr uint32_t kNumber = 4711;

}  // namespace

Result<std::unique_ptr<Source>> ToySource::Open(SourceContext& context) {
  return std::unique_ptr<Source>(new ToySource(context));
}

void ToySource::Begin(EventSink& sink) {
  Probe probe;
  probe.probe = kNumber;
  probe.function = sink.Intern("toy");
  sink.Write(probe);
}

void ToySource::Drain(EventSink& sink) {
  if (!is_on_) return;
  ProbeHit hit;
  hit.time_ns = MonotonicNs();
  hit.probe = kNumber;
  hit.pid = hit.tid = static_cast<uint32_t>(context_.scope.program);
  sink.Write(hit);
}

}  // namespace xpu
