#include "report/load.h"

#include <optional>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "format/base/text.h"
#include "report/merge_captures.h"

namespace xpu {
namespace {

// The reader keeps the tables, so it lives as long as the model.
class ReaderTables : public CaptureTables {
 public:
  explicit ReaderTables(CaptureReader reader) : reader_(std::move(reader)) {}
  std::string_view String(StringId id) const override { return reader_.String(id); }
  StackNode Node(StackId id) const override { return reader_.Node(id); }
  bool IsLost(StackId id) const override { return reader_.IsLost(id); }

 private:
  CaptureReader reader_;
};

template <typename Event>
void Append(std::vector<Event>& all, std::vector<Event>& more) {
  if (all.empty()) {
    all = std::move(more);
  } else {
    all.insert(all.end(), more.begin(), more.end());
  }
}

}  // namespace

void AppendBatch(EventBatch& all, EventBatch& more) {
  Append(all.recording_info, more.recording_info);
  Append(all.recording_end, more.recording_end);
  Append(all.sample_sources, more.sample_sources);
  Append(all.losses, more.losses);
  Append(all.process_events, more.process_events);
  Append(all.mappings, more.mappings);
  Append(all.kernel_symbols, more.kernel_symbols);
  Append(all.cpu_samples, more.cpu_samples);
  Append(all.gpu_processes, more.gpu_processes);
  Append(all.clock_pairs, more.clock_pairs);
  Append(all.callback_names, more.callback_names);
  Append(all.api_calls, more.api_calls);
  Append(all.launch_stacks, more.launch_stacks);
  Append(all.kernels, more.kernels);
  Append(all.memcpys, more.memcpys);
  Append(all.memsets, more.memsets);
  Append(all.synchronizations, more.synchronizations);
  Append(all.graph_launches, more.graph_launches);
  Append(all.overheads, more.overheads);
  Append(all.devices, more.devices);
  Append(all.raw_activities, more.raw_activities);
  Append(all.graph_nodes, more.graph_nodes);
  Append(all.probes, more.probes);
  Append(all.probe_hits, more.probe_hits);
  Append(all.symbol_slices, more.symbol_slices);
  Append(all.generated_symbols, more.generated_symbols);
  Append(all.nvtx_events, more.nvtx_events);
  Append(all.memory_operations, more.memory_operations);
  Append(all.recording_switches, more.recording_switches);
}

Result<Model> LoadCapture(CaptureReader reader, std::string path) {
  Model model;
  model.path = std::move(path);
  while (std::optional<EventBatch> batch = reader.Next()) AppendBatch(model.events, *batch);
  model.problems = reader.problems();
  model.tables = std::make_unique<ReaderTables>(std::move(reader));
  return model;
}

Result<Model> LoadCaptures(const std::vector<std::string>& paths) {
  std::vector<Model> captures;
  for (const std::string& path : paths) {
    XPU_ASSIGN_OR_RETURN(Model capture, LoadCapture(path));
    captures.push_back(std::move(capture));
  }
  return MergeCaptures(std::move(captures));
}

Result<Model> LoadCapture(const std::string& path) {
  if (path == "-") return LoadCapture("/dev/stdin");
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0) {
    return Error{ErrorKind::kInvalid, Format("{}: is empty, not a capture", path),
                 "the recording ended before anything was written; record again"};
  }
  Result<CaptureReader> reader = CaptureReader::Open(path);
  if (!reader.ok()) {
    Error error = reader.error();
    if (error.kind == ErrorKind::kNotFound && error.hint.empty()) {
      error.hint = "record one first: xpu-record -- PROGRAM";
    }
    return error;
  }
  return LoadCapture(std::move(reader).value(), path);
}

}  // namespace xpu
