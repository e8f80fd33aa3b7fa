#include "tests/unit/report/model_builder.h"

#include <type_traits>

#include <fcntl.h>

#include "format/base/file.h"
#include "format/events.h"
#include "format/writer.h"
#include "report/model/load.h"

namespace xpu::test {

std::string_view BuilderTables::String(StringId id) const {
  if (!id) return "";
  return id.value > strings_.size() ? std::string_view("[lost]") : strings_[id.value - 1];
}

StackNode BuilderTables::Node(StackId id) const {
  return IsLost(id) || !id ? StackNode{} : nodes_[id.value - 1];
}

StringId BuilderTables::Add(std::string_view text) {
  if (text.empty()) return StringId{};
  const auto known = string_ids_.find(text);
  if (known != string_ids_.end()) return known->second;
  strings_.emplace_back(text);
  const StringId id{static_cast<uint32_t>(strings_.size())};
  string_ids_.emplace(text, id);
  return id;
}

StackId BuilderTables::Add(StackId caller, Frame frame) {
  const auto [at, is_new] = node_ids_.try_emplace({caller, frame.kind, frame.address});
  if (is_new) {
    nodes_.push_back({caller, frame});
    at->second = StackId{static_cast<uint32_t>(nodes_.size())};
  }
  return at->second;
}

StackId ModelBuilder::Stack(std::span<const uint64_t> outermost_first) {
  StackId stack;
  for (const uint64_t address : outermost_first) {
    const bool is_kernel = (address >> 63) != 0;
    stack = tables_->Add(stack, {is_kernel ? FrameKind::kKernel : FrameKind::kUser, address});
  }
  return stack;
}

StackId ModelBuilder::PythonStack(std::span<const PythonFrame> outermost_first) {
  StackId stack;
  for (const PythonFrame frame : outermost_first) {
    stack = tables_->Add(stack, {FrameKind::kPython, frame.Bits()});
  }
  return stack;
}

ProcessEvent& ModelBuilder::Process(ProcessEventKind kind, uint64_t time_ns, uint32_t pid,
                                    uint32_t tid, std::string_view name, uint32_t parent_pid,
                                    uint32_t parent_tid) {
  return events.process_events.emplace_back(ProcessEvent{.time_ns = time_ns,
                                                         .kind = kind,
                                                         .restated = false,
                                                         .pid = pid,
                                                         .tid = tid,
                                                         .parent_pid = parent_pid,
                                                         .parent_tid = parent_tid,
                                                         .name = Text(name)});
}

Mapping& ModelBuilder::Map(uint64_t time_ns, uint32_t pid, uint64_t start, uint64_t size,
                           uint64_t offset, std::string_view path, std::string_view build_id) {
  Mapping& mapping = events.mappings.emplace_back();
  mapping.time_ns = time_ns;
  mapping.pid = pid;
  mapping.tid = pid;
  mapping.start_address = start;
  mapping.size_bytes = size;
  mapping.file_offset = offset;
  mapping.protection = 5;
  mapping.flags = 2;
  mapping.path = Text(path);
  mapping.build_id = Text(build_id);
  return mapping;
}

CpuSample& ModelBuilder::Sample(uint64_t time_ns, uint32_t pid, uint32_t tid, StackId stack) {
  CpuSample& sample = events.cpu_samples.emplace_back();
  sample.time_ns = time_ns;
  sample.source = 1;
  sample.pid = pid;
  sample.tid = tid;
  sample.stack = stack;
  sample.stack_flags = kStackFramePointers;
  return sample;
}

void ModelBuilder::Source(uint64_t period_ns) {
  events.sample_sources.push_back({.source = 1,
                                   .name = Text("cpu-clock"),
                                   .frequency_hz = 1'000'000'000 / period_ns,
                                   .period = period_ns,
                                   .unit = Text("ns")});
}

void ModelBuilder::Clock(uint64_t instance, uint64_t offset_ns,
                         std::initializer_list<uint64_t> at_ns) {
  for (const uint64_t time_ns : at_ns) {
    events.clock_pairs.push_back({.instance = {instance},
                                  .clock = ClockKind::kCupti,
                                  .before_ns = time_ns - 100,
                                  .clock_ns = time_ns + offset_ns,
                                  .after_ns = time_ns + 100});
  }
}

void ModelBuilder::Callback(uint64_t instance, ApiDomain domain, uint32_t id,
                            std::string_view name) {
  events.callback_names.push_back(
      {.instance = {instance}, .domain = domain, .callback_id = id, .name = Text(name)});
}

ApiCall& ModelBuilder::Call(uint64_t instance, uint32_t correlation, uint32_t callback_id,
                            uint64_t start_ns, uint64_t end_ns, uint32_t tid) {
  return events.api_calls.emplace_back(ApiCall{.instance = {instance},
                                               .domain = ApiDomain::kRuntime,
                                               .callback_id = callback_id,
                                               .correlation_id = correlation,
                                               .tid = tid,
                                               .start_ns = start_ns,
                                               .end_ns = end_ns,
                                               .return_value = 0});
}

LaunchStack& ModelBuilder::Launch(uint64_t instance, uint32_t correlation, uint64_t time_ns,
                                  uint32_t pid, uint32_t tid, StackId stack) {
  LaunchStack& launch = events.launch_stacks.emplace_back();
  launch.instance = {instance};
  launch.correlation_id = correlation;
  launch.domain = ApiDomain::kDriver;
  launch.callback_id = 307;
  launch.time_ns = time_ns;
  launch.pid = pid;
  launch.tid = tid;
  launch.stack = stack;
  launch.stack_flags = kStackFramePointers;
  return launch;
}

Kernel& ModelBuilder::AddKernel(uint64_t instance, uint32_t correlation, uint64_t start_ns,
                                uint64_t end_ns, std::string_view name) {
  Kernel& kernel = events.kernels.emplace_back();
  kernel.instance = {instance};
  kernel.record_size_bytes = 216;
  kernel.correlation_id = correlation;
  kernel.start_ns = start_ns;
  kernel.end_ns = end_ns;
  kernel.stream_id = 7;
  kernel.context_id = 1;
  kernel.name = Text(name);
  return kernel;
}

Loss& ModelBuilder::Lose(std::string_view name, uint64_t count, std::string_view detail) {
  Loss& loss = events.losses.emplace_back();
  loss.time_ns = 1;
  loss.name = Text(name);
  loss.count = count;
  loss.detail = Text(detail);
  return loss;
}

void ModelBuilder::End(uint64_t time_ns) {
  events.recording_end.push_back({.time_ns = time_ns, .target_pid = 0, .wait_status = 0});
}

Model ModelBuilder::Build() {
  Model model;
  model.path = "test.xpu";
  AppendEvents(model.events, events);
  events = {};
  model.problems = problems;
  model.tables = std::move(tables_);
  return model;
}

namespace {

// The same field with the writer's ids.
class Reintern {
 public:
  Reintern(CaptureWriter& writer, const CaptureTables& tables) : writer_(writer), tables_(tables) {}

  void operator()(std::string_view, StringId& id) { id = writer_.InternString(tables_.String(id)); }
  void operator()(std::string_view, StackId& id) {
    std::vector<Frame> innermost_first;
    for (; id; id = tables_.Node(id).caller) innermost_first.push_back(tables_.Node(id).frame);
    id = writer_.InternStack(innermost_first);
  }
  template <typename Other>
  void operator()(std::string_view, Other&) {}

 private:
  CaptureWriter& writer_;
  const CaptureTables& tables_;
};

}  // namespace

Status ModelBuilder::WriteCapture(const std::string& path) const {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  XPU_CHECK(static_cast<bool>(fd));
  XPU_ASSIGN_OR_RETURN(CaptureWriter writer, CaptureWriter::Create(std::move(fd), path));
  Status status = Ok();
  VisitLists(events, [&](std::string_view, const auto& list) {
    for (auto event : list) {
      if (!status.ok()) return;
      VisitFields(event, Reintern(writer, *tables_));
      status = writer.Write(event);
    }
  });
  XPU_RETURN_IF_ERROR(status);
  return writer.Close();
}

}  // namespace xpu::test
