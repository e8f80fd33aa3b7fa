#include "record/python/python_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "format/base/path.h"
#include "format/base/text.h"
#include "record/process/unwind_file.h"
#include "symbolize/elf/data_symbol.h"
#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

constexpr uint16_t kNoMember = XPU_PYTHON_NO_MEMBER;
constexpr uint16_t kOwnedByStack = 3;  // FRAME_OWNED_BY_CSTACK, later ..._BY_INTERPRETER

constexpr uint16_t Version(uint16_t minor) { return static_cast<uint16_t>(3 << 8 | minor); }

// Offsets that no version since 3.11 has changed.
constexpr xpu_python_layout Common(uint16_t minor) {
  xpu_python_layout layout{};
  layout.version = Version(minor);
  layout.current_thread = kNoMember;
  layout.status = kNoMember;
  layout.cframe_frame = kNoMember;
  layout.thread_number = kNoMember;
  layout.frame_bytes = XPU_PYTHON_SHORT_FRAME_BYTES;
  layout.frame_is_entry = kNoMember;
  layout.frame_copy = kNoMember;
  layout.stack_owner = kOwnedByStack;
  layout.object_type = 8;
  layout.text_length = 16;
  layout.text_state = 32;
  layout.text_kind_shift = 2;
  layout.bytes_length = 16;
  layout.bytes_data = 32;
  return layout;
}

// Offsets measured with the headers of each version: those that 3.11 and 3.12 share, then the
// others.
constexpr xpu_python_layout ByTable(uint16_t minor) {
  xpu_python_layout layout = Common(minor);
  layout.interpreters = 40;
  layout.next_interpreter = 0;
  layout.next_thread = 8;
  layout.thread_frame = 56;
  layout.frame_instruction = 56;
  layout.code_path = 112;
  layout.code_name = 128;
  layout.code_line_table = 136;
  return layout;
}

constexpr xpu_python_layout Layout311() {
  xpu_python_layout layout = ByTable(11);
  layout.current_thread = 576;
  layout.threads = 16;
  layout.native_thread = 160;
  layout.cframe_frame = 8;
  layout.frame_code = 32;
  layout.frame_previous = 48;
  layout.frame_is_entry = 68;
  layout.frame_owner = 69;
  layout.code_first_line = 72;
  layout.code_instructions = 184;
  layout.text_ascii = 48;
  layout.text_other = 72;
  return layout;
}

constexpr xpu_python_layout Layout312() {
  xpu_python_layout layout = ByTable(12);
  layout.threads = 72;
  layout.native_thread = 144;
  layout.status = 24;
  layout.cframe_frame = 0;
  layout.frame_code = 0;
  layout.frame_previous = 8;
  layout.frame_owner = 70;
  layout.code_first_line = 68;
  layout.code_instructions = 192;
  layout.text_ascii = 40;
  layout.text_other = 56;
  return layout;
}

// 3.9 and 3.10: frames are objects, and the interpreter calls itself for each. A thread is known by
// what pthread_self returns, in which glibc has its number.
constexpr xpu_python_layout OldLayout(uint16_t minor) {
  constexpr uint16_t kNumberInGlibc = 720;
  constexpr uint16_t kFrameCode = 32;
  xpu_python_layout layout = Common(minor);
  layout.interpreters = 32;
  layout.next_interpreter = 0;
  layout.threads = 8;
  layout.next_thread = 8;
  layout.native_thread = 176;
  layout.thread_number = kNumberInGlibc;
  layout.current_thread = 568;
  layout.thread_frame = 24;
  layout.frame_bytes = XPU_PYTHON_FRAME_BYTES;
  layout.frame_previous = 24;
  layout.frame_code = kFrameCode;
  layout.frame_owner = kFrameCode + 7;  // all are the program's: no address is so high
  layout.frame_is_entry = XPU_PYTHON_ALWAYS;
  layout.frame_instruction = minor == 9 ? 104 : 96;
  layout.instruction_unit = minor == 9 ? 1 : 2;
  layout.code_first_line = 40;
  layout.code_path = 104;
  layout.code_name = 112;
  layout.code_line_table = 120;
  layout.text_ascii = 48;
  layout.text_other = 72;
  return layout;
}

