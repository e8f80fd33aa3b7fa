#include "record/unwind/unwind_maps.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/kernel/bpf_support.h"

namespace xpu {
namespace {

static_assert(sizeof(xpu_rule) == sizeof(UnwindRule) &&
              offsetof(xpu_rule, cfa_offset) == offsetof(UnwindRule, cfa_offset) &&
              offsetof(xpu_rule, rbp_offset) == offsetof(UnwindRule, rbp_offset));
static_assert(sizeof(xpu_row) == sizeof(UnwindRow));
static_assert(XPU_UNWIND_PAGE_SHIFT == kUnwindPageShift && XPU_MAX_RULES == kMaxUnwindRules);
static_assert(XPU_CFA_PLT == static_cast<int>(UnwindCfa::kPlt) &&
              XPU_CFA_OTHER_STACK == static_cast<int>(UnwindCfa::kOtherStack));
static_assert(XPU_RBP_UNDEFINED == static_cast<int>(UnwindRbp::kUndefined));

constexpr char kProcesses[] = "unwind_processes";
constexpr char kFiles[] = "unwind_files";
constexpr char kMappings[] = "unwind_mappings";
constexpr char kPages[] = "unwind_pages";
constexpr char kRows[] = "unwind_rows";
constexpr char kRules[] = "unwind_rules";
constexpr const char* kMapNames[] = {kProcesses, kFiles, kMappings, kPages, kRows, kRules};

Error Full(const char* what) {
  return Error{ErrorKind::kSystem, Format("no room for more {} of unwind tables", what), {}};
}

}  // namespace

Result<MappedArray> MappedArray::Create(const char* name, uint32_t value_bytes, uint32_t entries) {
  MappedArray array;
  XPU_ASSIGN_OR_RETURN(array.fd_, CreateMap(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), value_bytes,
                                            entries, BPF_F_MMAPABLE));
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  array.bytes_ = (size_t{value_bytes} * entries + page - 1) / page * page;
  void* memory = ::mmap(nullptr, array.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, array.fd(), 0);
  if (memory == MAP_FAILED) return SystemError(Format("BPF map {}: mmap", name), errno);
  array.memory_ = memory;
  return array;
}

MappedArray::MappedArray(MappedArray&& other) noexcept
    : fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

