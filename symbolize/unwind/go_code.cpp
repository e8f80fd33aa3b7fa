#include "symbolize/unwind/go_code.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "symbolize/elf/elf_bytes.h"
#include "symbolize/elf/go_functions.h"
#include "symbolize/unwind/cfi_cursor.h"

namespace xpu {
namespace {

using std::string_view_literals::operator""sv;

// A table may name the same steps for each function: Kubernetes has 0.7 million rows.
constexpr uint64_t kMaxRows = 16 << 20;
constexpr int64_t kMaxDepth = 1 << 30;
constexpr int32_t kReturnAddressBytes = 8;
constexpr int16_t kSavedFramePointer = -16;  // from the CFA: next to the return address

constexpr UnwindRule kUnknown{.cfa = UnwindCfa::kUnsupported};

// The length of the instruction with which a function saves its caller's frame pointer, right after
// its depth has grown at `at`; 0: the push that made it grow was that; nullopt: it does neither.
std::optional<uint64_t> BytesOfSave(std::string_view code, uint64_t at) {
  if (at > 0 && code.substr(at - 1).starts_with("\x55"sv)) return 0;
  if (code.substr(at).starts_with("\x48\x89\x6c\x24"sv)) return 5;  // mov %rbp,byte(%rsp)
  if (code.substr(at).starts_with("\x48\x89\xac\x24"sv)) return 8;  // mov %rbp,int(%rsp)
  return std::nullopt;
}

// `code`: the function, or its beginning. Where the table is damaged, nothing is known of the rest.
void AddDepths(const GoFrame& frame, std::string_view code, std::vector<CfiRow>& rows) {
  CfiCursor cursor(frame.depths, 0);
  int64_t depth = -1;
  bool is_saved = false;
  for (uint64_t at = 0; at < code.size();) {
    const uint64_t change = cursor.Uleb128();
    const uint64_t next = at + std::min(cursor.Uleb128(), code.size() - at);
    depth += static_cast<int64_t>(change >> 1) ^ -static_cast<int64_t>(change & 1);
    if (cursor.failed() || next == at || depth < 0 || depth > kMaxDepth) {
      rows.push_back({frame.begin + at, kUnknown});
      return;
    }
    UnwindRule rule{.cfa = UnwindCfa::kRsp,
                    .cfa_offset = static_cast<int32_t>(depth) + kReturnAddressBytes};
    if (depth > 0 && !is_saved) {
      const auto save = BytesOfSave(code, at);
      is_saved = save.has_value();
      if (is_saved && *save != 0 && *save < next - at) {
        rows.push_back({frame.begin + at, rule});
        at += *save;
      }
    }
    if (depth > 0 && is_saved) {
      rule.rbp = UnwindRbp::kAtCfa;
      rule.rbp_offset = kSavedFramePointer;
    }
    rows.push_back({frame.begin + at, rule});
    at = next;
  }
}

// Where a function has made its frame pointer; nullopt: it makes none.
std::optional<size_t> EndOfPrologue(std::string_view code) {
  constexpr size_t kMaxPrologue = 64;
  constexpr size_t kSaveBytes = 5, kLoadBytes = 5;
  if (code.starts_with("\x55\x48\x89\xe5"sv)) return 4;  // push %rbp; mov %rsp,%rbp
  // mov %rbp,byte(%rsp); lea byte(%rsp),%rbp
  const size_t save = code.substr(0, kMaxPrologue).find("\x48\x89\x6c\x24"sv);
  if (save == code.npos || save + kSaveBytes > code.size()) return std::nullopt;
  if (!code.substr(save + kSaveBytes).starts_with("\x48\x8d\x6c\x24"sv)) return std::nullopt;
  return save + kSaveBytes + kLoadBytes;
}

// From Go 1.21 on a function that switches stacks keeps its frame pointer meanwhile. Its depths are
// right up to the end of its prologue.
void AddFrameOfSwitch(const GoFrame& frame, std::string_view code, size_t prologue,
                      std::vector<CfiRow>& rows) {
  const UnwindRule by_frame_pointer{UnwindCfa::kOtherStack, UnwindRbp::kAtCfa, kSavedFramePointer,
                                    2 * kReturnAddressBytes};
  AddDepths(frame, code.substr(0, prologue), rows);
  rows.push_back({frame.begin + prologue, by_frame_pointer});
  constexpr std::string_view kReturn = "\x5d\xc3"sv;  // pop %rbp; ret
  for (size_t at = code.find(kReturn, prologue); at != code.npos;
       at = code.find(kReturn, at + kReturn.size())) {
    rows.push_back(
        {frame.begin + at + 1, {.cfa = UnwindCfa::kRsp, .cfa_offset = kReturnAddressBytes}});
    rows.push_back({frame.begin + at + kReturn.size(), by_frame_pointer});
  }
}

// Before that it called C (runtime.asmcgocall) on the stack of its thread without a frame pointer
// and then found the goroutine's again: call *%rax; mov 48(%rsp),%rdi; mov 8(%rdi),%rsi;
// sub 40(%rsp),%rsi. In position-independent programs the second instruction is one that loads the
// place of a thread-local variable. All else of such functions is not known.
void AddCallOfC(const GoFrame& frame, std::string_view code, std::vector<CfiRow>& rows) {
  constexpr std::string_view kCall = "\xff\xd0"sv;
  constexpr size_t kLoadBytes = 7;
  rows.push_back({frame.begin, kUnknown});
  const size_t found = code.find("\x48\x8b\x7c\x24\x30\x48\x8b\x77\x08\x48\x2b\x74\x24\x28"sv);
  if (found == code.npos) return;
  for (const size_t end : {found, found - std::min(found, kLoadBytes)}) {
    if (end <= kCall.size() || code.substr(end - kCall.size(), kCall.size()) != kCall) continue;
    rows.push_back({frame.begin + end - kCall.size(), {.cfa = UnwindCfa::kGoSwitch}});
    rows.push_back({frame.begin + end, kUnknown});
    return;
  }
}

}  // namespace

std::vector<KnownCode> FindGoCode(const ElfImage& image) {
  std::vector<KnownCode> found;
  const std::vector<GoFrame> frames = ReadGoFrames(image);
  if (frames.empty()) return found;
  const uint64_t begin = frames.front().begin;
  const auto text = AsChars(image.BytesAtLinkAddress(begin, frames.back().end - begin));
  uint64_t rows = 0;
  for (const GoFrame& frame : frames) {
    if (frame.end - begin > text.size() || rows > kMaxRows) break;
    const std::string_view code(text.data() + (frame.begin - begin), frame.end - frame.begin);
    KnownCode& known = found.emplace_back(KnownCode{{frame.begin, frame.end}, {}});
    if (frame.is_outermost) {
      known.rows = {{frame.begin, {.cfa = UnwindCfa::kEnd}}};
    } else if (frame.switches_stacks) {
      if (const auto prologue = EndOfPrologue(code)) {
        AddFrameOfSwitch(frame, code, *prologue, known.rows);
      } else {
        AddCallOfC(frame, code, known.rows);
      }
    } else {
      AddDepths(frame, code, known.rows);
    }
    rows += known.rows.size();
  }
  return found;
}

}  // namespace xpu
