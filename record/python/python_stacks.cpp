#include "record/python/python_stacks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "record/kernel/bpf_support.h"
#include "record/python/python_frames.h"
#include "record/python/remote_python.h"

namespace xpu {
namespace {

// Beyond this number, code objects of a program that creates functions without end are forgotten.
constexpr size_t kMaxNumbers = size_t{1} << 20;

// The stack grows downwards. Frames whose loop is not known are the outermost ones.
void SortByLoop(std::vector<RawPythonFrame>& frames) {
  uint64_t loop = UINT64_MAX;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->is_entry && frame->loop != 0) loop = frame->loop;
    frame->loop = loop;
  }
  std::stable_sort(
      frames.begin(), frames.end(),
      [](const RawPythonFrame& a, const RawPythonFrame& b) { return a.loop < b.loop; });
}

}  // namespace

std::vector<RawPythonFrame> PythonFramesOf(std::span<const __u64> words) {
  std::vector<RawPythonFrame> frames;
  size_t begin = 0;  // of the frames of the same state
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == XPU_PYTHON_STATE) {
      begin = frames.size();
      continue;
    }
    if (words[i] == XPU_PYTHON_BEGIN) {
      frames.resize(begin);
      continue;
    }
    if (words[i] == 0) {
      if (frames.size() == begin || frames.back().loop != 0) {
        frames.push_back({.offset = XPU_PYTHON_NO_FUNCTION});
      }
      frames.back().is_entry = true;
      frames.back().loop = words[i + 1];
      continue;
    }
    frames.push_back(
        {.code = words[i],
         .fingerprint = static_cast<uint32_t>(words[i + 1] >> XPU_PYTHON_FINGERPRINT_SHIFT),
         .offset = static_cast<uint32_t>(words[i + 1]) & PythonFrame::kMaxOffset,
         .is_entry = (words[i + 1] & XPU_PYTHON_IS_ENTRY) != 0});
  }
  if (begin > 0) SortByLoop(frames);
  return frames;
}

PythonStacks::PythonStacks(PythonMaps maps, ProcessTable& processes)
    : maps_(std::move(maps)), table_(processes) {
  processes.AddListener(this);
}

PythonStacks::~PythonStacks() = default;

Result<std::unique_ptr<PythonStacks>> PythonStacks::Create(ProcessTable& processes) {
  XPU_ASSIGN_OR_RETURN(PythonMaps maps, PythonMaps::Create());
  std::unique_ptr<PythonStacks> stacks(new PythonStacks(std::move(maps), processes));
  XPU_ASSIGN_OR_RETURN(BpfRing ring,
                       BpfRing::Open(stacks->maps_.codes_fd(),
                                     [stacks = stacks.get()](std::span<const std::byte> bytes) {
                                       stacks->TakeCode(bytes);
                                     }));
  stacks->ring_ = std::make_unique<BpfRing>(std::move(ring));
  return stacks;
}

// ---- processes ----------------------------------------------------------------------------------

void PythonStacks::SetProcess(uint32_t pid, const xpu_python_process& process) {
  // If the map is full, the samples of the process have native frames only.
  if (process.runtime != 0) (void)maps_.SetProcess(pid, process);
}

void PythonStacks::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  if (!table_.IsCurrent(pid, mapping) || processes_.contains(pid)) return;
  // The first mapping is the program itself.
  const ProcessTable::Process* mapped = table_.Find(pid);
  const bool is_program = mapped->code && mapped->code->mappings().size() == 1;
  const PythonFiles::File* found =
      files_.Find(table_.MappedFileOf(pid, start, mapping), is_program);
  if (found == nullptr) return;
  if (found->runtime.kind != PythonRuntime::Kind::kKnown) {
    processes_[pid] = {};
    not_walked_.push_back({pid, NameOf(found->runtime)});
    return;
  }
  const auto link_address =
      LinkAddressOfCodeMapping(found->segments, mapping.file_offset, mapping.end - start);
  if (!link_address) return;
  processes_[pid] = found->InProcess(start - *link_address);
  SetProcess(pid, processes_[pid]);
}

void PythonStacks::OnFork(uint32_t parent_pid, uint32_t pid) {
  const auto found = processes_.find(parent_pid);
  if (found == processes_.end()) return;
  const xpu_python_process copy = found->second;
  processes_[pid] = copy;
  SetProcess(pid, copy);
}

