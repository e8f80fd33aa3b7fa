#include "cupti_inject/code_files.h"

#include <cstring>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "cupti_inject/loaded_files.h"
#include "cupti_inject/wire_stacks.h"
#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

using wire::kPageBytes;

// Refreshing takes some tens of microseconds, as does the dlopen that made it necessary.
constexpr uint64_t kRefreshPatienceNs = 5'000'000;

size_t SnapshotBytes(uint32_t count) { return sizeof(CodeSnapshot) + count * sizeof(CodeRange); }

// Of a part that is loaded and readable: a note can lie in what is only in the file.
bool IsLoaded(const dl_phdr_info& info, uint64_t link_address, uint64_t bytes) {
  for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_R) != 0 &&
        link_address >= segment.p_vaddr && bytes <= segment.p_filesz &&
        link_address - segment.p_vaddr <= segment.p_filesz - bytes) {
      return true;
    }
  }
  return false;
}

// Within one PT_NOTE.
size_t FindBuildId(const uint8_t* notes, size_t bytes, size_t alignment, const uint8_t** build_id) {
  const auto aligned = [&](size_t size) { return (size + alignment - 1) / alignment * alignment; };
  for (size_t at = 0; bytes - at >= sizeof(ElfW(Nhdr));) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const size_t name = at + sizeof(note);
    const size_t content = name + aligned(note.n_namesz);
    const size_t end = content + aligned(note.n_descsz);
    if (content > bytes || note.n_descsz > bytes - content) return 0;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= wire::kMaxBuildIdBytes) {
      *build_id = notes + content;
      return note.n_descsz;
    }
    if (end > bytes) return 0;
    at = end;
  }
  return 0;
}

size_t FindBuildId(const dl_phdr_info& info, const uint8_t** build_id) {
  for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !IsLoaded(info, segment.p_vaddr, segment.p_filesz)) continue;
    const auto* notes = reinterpret_cast<const uint8_t*>(info.dlpi_addr + segment.p_vaddr);
    const size_t alignment = segment.p_align == 8 ? 8 : 4;
    if (const size_t bytes = FindBuildId(notes, segment.p_filesz, alignment, build_id)) {
      return bytes;
    }
  }
  return 0;
}

uint64_t HashOf(uint64_t hash, const void* data, size_t bytes) {
  const auto* text = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ text[i]) * 0x100000001b3;
  return hash;
}

// What is the same for the same file: its build-id and code; without one its name.
uint64_t IdentityOf(const dl_phdr_info& info, const ElfW(Phdr) & code, const uint8_t* build_id,
                    size_t build_id_bytes) {
  uint64_t hash = HashOf(0xcbf29ce484222325, &code.p_vaddr, sizeof(code.p_vaddr));
  hash = HashOf(hash, &code.p_memsz, sizeof(code.p_memsz));
  hash = build_id_bytes > 0 ? HashOf(hash, build_id, build_id_bytes)
                            : HashOf(hash, info.dlpi_name, std::strlen(info.dlpi_name));
  return hash == 0 ? 1 : hash;
}

bool Same(const CodeRange& a, const CodeRange& b) {
  return a.start == b.start && a.end == b.end && a.bias == b.bias && a.file == b.file;
}

// The loader's list is nearly sorted, downwards.
void Sort(CodeRange* ranges, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; ++i) {
    const CodeRange other = ranges[i];
    ranges[i] = ranges[count - 1 - i];
    ranges[count - 1 - i] = other;
  }
  for (uint32_t i = 1; i < count; ++i) {
    const CodeRange moved = ranges[i];
    uint32_t at = i;
    for (; at > 0 && ranges[at - 1].start > moved.start; --at) ranges[at] = ranges[at - 1];
    ranges[at] = moved;
  }
}

}  // namespace

bool CodeFiles::Open(RingProducer* ring) {
  ring_ = ring;
  counters_.Open();
  ranges_ = static_cast<CodeRange*>(MapZeroed(kMaxRanges * sizeof(CodeRange)));
  numbers_ = static_cast<Number*>(MapZeroed(kNumberSlots * sizeof(Number)));
  range_count_ = 0;
  if (ranges_ != nullptr && numbers_ != nullptr && Publish()) return true;
  Close();
  return false;
}

void CodeFiles::Close() {
  counters_.Close();
  if (CodeSnapshot* current = current_.exchange(nullptr)) munmap(current, current->bytes);
  FreeList();
  if (ranges_ != nullptr) munmap(ranges_, kMaxRanges * sizeof(CodeRange));
  if (numbers_ != nullptr) munmap(numbers_, kNumberSlots * sizeof(Number));
  ranges_ = nullptr;
  numbers_ = nullptr;
}

uint32_t CodeFiles::NumberOf(uint64_t identity) {
  for (uint32_t slot = identity % kNumberSlots;; slot = (slot + 1) % kNumberSlots) {
    Number& entry = numbers_[slot];
    if (entry.identity == identity) return entry.number;
    if (entry.identity != 0) continue;
    if (number_count_ == wire::kMaxCodeFiles) return wire::kMaxCodeFiles;
    entry = {identity, number_count_++, 0};
    return entry.number;
  }
}

bool CodeFiles::Tell(const dl_phdr_info& info, const CodeRange& range, uint64_t file_offset,
                     const uint8_t* build_id, size_t build_id_bytes) {
  wire::CodeFileMessage message{};
  message.file = range.file;
  message.start_address = range.start;
  message.end_address = range.end;
  message.bias = range.bias;
  message.file_offset = file_offset;
  message.build_id_bytes = static_cast<uint32_t>(build_id_bytes);
  if (build_id_bytes > 0) std::memcpy(message.build_id, build_id, build_id_bytes);
  message.name_bytes = static_cast<uint32_t>(strnlen(info.dlpi_name, wire::kMaxNameBytes));
  return ring_->Send(wire::MessageKind::kCodeFile, message, info.dlpi_name, message.name_bytes);
}

