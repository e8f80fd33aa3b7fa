#include "record/python/remote_python.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "record/base/process_memory.h"

namespace xpu {
namespace {

constexpr uint16_t kMissing = XPU_PYTHON_NO_MEMBER;
constexpr uint32_t kMaxThreadStates = 4096;
constexpr uint32_t kStatusBound = 1u << 3;

class PythonWalk {
 public:
  PythonWalk(uint32_t pid, const xpu_python_process& python)
      : memory_(static_cast<pid_t>(pid)), python_(python), layout_(python.layout) {}

  RemotePythonStack Take(uint32_t thread);

 private:
  using FrameBytes = std::array<std::byte, XPU_PYTHON_FRAME_BYTES>;
  using CodeBytes = std::array<std::byte, XPU_PYTHON_CODE_BYTES>;

  template <typename Value>
  bool Read(uint64_t address, Value& value) const {
    return memory_.Read(address, &value, sizeof(value));
  }
  // Of what was read; 0 if the layout leads outside.
  template <typename Value, typename Bytes>
  static Value At(const Bytes& bytes, uint32_t offset) {
    Value value{};
    if (offset + sizeof(value) <= bytes.size()) {
      std::memcpy(&value, bytes.data() + offset, sizeof(value));
    }
    return value;
  }

  bool IsOfThread(uint64_t state, uint32_t thread) const;
  bool Begin(uint64_t state);
  void FindFrames(uint32_t thread);
  // Of the code, or of the copy of it that the frame runs.
  uint64_t FirstInstruction(const FrameBytes& frame, uint64_t code) const;
  bool TakeFrame(RemotePythonStack& stack, uint64_t& previous);
  bool LeaveCframe(RemotePythonStack& stack);
  PythonCodes::Content ContentOf(const CodeBytes& code) const;
  std::string Text(uint64_t text, size_t limit) const;
  std::string Bytes(uint64_t object, size_t limit) const;
  // As far as it is readable.
  std::string ReadUpTo(uint64_t address, size_t bytes) const;