void PythonStacks::OnExec(uint32_t pid) {
  if (processes_.erase(pid) > 0) maps_.Forget(pid);
}

void PythonStacks::OnEnd(uint32_t pid) {
  OnExec(pid);
  numbers_.erase(numbers_.lower_bound({pid, 0, 0}), numbers_.lower_bound({pid + 1, 0, 0}));
}

// ---- code objects -------------------------------------------------------------------------------

void PythonStacks::TakeCode(std::span<const std::byte> bytes) {
  if (sink_ == nullptr || bytes.size() < sizeof(xpu_python_code)) return;
  const auto& raw = *reinterpret_cast<const xpu_python_code*>(bytes.data());
  const auto part = [](const auto& array, uint32_t size) {
    return std::as_bytes(std::span(array)).first(std::min<size_t>(size, std::size(array)));
  };
  if (raw.name_bytes == 0) return;  // it is sent again
  const auto table = part(raw.line_table, raw.line_table_bytes);
  PythonCodes::Content content{
      .name = PythonText(part(raw.name, raw.name_bytes), raw.name_kind),
      .path = PythonText(part(raw.path, raw.path_bytes), raw.path_kind),
      .first_line = raw.first_line,
      .line_table = {reinterpret_cast<const char*>(table.data()), table.size()},
      .version = raw.version};
  if (numbers_.size() >= kMaxNumbers) numbers_.clear();
  numbers_[{raw.key.pid, raw.key.code, raw.key.fingerprint}] = sink_->Define(std::move(content));
}

void PythonStacks::Drain(EventSink& sink) {
  sink_ = &sink;
  ring_->Drain();
  for (NotWalked& process : std::exchange(not_walked_, {})) {
    sink.losses().Add(LossKind::kPythonNotWalked, 1, process.pid, {}, std::move(process.version));
  }
}

// A code object is reported before the first stack that contains it, in a ring of its own.
uint32_t PythonStacks::NumberOf(const RawPythonFrame& frame, uint32_t pid, EventSink& sink) {
  const CodeKey key{pid, frame.code, frame.fingerprint};
  auto found = numbers_.find(key);
  if (found == numbers_.end()) {
    Drain(sink);
    found = numbers_.find(key);
  }
  return found == numbers_.end() ? 0 : found->second;
}

StackId PythonStacks::Take(const xpu_stack& stack, size_t bytes, uint32_t pid, EventSink& sink) {
  if (stack.python_frames == 0 && stack.python_stop == XPU_PYTHON_COMPLETE) return {};
  const size_t behind_head = bytes - std::min(bytes, offsetof(xpu_stack, frames));
  const size_t present = std::min(behind_head / sizeof(stack.frames[0]), std::size(stack.frames));
  const size_t before = static_cast<size_t>(std::max(stack.kernel_frames, 0)) +
                        static_cast<size_t>(std::max(stack.user_frames, 0));
  if (before > present) return {};
  const size_t words = std::min<size_t>(present - before, size_t{stack.python_frames} * 2);
  frames_.clear();
  for (const RawPythonFrame& raw : PythonFramesOf(std::span(stack.frames).subspan(before, words))) {
    AddPythonFrame({.code = raw.code == 0 ? 0 : NumberOf(raw, pid, sink),
                    .is_entry = raw.is_entry,
                    .is_on_top = stack.python_on_top != 0 && frames_.empty(),
                    .offset = raw.offset},
                   pid, {}, sink, frames_);
  }
  AddPythonStop(stack.python_stop, pid, {}, sink, frames_);
  return sink.Intern(frames_);
}

StackId PythonStacks::TakeRemote(uint32_t pid, uint32_t own_tid, EventSink& sink) {
  const auto process = processes_.find(pid);
  if (process == processes_.end() || process->second.runtime == 0) return {};
  RemotePythonStack stack = ReadPythonStack(pid, own_tid, process->second);
  if (stack.frames.empty() && stack.stop == XPU_PYTHON_COMPLETE) return {};
  frames_.clear();
  for (RemotePythonFrame& frame : stack.frames) {
    const uint32_t code = frame.code.name.empty() ? 0 : sink.Define(std::move(frame.code));
    AddPythonFrame({.code = code, .is_entry = frame.is_entry, .offset = frame.offset}, pid, {},
                   sink, frames_);
  }
  AddPythonStop(stack.stop, pid, {}, sink, frames_);
  return sink.Intern(frames_);
}

}  // namespace xpu
