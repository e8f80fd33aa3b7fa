#include "report/export/pprof/pprof.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "profile.pb.h"
#include "report/analysis/sampled_events.h"
#include "report/model/recorded_time.h"
#include "report/query/off_cpu_waits.h"

namespace xpu {
namespace {

// Samples with the same key are added up.
struct SampleKey {
  PathId path;
  ProcessId process;
  uint32_t tid = 0;
  uint32_t gpu = 0;     // one more than its number; 0: a CPU sample
  uint32_t stream = 0;  // of the GPU
  auto operator<=>(const SampleKey&) const = default;
};

// In the order of the profile's sample types.
struct SampleValues {
  uint64_t samples = 0;
  uint64_t cpu = 0;  // in the unit of the event
  uint64_t gpu_work = 0;
  uint64_t gpu_ns = 0;
  uint64_t waits = 0;
  uint64_t wait_ns = 0;
};

// Parts of a message that are written one after the other are one message: so no more than a part
// is in memory.
class PprofWriter {
 public:
  PprofWriter(Analysis& analysis, const PprofOptions& options, Output& output)
      : analysis_(analysis),
        output_(output),
        paths_(analysis, {.graph_stacks = options.graph_stacks}),
        leaves_(analysis, options.kernel_names),
        has_waits_(!analysis.OffCpuWaits().empty() || !analysis.OffCpuSums().empty()) {
    (void)TextId("");
  }

  void Write() {
    paths_.NameAhead({.samples = true, .launches = true, .off_cpu_waits = has_waits_});
    AddSamples();
    AddWork();
    AddWaits();
    WriteHeader();
    WriteSamples();
    WriteFunctions();
    Flush();
  }

 private:
  void AddSamples();
  void AddWork();
  void AddWaits();
  SampleValues& ValuesOf(const Owner& owner, PathId path, const std::string& reason);
  void WriteHeader();
  void WriteSamples();
  void WriteSample(const SampleKey& key, const SampleValues& values);
  void WriteFunctions();
  uint64_t MappingOf(const std::string& module);

  // Returns the index in the list of texts; a new text is written with the next part.
  int64_t TextId(std::string_view text) {
    const auto [known, is_new] =
        texts_.try_emplace(ForOneLine(text), static_cast<int64_t>(texts_.size()));
    if (is_new) part_.add_string_table(known->first);
    return known->second;
  }
  void SetType(pprof::ValueType& type, std::string_view name, std::string_view unit) {
    type.set_type(TextId(name));
    type.set_unit(TextId(unit));
  }
  void AddLabel(pprof::Sample& sample, std::string_view key, std::string_view text) {
    if (text.empty()) return;
    pprof::Label& label = *sample.add_label();
    label.set_key(TextId(key));
    label.set_str(TextId(text));
  }
  void AddLabel(pprof::Sample& sample, std::string_view key, uint64_t number) {
    pprof::Label& label = *sample.add_label();
    label.set_key(TextId(key));
    label.set_num(static_cast<int64_t>(number));
  }

  void Flush() {
    output_.WriteBytes(part_.SerializeAsString());
    part_.Clear();
    in_part_ = 0;
  }
  void EndItem() {
    constexpr size_t kItemsOfPart = 1024;
    if (++in_part_ >= kItemsOfPart) Flush();
  }

