#include "cupti_inject/python_stack.h"

#include <pthread.h>

namespace xpu::inject {
namespace {

constexpr uint16_t kNoMember = XPU_PYTHON_NO_MEMBER;
constexpr uint32_t kMaxThreads = 4096;
constexpr uint32_t kStatusBound = 1u << 3;
constexpr uint64_t kSearchPeriodNs = 50'000'000;
constexpr uint32_t kMaxKeys = 1024;  // PTHREAD_KEYS_MAX
constexpr size_t kFrameWords = XPU_PYTHON_FRAME_BYTES / 8;
constexpr size_t kCodeWords = XPU_PYTHON_CODE_BYTES / 8;

uint64_t WordAt(const uint64_t* words, uint16_t offset) { return words[offset / 8]; }

uint8_t ByteAt(const uint64_t* words, uint16_t offset) {
  return static_cast<uint8_t>(words[offset / 8] >> (offset % 8 * 8));
}

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;

// Of the words that tell a code object from others. A sum of products: nothing in it waits for the
// word before, which is most of what a frame costs otherwise.
uint64_t HashOfCode(const uint64_t* words, uint64_t code, uint64_t first_line) {
  uint64_t hash = (code ^ first_line << 48) * kOdd;
#pragma GCC unroll 7
  for (uint32_t i = 0; i < XPU_PYTHON_HASHED_WORDS; ++i) {
    const uint64_t word = words[i] ^ words[i] >> 29;
    hash += word * (kOdd * (2 * i + 3));
  }
  return hash;
}

// Of offsets that the recorder gave: they are checked once more, it is memory that we index.
bool IsSound(const xpu_python_layout& layout) {
  constexpr uint16_t kLastOfFrame = XPU_PYTHON_FRAME_BYTES - 8;
  constexpr uint16_t kLastOfCode = XPU_PYTHON_CODE_BYTES - 8;
  return layout.frame_bytes <= XPU_PYTHON_FRAME_BYTES && layout.frame_code <= kLastOfFrame &&
         layout.frame_previous <= kLastOfFrame && layout.frame_instruction <= kLastOfFrame &&
         layout.frame_owner < XPU_PYTHON_FRAME_BYTES &&
         (layout.frame_copy == kNoMember || layout.frame_copy <= kLastOfFrame) &&
         (layout.frame_is_entry >= XPU_PYTHON_ALWAYS ||
          layout.frame_is_entry < XPU_PYTHON_FRAME_BYTES) &&
         layout.code_path <= kLastOfCode && layout.code_path >= XPU_PYTHON_BEFORE_PATH &&
         layout.code_path - XPU_PYTHON_BEFORE_PATH + 8 * XPU_PYTHON_HASHED_WORDS <=
             XPU_PYTHON_CODE_BYTES &&
         layout.code_name <= kLastOfCode && layout.code_line_table <= kLastOfCode &&
         layout.code_first_line <= kLastOfCode && layout.object_type <= kLastOfCode;
}

}  // namespace

struct PythonStacks::Walk {
  Walk(const xpu_python_process& python, uint64_t now)
      : layout(python.layout), code_type(python.code_type), now_ns(now) {}

