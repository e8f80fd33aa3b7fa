#include "record/process/moved_code.h"

#include <algorithm>
#include <array>
#include <limits>

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
// Memory that is still writable is probably being filled.
constexpr uint64_t kFillingNs = 100'000'000;
// One comparison takes half a millisecond, and a program may change its code all the time.
constexpr uint64_t kPaceNs = 20'000'000;

}  // namespace

bool HoldsCodeOf(uint32_t pid, uint64_t start, uint64_t end, const MappedFile& mapped,
                 uint64_t file_offset) {
  constexpr size_t kShareThatMayDiffer = 16;
  auto file =
      FindUnwindFile(mapped.paths, mapped.build_id, FileIdentity{mapped.device, mapped.inode});
  if (!file.ok()) return false;
  const ProcessMemory process(static_cast<pid_t>(LivingThread(pid)));
  const uint64_t pages = (end - start) / kPageBytes;
  const uint64_t wanted = std::min(pages, kMaxPages);
  size_t all_code = 0;
  for (uint64_t page = 0; page < wanted; ++page) {
    const uint64_t at = page * pages / wanted * kPageBytes;
    std::array<unsigned char, kPageBytes> ours{}, theirs{};
    const ssize_t n =
        ::pread(file->fd.get(), ours.data(), ours.size(), static_cast<off_t>(file_offset + at));
    const auto bytes = static_cast<size_t>(std::max<ssize_t>(n, 0));
    if (!process.Read(start + at, theirs.data(), bytes)) return false;
    size_t code = 0, different = 0;
    for (size_t i = 0; i < bytes; ++i) {
      code += ours[i] != 0 || theirs[i] != 0 ? 1 : 0;
      different += ours[i] != theirs[i] ? 1 : 0;
    }
    if (different * kShareThatMayDiffer > code) return false;
    all_code += code;
  }
  return all_code != 0;  // zeros prove nothing
}

void MovedCode::OnReplace(uint32_t pid, uint64_t start, const CodeMapping& file) {
  if (ranges_.size() < kMaxRanges) ranges_.push_back({pid, start, file, kNever});
}

void MovedCode::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  const bool may_be_moved = processes_.file(mapping.file).may_be_generated();
  std::erase_if(ranges_, [&](Range& range) {
    if (range.pid != pid || range.start >= mapping.end || range.file.end <= start) return false;
    range.file.time_ns = mapping.time_ns + 1;
    range.due_ns = mapping.time_ns + ((mapping.protection & PROT_WRITE) != 0 ? kFillingNs : 0);
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
  due->due_ns = kNever;  // until it is mapped once more, after it was filled
  const Range range = *due;
  const MappedFile paths = processes_.MappedFileOf(range.pid, range.start, range.file);
  if (!HoldsCodeOf(range.pid, range.start, range.file.end, paths, range.file.file_offset)) return;
  ranges_.erase(due);
  processes_.WriteMapping(range.pid, range.start, range.file, sink);
}

}  // namespace xpu
