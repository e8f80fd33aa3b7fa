#include "record/gpu/inline_python.h"

#include <cstring>
#include <utility>

#include "cupti_inject/wire_stacks.h"
#include "record/gpu/wire_message.h"
#include "record/python/python_frames.h"

namespace xpu {
namespace {

constexpr uint64_t kCodeBytes = 40;  // estimated, for an entry of the table of code objects

}  // namespace

void InlinePython::ObserveFile(const MappedFile& file, uint64_t bias, EventSink& sink) {
  const bool is_program = !std::exchange(has_program_, true);
  if (files_ == nullptr || has_python_) return;
  const PythonFiles::File* found = files_->Find(file, is_program);
  if (found == nullptr) return;
  has_python_ = true;
  if (found->runtime.kind != PythonRuntime::Kind::kKnown) {
    sink.losses().Add(LossKind::kPythonNotWalked, 1, pid_, instance_, NameOf(found->runtime));
    return;
  }
  header_.python = found->InProcess(bias);
  header_.has_python.store(1, std::memory_order_release);
}

bool InlinePython::TakeCode(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::PythonCodeMessage>(message);
  if (!fixed) return false;
  const wire::PythonCodeMessage& raw = *fixed->operator->();
  const size_t texts = size_t{raw.name_bytes} + raw.path_bytes + raw.line_table_bytes;
  const auto bytes = BytesAfter(message, sizeof(raw), texts);
  if (!bytes || raw.code == 0) return false;
  if (!codes_.contains(raw.code) && !memory_.Take(kCodeBytes)) return true;
  const Bytes table = bytes->last(raw.line_table_bytes);
  codes_[raw.code] = sink.Define(
      {.name = PythonText(bytes->first(raw.name_bytes), raw.name_kind),
       .path = PythonText(bytes->subspan(raw.name_bytes, raw.path_bytes), raw.path_kind),
       .first_line = raw.first_line,
       .line_table = {reinterpret_cast<const char*>(table.data()), table.size()},
       .version = raw.version});
  return true;
}

bool InlinePython::TakeStack(Bytes message) {
  const auto fixed = ReadFixed<wire::PythonStackMessage>(message);
  if (!fixed || (*fixed)->frame_count > XPU_MAX_PYTHON_FRAMES || (*fixed)->stack == 0) return false;
  const size_t bytes = (*fixed)->frame_count * sizeof(uint64_t);
  const auto frames = BytesAfter(message, sizeof(wire::PythonStackMessage), bytes);
  if (!frames) return false;
  Stack stack;
  stack.frames.resize((*fixed)->frame_count);
  if (bytes > 0) std::memcpy(stack.frames.data(), frames->data(), bytes);
  stack.stop = (*fixed)->stop;
  stacks_.Put((*fixed)->stack, std::move(stack));
  return true;
}

StackId InlinePython::Intern(uint32_t number, EventSink& sink) {
  const Stack* stack = number == 0 ? nullptr : stacks_.Find(number);
  if (stack == nullptr) return {};
  frames_.clear();
  for (const uint64_t raw : stack->frames) {
    const auto code = codes_.find(static_cast<uint32_t>(raw >> 32));
    AddPythonFrame({.code = code == codes_.end() ? 0 : code->second,
                    .is_entry = (raw & wire::kPythonEntry) != 0,
                    .offset = static_cast<uint32_t>(raw) & PythonFrame::kMaxOffset},
                   pid_, instance_, sink, frames_);
  }
  AddPythonStop(stack->stop, pid_, instance_, sink, frames_);
  if (number >= wire::kFirstSingleStack) stacks_.Erase(number);
  return sink.Intern(frames_);
}

}  // namespace xpu