  const xpu_python_layout& layout;
  uint64_t code_type;
  uint64_t now_ns;
  uint64_t frame = 0;
  uint64_t cframe = 0;  // that `frame` is the innermost of; 0: this version has none
  uint64_t frame_words[kFrameWords] = {};
  uint64_t code_words[kCodeWords];
  uint64_t frames[XPU_MAX_PYTHON_FRAMES];  // wire::PythonStackMessage
  uint32_t count = 0;
  uint32_t stop = XPU_PYTHON_COMPLETE;
};

bool PythonStacks::Open(const wire::RingHeader* header, RingProducer* ring, ScratchPool* scratch) {
  header_ = header;
  ring_ = ring;
  scratch_ = scratch;
  return codes_.Open() && stacks_.Open();
}

void PythonStacks::Close() {
  codes_.Close();
  stacks_.Close();
}

// ---- the state of the thread --------------------------------------------------------------------

bool PythonStacks::IsOfThread(uint64_t state, uint32_t tid, uint64_t now_ns) {
  const xpu_python_layout& layout = header_->python.layout;
  uint64_t native = 0;
  if (!Read64(state + layout.native_thread, &native, now_ns)) return false;
  if (layout.thread_number == kNoMember) return native == tid;
  return native == static_cast<uint64_t>(pthread_self());
}

uint64_t PythonStacks::FindThread(uint32_t tid, uint64_t now_ns, ThreadStack& own) {
  const xpu_python_process& python = header_->python;
  const uint32_t key = key_.load(std::memory_order_relaxed);
  if (key == 0) return SearchThreads(tid, now_ns, own);
  uint64_t state = 0;
  // Before 3.12 the key has the state of the first interpreter that the thread was in.
  if (python.layout.current_thread != kNoMember &&
      Read64(python.runtime + python.layout.current_thread, &state, now_ns) && state != 0 &&
      IsOfThread(state, tid, now_ns)) {
    return state;
  }
  state = reinterpret_cast<uint64_t>(pthread_getspecific(key - 1));
  return state != 0 && IsOfThread(state, tid, now_ns) ? state : 0;
}

// Through the lists of the interpreter, now and then: a thread that is not Python's is in none.
uint64_t PythonStacks::SearchThreads(uint32_t tid, uint64_t now_ns, ThreadStack& own) {
  const xpu_python_layout& layout = header_->python.layout;
  if (now_ns < own.next_python_search_ns) return 0;
  uint64_t interpreter = 0, found = 0;
  uint32_t steps = 0;
  if (!Read64(header_->python.runtime + layout.interpreters, &interpreter, now_ns)) return 0;
  while (interpreter != 0 && steps < kMaxThreads) {
    uint64_t state = 0;
    if (!Read64(interpreter + layout.threads, &state, now_ns)) break;
    for (; state != 0 && steps < kMaxThreads; ++steps) {
      uint32_t status = kStatusBound;
      if (IsOfThread(state, tid, now_ns)) {
        if (found == 0) found = state;
        if (layout.status != kNoMember) {
          pages_.Read(state + layout.status, &status, sizeof(status), now_ns);
        }
        if ((status & kStatusBound) != 0) {
          LearnKey(state);
          return state;
        }
      }
      if (!Read64(state + layout.next_thread, &state, now_ns)) break;
    }
    ++steps;
    if (!Read64(interpreter + layout.next_interpreter, &interpreter, now_ns)) break;
  }
  if (found == 0) own.next_python_search_ns = now_ns + kSearchPeriodNs;
  return found;
}

// Which versions keep the key where is not published; that it has this thread's state tells it.
void PythonStacks::LearnKey(uint64_t state) {
  for (uint32_t key = 0; key < kMaxKeys; ++key) {
    if (reinterpret_cast<uint64_t>(pthread_getspecific(key)) != state) continue;
    key_.store(key + 1, std::memory_order_relaxed);
    return;
  }
}

// ---- frames -------------------------------------------------------------------------------------

bool PythonStacks::FirstFrame(uint64_t state, Walk& walk) {
  const xpu_python_layout& layout = walk.layout;
  if (!Read64(state + layout.thread_frame, &walk.frame, walk.now_ns)) return false;
  if (layout.cframe_frame == kNoMember) return true;
  walk.cframe = walk.frame;
  return Read64(walk.cframe + layout.cframe_frame, &walk.frame, walk.now_ns);
}

bool PythonStacks::LeaveCframe(Walk& walk) {
  const uint16_t frame = walk.layout.cframe_frame;
  uint64_t outer = 0;
  if (walk.cframe == 0 || !Read64(walk.cframe + frame + 8, &outer, walk.now_ns) || outer == 0 ||
      !Read64(outer + frame, &walk.frame, walk.now_ns)) {
    return false;
  }
  walk.cframe = 0;
  walk.count = 0;
  return true;
}

// Without the global lock, that of a copy for the thread.
uint64_t PythonStacks::FirstInstruction(const Walk& walk, uint64_t code) {
  const xpu_python_layout& layout = walk.layout;
  uint64_t copies = 0;
  uint64_t first = code + layout.code_instructions;
  if (layout.frame_copy == kNoMember) return first;
  const auto number = static_cast<uint32_t>(WordAt(walk.frame_words, layout.frame_copy) >>
                                            (layout.frame_copy % 8 * 8));
  if (number != 0 && Read64(code + layout.code_copies, &copies, walk.now_ns)) {
    Read64(xpu_python_copy_place(copies, number), &first, walk.now_ns);
  }
  return first;
}

__attribute__((flatten)) bool PythonStacks::TakeFrame(Walk& walk, uint64_t* previous) {
  const xpu_python_layout& layout = walk.layout;
  if (!pages_.Read(walk.frame, walk.frame_words, layout.frame_bytes, walk.now_ns)) {
    return false;
  }
  *previous = WordAt(walk.frame_words, layout.frame_previous);
  if (ByteAt(walk.frame_words, layout.frame_owner) >= layout.stack_owner) {
    if (walk.count > 0 && (walk.frames[walk.count - 1] & wire::kPythonEntry) == 0) {
      walk.frames[walk.count - 1] |= wire::kPythonEntry;
    } else {
      walk.frames[walk.count++] = wire::kPythonEntry | XPU_PYTHON_NO_FUNCTION;
    }
    return true;
  }
  const uint64_t code = WordAt(walk.frame_words, layout.frame_code) & ~uint64_t{7};
  if (!pages_.Read(code, walk.code_words, sizeof(walk.code_words), walk.now_ns) ||
      WordAt(walk.code_words, layout.object_type) != walk.code_type) {
    return false;
  }
  const uint64_t into = xpu_python_offset(&layout, FirstInstruction(walk, code),
                                          WordAt(walk.frame_words, layout.frame_instruction));
  uint64_t frame = uint64_t{NumberOf(walk, code)} << 32 | into;
  if (layout.frame_is_entry == XPU_PYTHON_ALWAYS ||
      (layout.frame_is_entry != kNoMember &&
       ByteAt(walk.frame_words, layout.frame_is_entry) != 0)) {
    frame |= wire::kPythonEntry;
  }
  walk.frames[walk.count++] = frame;
  return true;
}

void PythonStacks::WalkFrames(Walk& walk) {
  for (uint32_t steps = 0; walk.frame != 0; ++steps) {
    if (walk.count == XPU_MAX_PYTHON_FRAMES || steps == 2 * XPU_MAX_PYTHON_FRAMES) {
      walk.stop = XPU_PYTHON_DEPTH;
      return;
    }
    uint64_t previous = 0;
    if (TakeFrame(walk, &previous)) {
      walk.frame = previous;
    } else if (!LeaveCframe(walk)) {
      walk.stop = XPU_PYTHON_UNREADABLE;
      return;
    }
  }
}

uint32_t PythonStacks::TakeStack(uint32_t tid, uint64_t now_ns, ThreadStack& own) {
  const xpu_python_process& python = header_->python;
  if (!IsSound(python.layout)) return 0;
  const uint64_t state = FindThread(tid, now_ns, own);
  if (state == 0) return 0;
  Walk walk(python, now_ns);
  if (!FirstFrame(state, walk)) return 0;
  WalkFrames(walk);
  return walk.count == 0 && walk.stop == XPU_PYTHON_COMPLETE ? 0 : Send(walk);
}

// ---- what is sent -------------------------------------------------------------------------------

uint64_t PythonStacks::HashOfContent(const Walk& walk) {
  const xpu_python_layout& layout = walk.layout;
  const uint64_t name = WordAt(walk.code_words, layout.code_name);
  const uint64_t table = WordAt(walk.code_words, layout.code_line_table);
  uint64_t name_hash = 0;
  uint64_t lines[XPU_PYTHON_LINE_TABLE_WORDS] = {};
  Read64(xpu_python_text_hash(&layout, name), &name_hash, walk.now_ns);
  pages_.Read(table + layout.bytes_length, lines, sizeof(lines), walk.now_ns);
  uint64_t hash = name_hash * (kOdd * 17);
  for (const uint64_t word : lines) hash = (hash ^ word ^ word >> 29) * (kOdd * 19);
  return hash;
}

uint32_t PythonStacks::NumberOf(const Walk& walk, uint64_t code) {
  const uint32_t telling = (walk.layout.code_path - XPU_PYTHON_BEFORE_PATH) / 8;
  const uint64_t first_line = WordAt(walk.code_words, walk.layout.code_first_line);
  uint64_t hash = HashOfCode(walk.code_words + telling, code, first_line);
  if (xpu_python_needs_content(&walk.layout)) hash += HashOfContent(walk);
  hash ^= hash >> 32;
  StackIds::Entry* entry = codes_.Find(hash == 0 ? 1 : hash);
  if (entry == nullptr) return 0;
  const uint32_t number = codes_.NumberOf(entry);
  if (entry->sent.load(std::memory_order_acquire)) return number;
  if (!Define(walk, number)) return 0;
  entry->sent.store(true, std::memory_order_release);
  return number;
}

uint32_t PythonStacks::CopyText(uint64_t text, std::byte* to, uint32_t limit, uint32_t* kind,
                                uint64_t now_ns) {
  const xpu_python_layout& layout = header_->python.layout;
  uint64_t length = 0;
  uint32_t state = 0;
  if (!Read64(text + layout.text_length, &length, now_ns) ||
      !pages_.Read(text + layout.text_state, &state, sizeof(state), now_ns)) {
    return 0;
  }
  state >>= layout.text_kind_shift & 31;
  *kind = state & 7;
  const bool is_compact = (state & 8) != 0;
  if (!is_compact || (*kind != 1 && *kind != 2 && *kind != 4)) return 0;
  const uint64_t bytes = length < limit / *kind ? length * *kind : limit;
  const uint64_t at = text + ((state & 16) != 0 ? layout.text_ascii : layout.text_other);
  return static_cast<uint32_t>(ReadOwnMemory(at, to, bytes));
}

bool PythonStacks::Define(const Walk& walk, uint32_t number) {
  const xpu_python_layout& layout = walk.layout;
  std::byte* texts = scratch_->Take();
  if (texts == nullptr) return false;
  static_assert(XPU_PYTHON_NAME_BYTES + XPU_PYTHON_PATH_BYTES + XPU_PYTHON_LINE_TABLE_BYTES <=
                ScratchPool::kPieceBytes);
  wire::PythonCodeMessage message{};
  message.code = number;
  message.version = layout.version;
  message.first_line = static_cast<uint32_t>(WordAt(walk.code_words, layout.code_first_line) >>
                                             (layout.code_first_line % 8 * 8));
  message.name_bytes = CopyText(WordAt(walk.code_words, layout.code_name), texts,
                                XPU_PYTHON_NAME_BYTES, &message.name_kind, walk.now_ns);
  uint32_t used = message.name_bytes;
  message.path_bytes = CopyText(WordAt(walk.code_words, layout.code_path), texts + used,
                                XPU_PYTHON_PATH_BYTES, &message.path_kind, walk.now_ns);
  used += message.path_bytes;
  const uint64_t table = WordAt(walk.code_words, layout.code_line_table);
  uint64_t table_bytes = 0;
  if (Read64(table + layout.bytes_length, &table_bytes, walk.now_ns)) {
    if (table_bytes > XPU_PYTHON_LINE_TABLE_BYTES) table_bytes = XPU_PYTHON_LINE_TABLE_BYTES;
    message.line_table_bytes =
        static_cast<uint32_t>(ReadOwnMemory(table + layout.bytes_data, texts + used, table_bytes));
    used += message.line_table_bytes;
  }
  const bool sent =
      message.name_bytes > 0 && ring_->Send(wire::MessageKind::kPythonCode, message, texts, used);
  scratch_->Give(texts);
  return sent;
}

uint32_t PythonStacks::Send(const Walk& walk) {
  StackIds::Entry* entry = stacks_.Find(StackIds::HashOf(walk.frames, walk.count, walk.stop));
  if (entry == nullptr) {
    const uint32_t number = next_single_.fetch_add(1, std::memory_order_relaxed);
    return SendFrames(number, walk) ? number : 0;
  }
  const uint32_t number = stacks_.NumberOf(entry);
  if (entry->sent.load(std::memory_order_acquire)) return number;
  if (!SendFrames(number, walk)) return 0;
  entry->sent.store(true, std::memory_order_release);
  return number;
}

bool PythonStacks::SendFrames(uint32_t number, const Walk& walk) {
  wire::PythonStackMessage message{};
  message.stack = number;
  message.frame_count = walk.count;
  message.stop = walk.stop;
  if (ring_->Send(wire::MessageKind::kPythonStack, message, walk.frames,
                  walk.count * sizeof(uint64_t))) {
    return true;
  }
  ring_->Count(wire::kCounterPythonDropped);
  return false;
}

}  // namespace xpu::inject