std::optional<xpu_python_layout> LayoutByTable(uint16_t version) {
  if (version == Version(9) || version == Version(10)) return OldLayout(version & 0xff);
  if (version == Version(11)) return Layout311();
  if (version == Version(12)) return Layout312();
  return std::nullopt;
}

// The start of _PyRuntime from 3.13 on: a list of 64-bit offsets, accessed by index.
class PublishedOffsets {
 public:
  static constexpr size_t kCount = 96;

  explicit PublishedOffsets(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool IsThere() const {
    return AsChars(bytes_.first(std::min<size_t>(bytes_.size(), 8))).size() == 8 &&
           std::string_view(AsChars(bytes_).data(), 8) == "xdebugpy";
  }
  uint64_t At(size_t index) const {
    uint64_t value = UINT64_MAX;
    ReadAt(bytes_, index * sizeof(value), value);
    return value;
  }
  // False after an offset was too large.
  bool ok() const { return ok_; }
  uint16_t Offset(size_t index, uint64_t limit = kNoMember) {
    const uint64_t value = At(index);
    if (value >= limit) ok_ = false;
    return static_cast<uint16_t>(value);
  }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

// Where the groups of offsets begin; the groups grow between versions.
struct Groups {
  size_t runtime, interpreter, thread, frame, code, object, text, bytes;
};
constexpr Groups kGroups313{3, 6, 19, 28, 34, 44, 67, 64};
constexpr Groups kGroups314{3, 6, 22, 31, 39, 50, 77, 74};

std::optional<xpu_python_layout> ReadLayout(PublishedOffsets offsets, uint16_t minor) {
  constexpr uint64_t kLastWord = XPU_PYTHON_CODE_BYTES - 8 + 1;
  const Groups& at = minor == 13 ? kGroups313 : kGroups314;
  xpu_python_layout layout = Common(minor);
  layout.interpreters = offsets.Offset(at.runtime + 2);
  layout.next_interpreter = offsets.Offset(at.interpreter + 2);
  layout.threads = offsets.Offset(at.interpreter + 3);
  layout.next_thread = offsets.Offset(at.thread + 2);
  layout.thread_frame = offsets.Offset(at.thread + 4);
  layout.native_thread = offsets.Offset(at.thread + 6);
  layout.status = offsets.Offset(at.thread + 8);
  layout.frame_previous = offsets.Offset(at.frame + 1, XPU_PYTHON_SHORT_FRAME_BYTES);
  layout.frame_code = offsets.Offset(at.frame + 2, XPU_PYTHON_SHORT_FRAME_BYTES);
  layout.frame_instruction = offsets.Offset(at.frame + 3, XPU_PYTHON_SHORT_FRAME_BYTES);
  layout.frame_owner = offsets.Offset(at.frame + 5, XPU_PYTHON_SHORT_FRAME_BYTES);
  layout.code_path = offsets.Offset(at.code + 1, kLastWord);
  layout.code_name = offsets.Offset(at.code + 3, kLastWord);
  layout.code_line_table = offsets.Offset(at.code + 4, kLastWord);
  layout.code_first_line = offsets.Offset(at.code + 5, kLastWord);
  layout.code_instructions = offsets.Offset(at.code + 9);
  layout.object_type = offsets.Offset(at.object + 1, kLastWord);
  layout.text_state = offsets.Offset(at.text + 1);
  layout.text_length = offsets.Offset(at.text + 2);
  layout.text_ascii = offsets.Offset(at.text + 3);
  layout.text_other = static_cast<uint16_t>(layout.text_ascii + 16);
  layout.bytes_length = offsets.Offset(at.bytes + 1);
  layout.bytes_data = offsets.Offset(at.bytes + 2);
  // Without the global lock, each thread runs a copy of the code.
  if (minor >= 14 && offsets.At(2) != 0) {
    layout.frame_copy = offsets.Offset(at.frame + 7, XPU_PYTHON_SHORT_FRAME_BYTES - 4);
    layout.code_copies = offsets.Offset(at.code + 10);
    layout.text_kind_shift = 8;
  }
  // The neighbors and the interpreter of a state are read together with its status.
  if (!offsets.ok() || offsets.At(at.thread + 1) != 0 || layout.next_thread != 8 ||
      offsets.At(at.thread + 3) != 16 || layout.status >= XPU_PYTHON_STATE_HEAD_BYTES ||
      layout.code_path < XPU_PYTHON_BEFORE_PATH || layout.text_state - layout.text_length != 16) {
    return std::nullopt;
  }
  return layout;
}

// Decodes Py_Version, which has the format of sys.hexversion; older versions are known by functions
// that they were the first to have. 0: older than 3.9.
uint16_t VersionOf(const ElfImage& image) {
  const auto address = FindSymbolAddress(image, "Py_Version");
  if (!address && FindSymbolAddress(image, "Py_NewRef")) return Version(10);
  if (!address && FindSymbolAddress(image, "PyFrame_GetBack")) return Version(9);
  uint64_t version = 0;
  if (address) ReadAt(image.BytesAtLinkAddress(*address, sizeof(version)), 0, version);
  return static_cast<uint16_t>(version >> 16);
}

}  // namespace

PythonRuntime FindPythonRuntime(const ElfImage& image) {
  PythonRuntime runtime;
  const auto address = FindSymbolAddress(image, "_PyRuntime");
  const auto code_type = address ? FindSymbolAddress(image, "PyCode_Type") : std::nullopt;
  if (!code_type) {
    if (FindSymbolAddress(image, "PyEval_EvalFrameEx")) {
      runtime.kind = PythonRuntime::Kind::kOtherVersion;
    }
    return runtime;
  }
  runtime.kind = PythonRuntime::Kind::kOtherVersion;
  runtime.link_address = *address;
  runtime.code_type = *code_type;
  runtime.version = VersionOf(image);
  if (const auto layout = LayoutByTable(runtime.version)) {
    runtime.layout = *layout;
    runtime.kind = PythonRuntime::Kind::kKnown;
    return runtime;
  }
  const PublishedOffsets offsets(
      image.BytesAtLinkAddress(*address, PublishedOffsets::kCount * sizeof(uint64_t)));
  if (!offsets.IsThere()) return runtime;
  runtime.version = static_cast<uint16_t>(offsets.At(1) >> 16);
  if (runtime.version != Version(13) && runtime.version != Version(14)) return runtime;
  if (const auto layout = ReadLayout(offsets, runtime.version & 0xff)) {
    runtime.layout = *layout;
    runtime.kind = PythonRuntime::Kind::kKnown;
  }
  return runtime;
}

std::string NameOf(const PythonRuntime& runtime) {
  if (runtime.version == 0) return "Python older than 3.9";
  return Format("Python {}.{}", runtime.version >> 8, runtime.version & 0xff);
}

namespace {

// Interpreters are programs, or libraries with this name, or linked into others: of these only a
// few bytes are read, since a program may map a thousand.
bool MayHold(const ElfImage& image, std::string_view path, bool is_program) {
  return is_program || FileNameOf(path).find("python") != std::string_view::npos ||
         MayDefine(image, "PyEval_EvalFrameEx");
}

PythonFiles::File Read(const MappedFile& wanted, bool is_program) {
  auto found = FindUnwindFile(wanted.paths, wanted.build_id, {wanted.device, wanted.inode});
  if (!found.ok()) return {};
  auto whole = found->Reopen();
  if (!whole.ok() || !MayHold(whole->image(), wanted.paths.back(), is_program)) return {};
  return {FindPythonRuntime(whole->image()), whole->image().segments()};
}

}  // namespace

xpu_python_process PythonFiles::File::InProcess(uint64_t bias) const {
  return {.runtime = bias + runtime.link_address,
          .code_type = bias + runtime.code_type,
          .layout = runtime.layout};
}

const PythonFiles::File* PythonFiles::Find(const MappedFile& file, bool is_program) {
  if (file.paths.empty() || file.paths.back() == kVdso) return nullptr;
  const auto [entry, is_new] = files_.try_emplace({file.build_id, file.device, file.inode});
  if (is_new) entry->second = Read(file, is_program);
  return entry->second.runtime.kind == PythonRuntime::Kind::kNone ? nullptr : &entry->second;
}

}  // namespace xpu
