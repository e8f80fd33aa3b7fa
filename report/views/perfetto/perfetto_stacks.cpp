#include "format/base/terminal_text.h"
#include "perfetto_trace.pb.h"
#include "report/views/perfetto/perfetto_writer.h"

namespace xpu {
namespace {

using perfetto::TracePacket;
using perfetto::TrackEvent;

constexpr uint32_t kKernelMode = 1;
constexpr uint32_t kUserMode = 2;

constexpr uint32_t kNativeKind = 1;
constexpr uint32_t kKernelKind = 2;
constexpr uint32_t kInterpretedKind = 3;

// 0: none of those that Perfetto knows.
uint32_t KindOf(FrameOrigin origin) {
  if (origin == FrameOrigin::kUser) return kNativeKind;
  if (origin == FrameOrigin::kKernel) return kKernelKind;
  return origin == FrameOrigin::kPython ? kInterpretedKind : 0;
}

std::string ShownModule(const NamedFrame& frame) {
  if (frame.origin == FrameOrigin::kKernel && frame.module.empty()) return "[kernel]";
  if (frame.origin == FrameOrigin::kApi) return "[CUDA]";
  return frame.module.empty() ? "[unknown]" : ForOneLine(frame.module);
}

}  // namespace

void PerfettoWriter::DefineFrame(FrameId id) {
  if (frames_.size() <= id.value) frames_.resize(2 * size_t{id.value} + 1);
  if (frames_[id.value]) return;
  frames_[id.value] = true;
  defines_ = true;
  const NamedFrame& frame = analysis_.frames[id];
  perfetto::InternedName& name = *defined_->add_function_names();
  name.set_iid(id.value);
  name.set_name(ForOneLine(frame.Label()));
  const std::string module = ShownModule(frame);
  const auto [mapping, is_new] = modules_.try_emplace(module, modules_.size() + 1);
  if (is_new) {
    perfetto::InternedName& path = *defined_->add_mapping_paths();
    path.set_iid(mapping->second);
    path.set_name(module);
    perfetto::Mapping& defined = *defined_->add_mappings();
    defined.set_iid(mapping->second);
    defined.add_path_string_ids(mapping->second);
  }
  perfetto::Frame& defined = *defined_->add_frames();
  defined.set_iid(id.value);
  defined.set_function_name_id(id.value);
  defined.set_mapping_id(mapping->second);
  // One frame has many addresses here. Perfetto takes frames of one file with the same address for
  // one frame, so they get addresses that differ.
  defined.set_rel_pc(id.value);
  if (const uint32_t kind = KindOf(frame.origin); kind != 0) defined.set_kind(kind);
}

PerfettoWriter::KnownStack PerfettoWriter::StackOf(PathId path, const CallTree& tree) {
  if (stacks_.size() <= path.value) stacks_.resize(2 * size_t{path.value} + 1);
  KnownStack& stack = stacks_[path.value];
  if (stack == KnownStack::kNew) stack = DefineStack(path, tree);
  return stack;
}

PerfettoWriter::KnownStack PerfettoWriter::DefineStack(PathId path, const CallTree& tree) {
  if (!path || !tree[path].parent) return KnownStack::kNoFrames;
  const std::vector<FrameId> frames = tree.Path(path);
  perfetto::Callstack& stack = *defined_->add_callstacks();
  stack.set_iid(path.value);
  // The first one is the name of the thread.
  for (size_t i = 1; i < frames.size(); ++i) {
    DefineFrame(frames[i]);
    stack.add_frame_ids(frames[i].value);
  }
  defines_ = true;
  const bool is_kernel = analysis_.frames[frames.back()].origin == FrameOrigin::kKernel;
  return is_kernel ? KnownStack::kKernel : KnownStack::kUser;
}

void PerfettoWriter::Sample(const TraceSample& sample, const CallTree& tree) {
  CloseEvent();
  AdvanceTo(sample.time_ns);
  const KnownStack stack = StackOf(sample.path, tree);
  other_.Clear();
  using perfetto::PerfSample;
  other_.PutVarint(PerfSample::kCpuFieldNumber, sample.cpu);
  other_.PutVarint(PerfSample::kPidFieldNumber, sample.thread.pid);
  other_.PutVarint(PerfSample::kTidFieldNumber, sample.thread.tid);
  if (stack != KnownStack::kNoFrames) {
    other_.PutVarint(PerfSample::kCallstackIidFieldNumber, sample.path.value);
    other_.PutVarint(PerfSample::kCpuModeFieldNumber,
                     stack == KnownStack::kKernel ? kKernelMode : kUserMode);
  }
  AppendInOrder(sample.time_ns, TracePacket::kPerfSampleFieldNumber, other_.view());
  ++slices_;
}

void PerfettoWriter::Stack(PathId path, const CallTree& tree) {
  if (StackOf(path, tree) == KnownStack::kNoFrames) return;
  event_.PutVarint(TrackEvent::kCallstackIidFieldNumber, path.value);
}

}  // namespace xpu
