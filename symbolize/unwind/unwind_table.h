// The unwind table of one ELF file: for each address of its code, how the caller's registers are
// found. Made from .eh_frame once (unwind_builder.h), then only read: by the recorder, which copies
// it into the maps of the BPF programs, and by the injected library, which searches it in place in
// memory that the recorder shares. Hence one block of bytes without pointers, and a header that
// uses nothing of the C++ library.
//
//   UnwindTableHeader
//   uint32_t    page_rows[page_count + 1]   index of each page's first row; the last entry:
//   row_count UnwindRule  rules[rule_count] UnwindRow   rows[row_count]
//
// each part at the next multiple of 8 bytes. A page is kUnwindPageBytes of link addresses. A row
// holds from its offset in the page to the next row; every page begins with a row at offset 0, so
// that no search leaves its page. Host byte order: nothing here leaves the machine.
//
// x86-64: three registers are followed, the instruction pointer, the stack pointer and rbp. The
// return address is always at CFA - 8 (CFA: what the stack pointer is after the return). Another
// machine gets values of UnwindCfa of its own and, where its return address lives in a register,
// one more field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu {

inline constexpr uint32_t kUnwindMagic = 0x54555058;  // "XPUT"
// Of the layout and of what the builder makes of a file: a cached table of another version is
// built again.
inline constexpr uint32_t kUnwindVersion = 6;
inline constexpr uint32_t kUnwindPageShift = 12;
inline constexpr uint64_t kUnwindPageBytes = uint64_t{1} << kUnwindPageShift;
// 4 GiB of code in a file.
inline constexpr uint32_t kMaxUnwindPages = 1u << 20;
inline constexpr uint32_t kMaxUnwindRules = 1u << 16;
inline constexpr uint32_t kMaxUnwindRows = 1u << 26;

// How the canonical frame address is found.
enum class UnwindCfa : uint8_t {
  kNone = 0,         // nothing is known of this address: use the frame pointer
  kRsp = 1,          // rsp + cfa_offset
  kRbp = 2,          // rbp + cfa_offset
  kAtRsp = 3,        // *(rsp + DerefOffset) + DerefAddend
  kAtRbp = 4,        // *(rbp + DerefOffset) + DerefAddend
  kPlt = 5,          // rsp + 8, and 8 more from instruction byte cfa_offset of a 16-byte entry on
  kSignal = 6,       // a signal's return trampoline: the registers are in the ucontext at rsp
  kEnd = 7,          // the outermost frame: there is no caller
  kUnsupported = 8,  // a rule of another form: the walk ends here
  // Register number DerefAddend (DWARF's) + DerefOffset: in the middle of hand-written code. Only
  // where all registers are known, near the innermost frame of a walk in the kernel; else as
  // kUnsupported.
  kRegister = 9,
  // Go's call of C, on the stack of its thread: it was made at a depth of *(rsp + 40) in the stack
  // of the goroutine *(rsp + 48), whose top is in its second word. This one and the next may lead
  // downwards.
  kGoSwitch = 10,
  kOtherStack = 11,  // rbp + cfa_offset, on the stack that was left
};

// How the caller's rbp is found.
enum class UnwindRbp : uint8_t {
  kSame = 0,
  kAtCfa = 1,  // *(CFA + rbp_offset)
  kAtRbp = 2,  // *(rbp + rbp_offset), rbp of this frame
  kUndefined = 3,
};

struct UnwindRule {
  UnwindCfa cfa = UnwindCfa::kNone;
  UnwindRbp rbp = UnwindRbp::kSame;
  int16_t rbp_offset = 0;
  int32_t cfa_offset = 0;

  // cfa_offset of kAtRsp, kAtRbp and kRegister.
  static constexpr int32_t PackDeref(int16_t offset, int16_t addend) {
    return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(addend)) << 16 |
                                static_cast<uint16_t>(offset));
  }
  constexpr int16_t DerefOffset() const { return static_cast<int16_t>(cfa_offset & 0xffff); }
  constexpr int16_t DerefAddend() const { return static_cast<int16_t>(cfa_offset >> 16); }
  friend constexpr bool operator==(const UnwindRule&, const UnwindRule&) = default;
};
static_assert(sizeof(UnwindRule) == 8);

