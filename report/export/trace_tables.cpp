#include <set>

#include "report/analysis/gpu_names.h"
#include "report/analysis/sampled_events.h"
#include "report/export/export_tables.h"
#include "report/model/labels.h"

namespace xpu {
namespace {

std::string_view OriginName(FrameOrigin origin) {
  switch (origin) {
    case FrameOrigin::kUser:
      return "user";
    case FrameOrigin::kKernel:
      return "kernel";
    case FrameOrigin::kApi:
      return "api";
    case FrameOrigin::kGpuWork:
      return "gpu_work";
    case FrameOrigin::kPending:
      return "pending";
    case FrameOrigin::kOther:
      return "other";
    case FrameOrigin::kPython:
      return "python";
  }
  return "other";
}

class TraceTables {
 public:
  TraceTables(Analysis& analysis, CallPaths& paths, std::string_view prefix, TableSink& sink)
      : analysis_(analysis), paths_(paths), prefix_(prefix), sink_(sink) {}

  void WriteLabels();
  void WriteProcesses();
  void WriteThreads();
  void WriteCalls();
  void WriteWork();
  void WriteSamples();
  void WriteRanges();

 private:
  void Begin(std::string_view table, std::span<const ExportColumn> columns) {
    sink_.Begin(std::string(prefix_) + std::string(table), columns);
  }
  // process, pid, tid
  void PutOwner(const Owner& owner) {
    sink_.Unsigned(owner.process.value);
    sink_.Unsigned(owner.pid);
    sink_.Unsigned(owner.tid);
  }
  void PutBytes(const GpuWork& work);