  ProcessMemory memory_;
  const xpu_python_process& python_;
  const xpu_python_layout& layout_;
  uint64_t frame_ = 0;
  uint64_t cframe_ = 0;  // whose innermost frame is `frame_`; 0: this version has none
};

bool PythonWalk::IsOfThread(uint64_t state, uint32_t thread) const {
  uint64_t native = 0;
  if (!Read(state + layout_.native_thread, native)) return false;
  if (layout_.thread_number == kMissing) return native == thread;
  uint32_t number = 0;
  return Read(native + layout_.thread_number, number) && number == thread;
}

// False if the thread runs nothing in this state.
bool PythonWalk::Begin(uint64_t state) {
  uint64_t frame = 0, cframe = 0;
  if (!Read(state + layout_.thread_frame, frame) || frame == 0) return false;
  if (layout_.cframe_frame != kMissing) {
    cframe = frame;
    if (!Read(cframe + layout_.cframe_frame, frame) || frame == 0) return false;
  }
  frame_ = frame;
  cframe_ = cframe;
  return true;
}

// A thread may have a state in several interpreters: prefers the one that it has used last.
void PythonWalk::FindFrames(uint32_t thread) {
  uint64_t interpreter = 0;
  uint32_t steps = 0;
  if (!Read(python_.runtime + layout_.interpreters, interpreter)) return;
  while (interpreter != 0 && steps < kMaxThreadStates) {
    uint64_t state = 0;
    if (!Read(interpreter + layout_.threads, state)) break;
    for (; state != 0 && steps < kMaxThreadStates; ++steps) {
      uint32_t status = kStatusBound;
      if (layout_.status != kMissing) (void)Read(state + layout_.status, status);
      if (IsOfThread(state, thread) && Begin(state) && (status & kStatusBound) != 0) return;
      if (!Read(state + layout_.next_thread, state)) break;
    }
    ++steps;
    if (!Read(interpreter + layout_.next_interpreter, interpreter)) break;
  }
}

std::string PythonWalk::ReadUpTo(uint64_t address, size_t bytes) const {
  std::string text(bytes, '\0');
  text.resize(memory_.ReadSome(address, text.data(), bytes));
  return text;
}

std::string PythonWalk::Text(uint64_t text, size_t limit) const {
  uint64_t length = 0;
  uint32_t state = 0;
  if (!Read(text + layout_.text_length, length) || !Read(text + layout_.text_state, state)) {
    return {};
  }
  state >>= layout_.text_kind_shift & 31;
  const uint32_t kind = state & 7;
  const bool is_compact = (state & 8) != 0;  // created by the interpreter
  if (!is_compact || (kind != 1 && kind != 2 && kind != 4)) return {};
  const uint64_t at = text + ((state & 16) != 0 ? layout_.text_ascii : layout_.text_other);
  const std::string bytes = ReadUpTo(at, std::min<uint64_t>(length, limit / kind) * kind);
  return PythonText(std::as_bytes(std::span(bytes)), kind);
}

std::string PythonWalk::Bytes(uint64_t object, size_t limit) const {
  uint64_t length = 0;
  if (!Read(object + layout_.bytes_length, length)) return {};
  return ReadUpTo(object + layout_.bytes_data, std::min<uint64_t>(length, limit));
}

PythonCodes::Content PythonWalk::ContentOf(const CodeBytes& code) const {
  return {
      .name = Text(At<uint64_t>(code, layout_.code_name), XPU_PYTHON_NAME_BYTES),
      .path = Text(At<uint64_t>(code, layout_.code_path), XPU_PYTHON_PATH_BYTES),
      .first_line = At<uint32_t>(code, layout_.code_first_line),
      .line_table = Bytes(At<uint64_t>(code, layout_.code_line_table), XPU_PYTHON_LINE_TABLE_BYTES),
      .version = layout_.version};
}

uint64_t PythonWalk::FirstInstruction(const FrameBytes& frame, uint64_t code) const {
  uint64_t copies = 0;
  uint64_t first = code + layout_.code_instructions;
  if (layout_.frame_copy == kMissing) return first;
  const auto number = At<uint32_t>(frame, layout_.frame_copy);
  if (number != 0 && Read(code + layout_.code_copies, copies)) {
    (void)Read(xpu_python_copy_place(copies, number), first);
  }
  return first;
}

bool PythonWalk::TakeFrame(RemotePythonStack& stack, uint64_t& previous) {
  FrameBytes frame{};
  CodeBytes code;
  if (!memory_.Read(frame_, frame.data(), std::min<size_t>(frame.size(), layout_.frame_bytes))) {
    return false;
  }
  previous = At<uint64_t>(frame, layout_.frame_previous);
  if (At<uint8_t>(frame, layout_.frame_owner) >= layout_.stack_owner) {
    if (stack.frames.empty() || stack.frames.back().is_entry) {
      stack.frames.push_back({.code = {}, .offset = XPU_PYTHON_NO_FUNCTION});
    }
    stack.frames.back().is_entry = true;
    return true;
  }
  const uint64_t address = At<uint64_t>(frame, layout_.frame_code) & ~uint64_t{7};
  if (!Read(address, code) || At<uint64_t>(code, layout_.object_type) != python_.code_type) {
    return false;
  }
  const uint64_t offset = xpu_python_offset(&layout_, FirstInstruction(frame, address),
                                            At<uint64_t>(frame, layout_.frame_instruction));
  stack.frames.push_back({.code = ContentOf(code),
                          .is_entry = layout_.frame_is_entry == XPU_PYTHON_ALWAYS ||
                                      (layout_.frame_is_entry != kMissing &&
                                       At<uint8_t>(frame, layout_.frame_is_entry) != 0),
                          .offset = static_cast<uint32_t>(offset)});
  return true;
}

// See bpf/python.h: the frames so far are data of earlier calls.
bool PythonWalk::LeaveCframe(RemotePythonStack& stack) {
  const uint16_t frame = layout_.cframe_frame;
  uint64_t outer = 0;
  if (cframe_ == 0 || !Read(cframe_ + frame + 8, outer) || outer == 0 ||
      !Read(outer + frame, frame_)) {
    return false;
  }
  cframe_ = 0;
  stack.frames.clear();
  return true;
}

RemotePythonStack PythonWalk::Take(uint32_t thread) {
  RemotePythonStack stack;
  FindFrames(thread);
  for (uint32_t steps = 0; frame_ != 0; ++steps) {
    if (stack.frames.size() == XPU_MAX_PYTHON_FRAMES || steps == 2 * XPU_MAX_PYTHON_FRAMES) {
      stack.stop = XPU_PYTHON_DEPTH;
      break;
    }
    uint64_t previous = 0;
    if (TakeFrame(stack, previous)) {
      frame_ = previous;
    } else if (!LeaveCframe(stack)) {
      stack.stop = XPU_PYTHON_UNREADABLE;
      break;
    }
  }
  return stack;
}

}  // namespace

RemotePythonStack ReadPythonStack(uint32_t pid, uint32_t thread, const xpu_python_process& python) {
  return PythonWalk(pid, python).Take(thread);
}

}  // namespace xpu