struct UnwindRow {
  uint16_t offset;  // of the first address in the page
  uint16_t rule;    // index into `rules`
};
static_assert(sizeof(UnwindRow) == 4);

struct UnwindTableHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t bytes;       // of the whole table
  uint64_t first_page;  // link address of the first page, divided by kUnwindPageBytes
  uint32_t page_count;
  uint32_t rule_count;
  uint32_t row_count;
  uint32_t reserved;
};
static_assert(sizeof(UnwindTableHeader) == 40);

// Where in a process a link address of the file lies: address = link address + bias, modulo 2^64.
struct UnwindTable {
  const UnwindTableHeader* header = nullptr;
  const uint32_t* page_rows = nullptr;
  const UnwindRule* rules = nullptr;
  const UnwindRow* rows = nullptr;

  // Bytes of a table of that many parts.
  static constexpr uint64_t Bytes(uint64_t pages, uint64_t rules, uint64_t rows) {
    return RowsAt(pages, rules) + Aligned(rows * sizeof(UnwindRow));
  }
  static constexpr uint64_t RulesAt(uint64_t pages) {
    return sizeof(UnwindTableHeader) + Aligned((pages + 1) * sizeof(uint32_t));
  }
  static constexpr uint64_t RowsAt(uint64_t pages, uint64_t rules) {
    return RulesAt(pages) + rules * sizeof(UnwindRule);
  }
  static constexpr uint64_t Aligned(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

  // A view of `bytes` (8-byte aligned, must outlive it). False: sizes or counts do not fit. What is
  // inside is checked by IsSound, or by each search.
  bool Open(const void* data, uint64_t bytes) {
    if (bytes < sizeof(UnwindTableHeader)) return false;
    header = static_cast<const UnwindTableHeader*>(data);
    if (header->magic != kUnwindMagic || header->version != kUnwindVersion ||
        header->page_count > kMaxUnwindPages || header->rule_count > kMaxUnwindRules ||
        header->row_count > kMaxUnwindRows || header->bytes > bytes ||
        header->bytes != Bytes(header->page_count, header->rule_count, header->row_count)) {
      return false;
    }
    const auto* base = static_cast<const char*>(data);
    page_rows = reinterpret_cast<const uint32_t*>(base + sizeof(UnwindTableHeader));
    rules = reinterpret_cast<const UnwindRule*>(base + RulesAt(header->page_count));
    rows =
        reinterpret_cast<const UnwindRow*>(base + RowsAt(header->page_count, header->rule_count));
    return true;
  }

  // Every index lies inside and every page is sorted and begins at 0.
  bool IsSound() const {
    if (page_rows[0] != 0 || page_rows[header->page_count] != header->row_count) return false;
    for (uint32_t page = 0; page < header->page_count; ++page) {
      const uint32_t first = page_rows[page], end = page_rows[page + 1];
      if (first >= end || end > header->row_count || rows[first].offset != 0) return false;
      for (uint32_t row = first; row < end; ++row) {
        if (rows[row].rule >= header->rule_count || rows[row].offset >= kUnwindPageBytes) {
          return false;
        }
        if (row > first && rows[row].offset <= rows[row - 1].offset) return false;
      }
    }
    return true;
  }

  // The rule of a link address; kNone outside the table. Safe on any content.
  UnwindRule Find(uint64_t link_address) const {
    const uint64_t page = (link_address >> kUnwindPageShift) - header->first_page;
    if (page >= header->page_count) return {};
    uint32_t low = page_rows[page], end = page_rows[page + 1];
    if (low >= end || end > header->row_count) return {};
    const auto offset = static_cast<uint16_t>(link_address & (kUnwindPageBytes - 1));
    while (end - low > 1) {
      const uint32_t middle = low + (end - low) / 2;
      if (rows[middle].offset <= offset) {
        low = middle;
      } else {
        end = middle;
      }
    }
    const uint16_t rule = rows[low].rule;
    return rule < header->rule_count ? rules[rule] : UnwindRule{};
  }
};

}  // namespace xpu