  Analysis& analysis_;
  Output& output_;
  CallPaths paths_;
  GpuLeaves leaves_;
  const bool has_waits_;  // the profile has their types then
  pprof::Profile part_;
  size_t in_part_ = 0;
  std::map<SampleKey, SampleValues> values_;
  std::unordered_map<std::string, int64_t> texts_;
  std::unordered_map<std::string, uint64_t> mappings_;  // by ModuleName
  std::vector<const Mapping*> files_;                   // by id - 1
};

void PprofWriter::AddSamples() {
  const SampleWeights weights(analysis_.model, analysis_.shown);
  for (const Owned<CpuSample>& sample : analysis_.CpuSamples()) {
    SampleValues& values =
        values_[{.path = paths_.Of(sample), .process = sample.process, .tid = sample.tid}];
    ++values.samples;
    values.cpu += weights.Of(sample);
  }
}

void PprofWriter::AddWork() {
  for (const GpuWork& work : analysis_.Work()) {
    if (work.kind == WorkKind::kSynchronization) continue;
    SampleValues& values =
        values_[{.path = paths_.tree().Child(paths_.OfWork(work), leaves_.Of(work)),
                 .process = work.process,
                 .tid = work.tid,
                 .gpu = work.gpu + 1,
                 .stream = work.stream_id}];
    ++values.gpu_work;
    values.gpu_ns += work.duration_ns;
  }
}

SampleValues& PprofWriter::ValuesOf(const Owner& owner, PathId path, const std::string& reason) {
  const FrameId leaf = analysis_.frames.Intern("[off-CPU] " + reason, FrameOrigin::kOther);
  return values_[{
      .path = paths_.tree().Child(path, leaf), .process = owner.process, .tid = owner.tid}];
}

// Adds the same waits as --mode off.
void PprofWriter::AddWaits() {
  for (const Owned<OffCpuWait>& wait : analysis_.OffCpuWaits()) {
    const OffCpuTimes times = TimesOf(analysis_, wait);
    SampleValues& values = ValuesOf(wait.owner(), paths_.OfWait(wait), WaitName(wait));
    ++values.waits;
    values.wait_ns = AddSaturated(values.wait_ns, times.blocked_ns + times.runnable_ns);
  }
  for (const Owned<OffCpuSum>& sum : analysis_.OffCpuSums()) {
    if (sum.state == OffCpuState::kRunning) continue;
    SampleValues& values =
        ValuesOf(sum.owner(), paths_.OfSum(sum), Format("{}, short", StateName(sum.state)));
    values.waits = AddSaturated(values.waits, sum.count);
    values.wait_ns = AddSaturated(values.wait_ns, sum.duration);
  }
}

void PprofWriter::WriteHeader() {
  const Model& model = analysis_.model;
  const SampleWeights weights(model, analysis_.shown);
  std::string_view event = "cpu";
  std::string_view unit = "nanoseconds";
  const auto samples = analysis_.CpuSamples();
  if (!samples.empty() && !weights.IsOfTime(samples.front())) {
    event = weights.NameOf(samples.front());
    unit = "count";
  }
  SetType(*part_.add_sample_type(), "samples", "count");
  SetType(*part_.add_sample_type(), event, unit);
  SetType(*part_.add_sample_type(), "gpu_work", "count");
  SetType(*part_.add_sample_type(), "gpu", "nanoseconds");
  if (has_waits_) {
    SetType(*part_.add_sample_type(), "waits", "count");
    SetType(*part_.add_sample_type(), "off_cpu", "nanoseconds");
  }
  part_.set_default_sample_type(TextId(analysis_.Work().empty() ? event : "gpu"));
  for (const RecordingInfo& info : model.events.recording_info) {
    part_.set_time_nanos(static_cast<int64_t>(info.start_realtime_ns));
    part_.add_comment(TextId(model.Text(info.command_line)));
    break;
  }
  part_.set_duration_nanos(static_cast<int64_t>(RunTimeNs(model)));
  for (const SampleSource& source : analysis_.SampleSources()) {
    SetType(*part_.mutable_period_type(), event, unit);
    part_.set_period(static_cast<int64_t>(source.period));
    break;
  }
}

// The outermost frame is the name of the thread, which is a label here.
void PprofWriter::WriteSample(const SampleKey& key, const SampleValues& values) {
  pprof::Sample& sample = *part_.add_sample();
  const CallTree& tree = paths_.tree();
  PathId path = key.path;
  for (; path && tree[path].parent; path = tree[path].parent) {
    sample.add_location_id(tree[path].frame.value);
  }
  for (const uint64_t value : {values.samples, values.cpu, values.gpu_work, values.gpu_ns}) {
    sample.add_value(static_cast<int64_t>(value));
  }
  for (const uint64_t value : {values.waits, values.wait_ns}) {
    if (has_waits_) sample.add_value(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }
  if (path) AddLabel(sample, "thread", analysis_.frames[tree[path].frame].name);
  if (key.tid != 0) AddLabel(sample, "tid", key.tid);
  if (key.process) {
    AddLabel(sample, "process", analysis_.processes.Name(key.process));
    AddLabel(sample, "pid", analysis_.processes[key.process].pid);
  }
  if (key.gpu != 0) {
    AddLabel(sample, "gpu", Format("{}", key.gpu - 1));
    AddLabel(sample, "stream", Format("{}", key.stream));
  }
}

void PprofWriter::WriteSamples() {
  const uint64_t all = values_.size();
  uint64_t done = 0;
  for (const auto& [key, values] : values_) {
    if (output_.failed()) return;
    WriteSample(key, values);
    EndItem();
    output_.SetShare(++done, all);
  }
}

// 0: no file of this name was mapped.
uint64_t PprofWriter::MappingOf(const std::string& module) {
  const auto known = mappings_.find(module);
  return known == mappings_.end() ? 0 : known->second;
}

// Each frame is a location and a function of its own: its name is known already, and nothing has
// to look for it by its address.
void PprofWriter::WriteFunctions() {
  for (const Mapping& mapping : analysis_.model.events.mappings) {
    const std::string_view path = analysis_.model.Text(mapping.path);
    if (path.empty()) continue;
    const auto [known, is_new] = mappings_.try_emplace(ModuleName(path), mappings_.size() + 1);
    if (is_new) files_.push_back(&mapping);
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    const Mapping& mapping = *files_[i];
    pprof::Mapping& written = *part_.add_mapping();
    written.set_id(i + 1);
    written.set_memory_start(mapping.start_address);
    written.set_memory_limit(mapping.start_address + mapping.size_bytes);
    written.set_file_offset(mapping.file_offset);
    written.set_filename(TextId(analysis_.model.Text(mapping.path)));
    written.set_build_id(TextId(ToHex(analysis_.model.Text(mapping.build_id))));
    written.set_has_functions(true);
    EndItem();
  }
  for (uint32_t i = 1; i <= analysis_.frames.size() && !output_.failed(); ++i) {
    const NamedFrame& frame = analysis_.frames[FrameId{i}];
    const bool is_python = frame.origin == FrameOrigin::kPython;
    pprof::Function& function = *part_.add_function();
    function.set_id(i);
    function.set_name(TextId(frame.Label()));
    function.set_system_name(TextId(frame.name));
    if (is_python) function.set_filename(TextId(frame.module));
    pprof::Location& location = *part_.add_location();
    location.set_id(i);
    if (!is_python) location.set_mapping_id(MappingOf(frame.module));
    location.add_line()->set_function_id(i);
    EndItem();
  }
}

}  // namespace

void WritePprof(Analysis& analysis, const PprofOptions& options, Output& output) {
  PprofWriter(analysis, options, output).Write();
}

std::string ProtobufVersion() {
  return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
}

}  // namespace xpu