  Analysis& analysis_;
  CallPaths& paths_;
  std::string_view prefix_;
  TableSink& sink_;
};

// Labels of each recording are written once, though every part of it repeats them.
void TraceTables::WriteLabels() {
  constexpr ExportColumn kColumns[] = {{"recording"}, TextColumn("key"), TextColumn("value")};
  Begin("label", kColumns);
  std::set<uint64_t> recordings;
  for (const RecordingInfo& info : analysis_.model.events.recording_info) {
    if (!recordings.insert(info.recording).second) continue;
    for (const Label& label : LabelsOf(analysis_.model.Text(info.settings))) {
      sink_.Unsigned(info.recording);
      sink_.Text(label.key);
      sink_.Text(label.value);
      sink_.EndRow();
    }
  }
  sink_.End();
}

void TraceTables::WriteProcesses() {
  constexpr ExportColumn kColumns[] = {KeyColumn("process"), {"pid"},    {"parent"},
                                       {"start_ns"},         {"end_ns"}, {"exec_count"},
                                       TextColumn("name")};
  Begin("process", kColumns);
  for (uint32_t i = 1; i <= analysis_.processes.size() && !sink_.failed(); ++i) {
    const auto& process = analysis_.processes[ProcessId{i}];
    sink_.Unsigned(i);
    sink_.Unsigned(process.pid);
    sink_.Unsigned(process.parent.value);
    sink_.Unsigned(process.start_ns);
    sink_.Unsigned(process.end_ns);
    sink_.Unsigned(process.exec_count);
    sink_.Text(analysis_.processes.Name(ProcessId{i}));
    sink_.EndRow();
  }
  sink_.End();
}

void TraceTables::WriteThreads() {
  constexpr ExportColumn kColumns[] = {{"process"}, {"pid"}, {"tid"}, TextColumn("name")};
  Begin("thread", kColumns);
  for (uint32_t i = 1; i <= analysis_.processes.size() && !sink_.failed(); ++i) {
    for (const auto& [tid, name] : analysis_.processes.Threads(ProcessId{i})) {
      sink_.Unsigned(i);
      sink_.Unsigned(analysis_.processes[ProcessId{i}].pid);
      sink_.Unsigned(tid);
      sink_.Text(name);
      sink_.EndRow();
    }
  }
  sink_.End();
}

void TraceTables::WriteCalls() {
  constexpr ExportColumn kColumns[] = {KeyColumn("call"), {"process"},        {"pid"},
                                       {"tid"},           TextColumn("name"), {"start_ns"},
                                       {"end_ns"},        {"correlation_id"}, {"return_value"},
                                       {"work_count"},    {"stack"}};
  Begin("call", kColumns);
  uint32_t number = 0;
  for (const Launch& launch : analysis_.correlation.launches) {
    if (sink_.failed()) return;
    sink_.Unsigned(++number);
    PutOwner(launch.owner());
    sink_.Text(ApiNameOf(analysis_.api_names, launch));
    sink_.Unsigned(launch.start_ns);
    sink_.Unsigned(launch.end_ns);
    sink_.Unsigned(launch.correlation_id);
    sink_.Signed(launch.return_value);
    sink_.Unsigned(launch.work_count);
    sink_.Unsigned(paths_.OfLaunch(launch).value);
    sink_.EndRow();
  }
  sink_.End();
}

void TraceTables::PutBytes(const GpuWork& work) {
  const LoadedEvents& events = analysis_.model.events;
  if (work.kind == WorkKind::kMemcpy) {
    sink_.Unsigned(events.memcpys.Get<&Memcpy::size_bytes>(work.index));
  } else if (work.kind == WorkKind::kMemset) {
    sink_.Unsigned(events.memsets.Get<&Memset::size_bytes>(work.index));
  } else {
    sink_.Null();
  }
}

void TraceTables::WriteWork() {
  constexpr ExportColumn kColumns[] = {KeyColumn("work"),
                                       TextColumn("kind"),
                                       {"call"},
                                       {"process"},
                                       {"pid"},
                                       {"tid"},
                                       {"gpu"},
                                       {"stream"},
                                       TextColumn("name"),
                                       {"start_ns"},
                                       {"end_ns"},
                                       {"duration_ns"},
                                       {"is_timed"},
                                       {"bytes"},
                                       {"correlation_id"},
                                       {"stack"}};
  Begin("work", kColumns);
  const GpuNames names(analysis_, KernelNames::kFull);
  uint32_t number = 0;
  for (const GpuWork& work : analysis_.correlation.work) {
    if (sink_.failed()) return;
    const bool has_call = work.launch != GpuWork::kNoLaunch;
    const uint64_t start_ns = work.placed_ns();
    sink_.Unsigned(++number);
    sink_.Text(WorkKindName(work.kind));
    if (has_call) {
      sink_.Unsigned(uint64_t{work.launch} + 1);
    } else {
      sink_.Null();
    }
    PutOwner(work.owner());
    sink_.Unsigned(work.gpu);
    if (work.stream_id == kNoSynchronizedObject) {
      sink_.Null();
    } else {
      sink_.Unsigned(work.stream_id);
    }
    if (work.kind == WorkKind::kKernel) {
      sink_.Text(names.KernelName(analysis_.model.events.kernels.Get<&Kernel::name>(work.index)));
    } else {
      sink_.Text(names.Title(work));
    }
    sink_.Unsigned(start_ns);
    sink_.Unsigned(work.timed ? work.end_ns : start_ns);
    sink_.Unsigned(work.duration_ns);
    sink_.Unsigned(work.timed ? 1 : 0);
    PutBytes(work);
    sink_.Unsigned(work.correlation_id);
    sink_.Unsigned(paths_.OfWork(work).value);
    sink_.EndRow();
  }
  sink_.End();
}

void TraceTables::WriteSamples() {
  constexpr ExportColumn kColumns[] = {{"process"}, {"pid"},     {"tid"},
                                       {"cpu"},     {"time_ns"}, TextColumn("event"),
                                       {"weight"},  {"stack"}};
  Begin("sample", kColumns);
  const SampleWeights weights(analysis_.model, analysis_.shown);
  for (const Owned<CpuSample>& sample : analysis_.model.events.cpu_samples) {
    if (sink_.failed()) return;
    PutOwner(sample.owner());
    sink_.Unsigned(sample.cpu);
    sink_.Unsigned(sample.time_ns);
    sink_.Text(weights.NameOf(sample));
    sink_.Unsigned(weights.Of(sample));
    sink_.Unsigned(paths_.Of(sample).value);
    sink_.EndRow();
  }
  sink_.End();
}

void TraceTables::WriteRanges() {
  constexpr ExportColumn kColumns[] = {
      {"process"},        {"pid"},      {"tid"},    TextColumn("style"),
      TextColumn("name"), {"start_ns"}, {"end_ns"}, {"is_open"}};
  Begin("range", kColumns);
  for (const NvtxRange& range : analysis_.nvtx.all()) {
    if (sink_.failed()) return;
    PutOwner(range.owner());
    sink_.Text(StyleText(range.style));
    sink_.Text(analysis_.nvtx.NameOf(range));
    sink_.Unsigned(range.start_ns);
    sink_.Unsigned(range.end_ns);
    sink_.Unsigned(range.is_open ? 1 : 0);
    sink_.EndRow();
  }
  sink_.End();
}

}  // namespace

void WriteTraceTables(Analysis& analysis, CallPaths& paths, std::string_view prefix,
                      TableSink& sink) {
  TraceTables tables(analysis, paths, prefix, sink);
  tables.WriteLabels();
  tables.WriteProcesses();
  tables.WriteThreads();
  tables.WriteCalls();
  tables.WriteWork();
  tables.WriteSamples();
  tables.WriteRanges();
}

void WriteStackTables(const Analysis& analysis, const CallTree& tree, std::string_view prefix,
                      TableSink& sink) {
  constexpr ExportColumn kStacks[] = {KeyColumn("stack"), {"caller"}, {"frame"}};
  sink.Begin(std::string(prefix) + "stack", kStacks);
  uint32_t number = 0;
  for (const CallTree::Node& node : tree.nodes()) {
    if (sink.failed()) return;
    sink.Unsigned(++number);
    sink.Unsigned(node.parent.value);
    sink.Unsigned(node.frame.value);
    sink.EndRow();
  }
  sink.End();
  constexpr ExportColumn kFrames[] = {KeyColumn("frame"), TextColumn("name"), TextColumn("module"),
                                      TextColumn("kind")};
  sink.Begin(std::string(prefix) + "frame", kFrames);
  for (uint32_t i = 1; i <= analysis.frames.size() && !sink.failed(); ++i) {
    const NamedFrame& frame = analysis.frames[FrameId{i}];
    sink.Unsigned(i);
    sink.Text(frame.Label());
    sink.Text(frame.module);
    sink.Text(OriginName(frame.origin));
    sink.EndRow();
  }
  sink.End();
}

}  // namespace xpu
