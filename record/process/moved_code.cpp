#include "record/process/moved_code.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "record/base/process_memory.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kMaxPages = 256;
constexpr size_t kMaxRanges = 1024;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
// Memory that is still writable is probably being filled, and may be changed later.
constexpr uint64_t kFillingNs = 100'000'000;
constexpr uint64_t kChangingNs = 1'000'000'000;
// One comparison takes half a millisecond, and a program may change its code all the time.
constexpr uint64_t kPaceNs = 20'000'000;

using Code = std::span<const unsigned char>;

// The length of the nop that `code` begins with, in the forms that Intel recommends; 0: none.
size_t NopBytes(Code code) {
  constexpr size_t kWithModRm = 3, kWithSib = 4;
  size_t at = 0;
  while (at < code.size() && (code[at] == 0x66 || code[at] == 0x2e)) ++at;
  if (at < code.size() && code[at] == 0x90) return at + 1;
  if (at + 2 >= code.size() || code[at] != 0x0f || code[at + 1] != 0x1f) return 0;
  const size_t bytes = at + ((code[at + 2] & 7) == 4 ? kWithSib : kWithModRm);
  constexpr std::array<size_t, 4> kDisplacement = {0, 1, 4, 0};
  return bytes + kDisplacement[code[at + 2] >> 6];
}

// How many bytes at the beginning of `code` a program changes without making other code of it: a
// nop, or the zeros that a relocation fills.
size_t BytesToFillIn(Code code) {
  constexpr size_t kLeastRelocation = 4, kMostRelocation = 8;
  if (const size_t nop = NopBytes(code); nop != 0) return nop;
  size_t zeros = 0;
  while (zeros <= kMostRelocation && zeros < code.size() && code[zeros] == 0) ++zeros;
  return zeros >= kLeastRelocation && zeros <= kMostRelocation ? zeros : 0;
}

// Whether `theirs` is `ours` with breakpoints, other code in place of nops, and relocations.
bool IsSameCode(Code ours, Code theirs) {
  constexpr unsigned char kBreakpoint = 0xcc;
  size_t filled_in = 0;  // its end
  for (size_t i = 0; i < ours.size(); ++i) {
    if (i >= filled_in) filled_in = i + BytesToFillIn(ours.subspan(i));
    if (ours[i] != theirs[i] && i >= filled_in && theirs[i] != kBreakpoint) return false;
  }
  return true;
}

}  // namespace

CodeOrigin CompareWithFile(uint32_t pid, uint64_t start, uint64_t end, const MappedFile& mapped,
                           uint64_t file_offset) {
  auto file =
      FindUnwindFile(mapped.paths, mapped.build_id, FileIdentity{mapped.device, mapped.inode});
  if (!file.ok()) return CodeOrigin::kUnclear;
  const ProcessMemory process(static_cast<pid_t>(LivingThread(pid)));
  const uint64_t pages = (end - start) / kPageBytes;
  const uint64_t wanted = std::min(pages, kMaxPages);
  size_t same = 0, different = 0;
  for (uint64_t page = 0; page < wanted; ++page) {
    const uint64_t at = page * pages / wanted * kPageBytes;
    std::array<unsigned char, kPageBytes> ours{}, theirs{};
    const ssize_t n =
        ::pread(file->fd.get(), ours.data(), ours.size(), static_cast<off_t>(file_offset + at));
    const auto bytes = static_cast<size_t>(std::max<ssize_t>(n, 0));
    if (!process.Read(start + at, theirs.data(), bytes)) return CodeOrigin::kOther;
    const bool is_zero = std::ranges::all_of(ours, [](auto byte) { return byte == 0; });
    if (!IsSameCode(Code(ours).first(bytes), Code(theirs).first(bytes))) {
      ++different;
    } else if (!is_zero) {  // zeros prove nothing
      ++same;
    }
  }
  if (same == 0) return CodeOrigin::kOther;
  return different == 0 ? CodeOrigin::kFile : CodeOrigin::kUnclear;
}

void MovedCode::OnReplace(uint32_t pid, uint64_t start, const CodeMapping& file) {
  if (is_writing_) return;
  std::erase_if(ranges_, [&](const Range& range) {
    return range.pid == pid && range.start < file.end && start < range.file.end;
  });
  if (ranges_.size() < kMaxRanges) ranges_.push_back({.pid = pid, .start = start, .file = file});
}

void MovedCode::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  if (is_writing_) return;
  const bool may_be_moved = processes_.file(mapping.file).may_be_generated();
  std::erase_if(ranges_, [&](Range& range) {
    if (range.pid != pid || range.start >= mapping.end || range.file.end <= start) return false;
    range.memory = mapping;
    range.is_writable = (mapping.protection & PROT_WRITE) != 0;
    range.due_ns = mapping.time_ns + (range.is_writable ? kFillingNs : 0);
    range.holds_file = range.was_file = false;
    return !may_be_moved;
  });
}

void MovedCode::OnEnd(uint32_t pid) {
  std::erase_if(ranges_, [&](const Range& range) { return range.pid == pid; });
}

void MovedCode::Apply(uint64_t now_ns, EventSink& sink) {
  const auto due = std::ranges::min_element(ranges_, {}, &Range::due_ns);
  if (due == ranges_.end() || due->due_ns > now_ns || now_ns < next_ns_) return;
  next_ns_ = now_ns + kPaceNs;
  Range& range = *due;
  range.due_ns = range.is_writable ? now_ns + kChangingNs : kNever;
  const MappedFile paths = processes_.MappedFileOf(range.pid, range.start, range.file);
  const CodeOrigin origin =
      CompareWithFile(range.pid, range.start, range.file.end, paths, range.file.file_offset);
  if (origin == CodeOrigin::kUnclear && !std::exchange(range.is_counted, true)) {
    sink.losses().Add(LossKind::kMovedCodeUnknown, 1, range.pid, {},
                      processes_.file(range.file.file).path);
  }
  if ((origin == CodeOrigin::kFile) == range.holds_file) return;
  range.holds_file = !range.holds_file;
  CodeMapping written = range.holds_file ? range.file : range.memory;
  written.end = range.file.end;
  written.time_ns = std::exchange(range.was_file, true) ? now_ns : range.memory.time_ns + 1;
  is_writing_ = true;
  processes_.WriteMapping(range.pid, range.start, written, sink);
  is_writing_ = false;
  if (range.holds_file && !range.is_writable) ranges_.erase(due);
}

}  // namespace xpu