MappedArray& MappedArray::operator=(MappedArray&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedArray::~MappedArray() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

// Sizes are powers of two, from 16 entries on.
uint32_t MappingRanges::ClassOf(uint32_t count) {
  return static_cast<uint32_t>(std::bit_width(std::max(count, 16u) - 1));
}

uint32_t MappingRanges::Take(uint32_t count, uint64_t now_ns) {
  while (!resting_.empty() && now_ns - resting_.front().since_ns >= kRestNs) {
    free_[resting_.front().size_class].push_back(resting_.front().first);
    resting_.pop_front();
  }
  const uint32_t size_class = ClassOf(count);
  if (!free_[size_class].empty()) {
    const uint32_t first = free_[size_class].back();
    free_[size_class].pop_back();
    return first;
  }
  const uint32_t size = 1u << size_class;
  if (size > XPU_MAX_MAPPINGS - used_) return kNone;
  return std::exchange(used_, used_ + size);
}

void MappingRanges::GiveBack(uint32_t first, uint32_t count, uint64_t now_ns) {
  resting_.push_back({first, ClassOf(count), now_ns});
}

Result<UnwindMaps> UnwindMaps::Create() {
  UnwindMaps maps;
  XPU_ASSIGN_OR_RETURN(maps.processes_, CreateMap(BPF_MAP_TYPE_HASH, kProcesses, sizeof(uint32_t),
                                                  sizeof(xpu_code), XPU_MAX_PROCESSES));
  XPU_ASSIGN_OR_RETURN(maps.files_, CreateMap(BPF_MAP_TYPE_HASH, kFiles, sizeof(xpu_file),
                                              sizeof(xpu_file_table), XPU_MAX_FILES));
  XPU_ASSIGN_OR_RETURN(maps.mappings_,
                       MappedArray::Create(kMappings, sizeof(xpu_mapping), XPU_MAX_MAPPINGS));
  XPU_ASSIGN_OR_RETURN(maps.pages_, MappedArray::Create(kPages, sizeof(xpu_page), XPU_MAX_PAGES));
  XPU_ASSIGN_OR_RETURN(maps.rules_, MappedArray::Create(kRules, sizeof(xpu_rule), XPU_MAX_RULES));
  XPU_ASSIGN_OR_RETURN(MappedArray block,
                       MappedArray::Create("unwind_block", sizeof(xpu_row_block), 1));
  XPU_ASSIGN_OR_RETURN(maps.row_blocks_,
                       CreateMap(BPF_MAP_TYPE_ARRAY_OF_MAPS, kRows, sizeof(uint32_t),
                                 sizeof(uint32_t), XPU_MAX_ROW_BLOCKS, 0, block.fd()));
  return maps;
}

Status UnwindMaps::ShareWith(bpf_object* object) const {
  const SharedMap maps[] = {{kProcesses, processes_.get()}, {kFiles, files_.get()},
                            {kMappings, mappings_.fd()},    {kPages, pages_.fd()},
                            {kRows, row_blocks_.get()},     {kRules, rules_.fd()}};
  static_assert(std::size(maps) == std::size(kMapNames));
  return ShareMaps(object, maps);
}

Status UnwindMaps::Shrink(bpf_object* object) { return ShrinkMaps(object, kMapNames); }

// When the map is full, its last rule is used for all further ones.
uint16_t UnwindMaps::GlobalRule(const UnwindRule& rule) {
  const auto found = rule_ids_.find(std::bit_cast<uint64_t>(rule));
  if (found != rule_ids_.end()) return found->second;
  const auto id = static_cast<uint16_t>(std::min<size_t>(rule_ids_.size(), XPU_MAX_RULES - 1));
  const bool is_last = id == XPU_MAX_RULES - 1;
  rules_.as<UnwindRule>()[id] = is_last ? UnwindRule{.cfa = UnwindCfa::kUnsupported} : rule;
  if (!is_last) rule_ids_.emplace(std::bit_cast<uint64_t>(rule), id);
  return id;
}

// Allocates the rows of one page, which must lie in one block.
Result<UnwindRow*> UnwindMaps::RoomForRows(uint32_t count) {
  if (rows_used_ % XPU_ROWS_PER_BLOCK + count > XPU_ROWS_PER_BLOCK) {
    rows_used_ = (rows_used_ / XPU_ROWS_PER_BLOCK + 1) * XPU_ROWS_PER_BLOCK;
  }
  const auto number = static_cast<uint32_t>(rows_used_ / XPU_ROWS_PER_BLOCK);
  if (number >= XPU_MAX_ROW_BLOCKS) return Full("rows");
  if (number >= blocks_.size()) {
    XPU_ASSIGN_OR_RETURN(MappedArray block,
                         MappedArray::Create("unwind_block", sizeof(xpu_row_block), 1));
    // The system call publishes the block at once and then waits some 10 ms for all running
    // programs, so another thread makes it. For some microseconds programs may find no rules.
    const auto publish = [outer = row_blocks_.get(), number, fd = block.fd()] {
      bpf_map_update_elem(outer, &number, &fd, BPF_ANY);
    };
    if (!publishers_.Start(publish)) publish();
    blocks_.push_back(std::move(block));
  }
  return blocks_[number].as<UnwindRow>() + rows_used_ % XPU_ROWS_PER_BLOCK;
}

Result<UnwindMaps::PageRange> UnwindMaps::Add(const UnwindTable& table) {
  const UnwindTableHeader& header = *table.header;
  if (header.page_count > XPU_MAX_PAGES - pages_used_) return Full("pages");
  std::vector<uint16_t> rules(header.rule_count);
  for (uint32_t i = 0; i < header.rule_count; ++i) rules[i] = GlobalRule(table.rules[i]);
  auto* pages = pages_.as<xpu_page>() + pages_used_;
  for (uint32_t page = 0; page < header.page_count; ++page) {
    const uint32_t first = table.page_rows[page];
    const uint32_t count = table.page_rows[page + 1] - first;
    XPU_ASSIGN_OR_RETURN(UnwindRow * rows, RoomForRows(count));
    for (uint32_t i = 0; i < count; ++i) {
      const UnwindRow row = table.rows[first + i];
      rows[i] = {row.offset, rules[row.rule]};
    }
    pages[page] = {static_cast<uint32_t>(rows_used_), count};
    rows_used_ += count;
  }
  const PageRange range{header.first_page << kUnwindPageShift, pages_used_, header.page_count};
  pages_used_ += header.page_count;
  return range;
}

void UnwindMaps::SetFile(uint64_t device, uint64_t inode, const PageRange& pages,
                         uint64_t link_delta) {
  constexpr int kKernelMinorBits = 20;
  const xpu_file file{uint64_t{major(device)} << kKernelMinorBits | minor(device), inode};
  const xpu_file_table table{pages.first_link_address - link_delta, pages.first_page,
                             pages.page_count};
  bpf_map_update_elem(files_.get(), &file, &table, BPF_ANY);
}

Status UnwindMaps::SetCode(uint32_t pid, std::span<const xpu_mapping> mappings, uint64_t now_ns) {
  const auto count = static_cast<uint32_t>(mappings.size());
  const uint32_t first = ranges_.Take(count, now_ns);
  if (first == MappingRanges::kNone) return Full("mappings");
  std::copy(mappings.begin(), mappings.end(), mappings_.as<xpu_mapping>() + first);
  const xpu_code code{first, count};
  if (int result = bpf_map_update_elem(processes_.get(), &pid, &code, BPF_ANY); result != 0) {
    ranges_.GiveBack(first, count, now_ns);
    return BpfError("BPF map unwind_processes", result);
  }
  if (const auto old = codes_.find(pid); old != codes_.end()) {
    ranges_.GiveBack(old->second.first, old->second.count, now_ns);
  }
  codes_[pid] = code;
  return Ok();
}

void UnwindMaps::Forget(uint32_t pid, uint64_t now_ns) {
  const auto old = codes_.find(pid);
  if (old == codes_.end()) return;
  bpf_map_delete_elem(processes_.get(), &pid);
  ranges_.GiveBack(old->second.first, old->second.count, now_ns);
  codes_.erase(old);
}

uint64_t UnwindMaps::bytes_used() const {
  return blocks_.size() * sizeof(xpu_row_block) + pages_used_ * sizeof(xpu_page) +
         rule_ids_.size() * sizeof(xpu_rule);
}

}  // namespace xpu