// A file that another one replaced need not be reported.
bool CodeFiles::SendRemovedFiles() {
  const CodeSnapshot& before = *current_.load(std::memory_order_relaxed);
  uint32_t at = 0;
  for (uint32_t i = 0; i < before.count && seen_subs_ != subs_; ++i) {
    const CodeRange& range = before.ranges[i];
    while (at < range_count_ && ranges_[at].end <= range.start) ++at;
    if (at < range_count_ && ranges_[at].start < range.end) continue;
    wire::CodeFileGoneMessage message{};
    message.start_address = range.start;
    if (!ring_->Send(wire::MessageKind::kCodeFileGone, message)) return false;
  }
  return true;
}

bool CodeFiles::SendFilesComplete() {
  wire::CodeFilesCompleteMessage message{};
  message.loads = static_cast<uint32_t>(seen_adds_);
  return ring_->Send(wire::MessageKind::kCodeFilesComplete, message);
}

void CodeFiles::AddFile(const dl_phdr_info& info) {
  const uint8_t* build_id = nullptr;
  const size_t build_id_bytes = FindBuildId(info, &build_id);
  for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (range_count_ == kMaxRanges) return;
    const uint64_t start = info.dlpi_addr + segment.p_vaddr;
    CodeRange range{start / kPageBytes * kPageBytes,
                    (start + segment.p_memsz + kPageBytes - 1) / kPageBytes * kPageBytes,
                    info.dlpi_addr, NumberOf(IdentityOf(info, segment, build_id, build_id_bytes)),
                    0};
    const CodeRange* known = current_.load(std::memory_order_relaxed)->Find(range.start);
    if ((known == nullptr || !Same(*known, range)) && range.file < wire::kMaxCodeFiles &&
        !Tell(info, range, segment.p_offset / kPageBytes * kPageBytes, build_id, build_id_bytes)) {
      complete_ = false;  // the ring is full: again in the next round
      continue;
    }
    ranges_[range_count_++] = range;
  }
}

int CodeFiles::VisitFile(dl_phdr_info* info, size_t /*size*/, void* files) {
  auto& self = *static_cast<CodeFiles*>(files);
  if (!self.first_seen_) {
    self.first_seen_ = true;
    self.seen_adds_ = info->dlpi_adds;
    self.seen_subs_ = info->dlpi_subs;
    self.counters_.Follow(info->dlpi_adds);
    if (info->dlpi_adds == self.adds_ && info->dlpi_subs == self.subs_) {
      self.complete_ = false;
      return 1;
    }
  }
  self.AddFile(*info);
  return 0;
}

void CodeFiles::Refresh() {
  FreeRetired();
  if (ranges_ == nullptr || retired_count_ == kMaxRetired) return;
  first_seen_ = false;
  complete_ = true;
  range_count_ = 0;
  if (ForEachLoadedFile(&VisitFile, this) != 0) return;  // nothing new
  if (seen_subs_ != subs_) ++generation_;
  Sort(ranges_, range_count_);
  // Before any launch that was made with this list is reported.
  complete_ = complete_ && SendRemovedFiles() && SendFilesComplete();
  if (!Publish() || !complete_) return;
  listed_loads_.store(static_cast<uint32_t>(seen_adds_), std::memory_order_release);
  refreshed_.Notify();
  adds_ = seen_adds_;
  subs_ = seen_subs_;
}

bool CodeFiles::WaitForLoads(uint32_t loads, Signal& wake) {
  if (given_up_loads_.load(std::memory_order_relaxed) >= loads) return false;
  wake.Notify();
  const uint64_t deadline_ns = MonotonicNs() + kRefreshPatienceNs;
  while (true) {
    const uint32_t ticket = refreshed_.Ticket();
    if (listed_loads_.load(std::memory_order_acquire) >= loads) return true;
    const uint64_t now_ns = MonotonicNs();
    if (now_ns >= deadline_ns) break;
    refreshed_.Wait(ticket, deadline_ns - now_ns);
  }
  given_up_loads_.store(loads, std::memory_order_relaxed);
  return false;
}

bool CodeFiles::Publish() {
  const size_t bytes = SnapshotBytes(range_count_);
  auto* snapshot = static_cast<CodeSnapshot*>(MapZeroed(bytes));
  if (snapshot == nullptr) return false;
  snapshot->bytes = bytes;
  snapshot->generation = generation_;
  snapshot->count = range_count_;
  std::memcpy(snapshot->ranges, ranges_, range_count_ * sizeof(CodeRange));
  CodeSnapshot* before = current_.exchange(snapshot, std::memory_order_seq_cst);
  if (before == nullptr) return true;
  before->older = retired_;
  retired_ = before;
  ++retired_count_;
  return true;
}

// Each group of readers has been seen empty after the last list was retired: nobody reads those.
void CodeFiles::FreeRetired() {
  if (retired_ == nullptr) return;
  for (const Stripe& stripe : readers_) {
    if (stripe.count.load(std::memory_order_seq_cst) != 0) return;
  }
  FreeList();
}

void CodeFiles::FreeList() {
  while (retired_ != nullptr) {
    CodeSnapshot* older = retired_->older;
    munmap(retired_, retired_->bytes);
    retired_ = older;
  }
  retired_count_ = 0;
}

}  // namespace xpu::inject
