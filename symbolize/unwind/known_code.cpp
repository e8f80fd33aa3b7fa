#include "symbolize/unwind/known_code.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "symbolize/elf/data_symbol.h"
#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

using std::string_view_literals::operator""sv;

constexpr UnwindRule kOutermost{.cfa = UnwindCfa::kEnd};

UnwindRule AboveRsp(int32_t bytes) { return {.cfa = UnwindCfa::kRsp, .cfa_offset = bytes}; }

std::string_view TextOf(std::span<const std::byte> bytes) {
  const std::span<const char> chars = AsChars(bytes);
  return {chars.data(), chars.size()};
}

// What of `range` lies in the gap that it begins in.
std::optional<LinkRange> ClipToGap(std::span<const LinkRange> gaps, LinkRange range) {
  const auto after = std::ranges::upper_bound(gaps, range.begin, {}, &LinkRange::begin);
  if (after == gaps.begin()) return std::nullopt;
  const LinkRange& gap = *std::prev(after);
  if (range.begin >= gap.end) return std::nullopt;
  return LinkRange{range.begin, std::min(range.end, gap.end)};
}

// ---- entry point --------------------------------------------------------------------------------

// glibc's has 38 bytes up to its call, musl's fewer.
constexpr uint64_t kMaxEntryBytes = 64;

bool IsCode(const ElfImage& image, uint64_t address) {
  return std::ranges::any_of(image.segments(), [&](const ElfSegment& segment) {
    return segment.executable && address - segment.link_address < segment.file_bytes;
  });
}

// From the entry point to the end of its call, whose return address is all that stacks show of it.
std::optional<LinkRange> FindEntryPoint(const ElfImage& image) {
  if (image.entry() == 0) return std::nullopt;
  if (!IsCode(image, image.entry())) return std::nullopt;
  const auto code = image.BytesAtLinkAddress(image.entry(), kMaxEntryBytes);
  for (uint64_t at = 0; at < code.size(); ++at) {
    const std::string_view rest = TextOf(code.subspan(at));
    int32_t distance = 0;
    const uint64_t next = image.entry() + at + 5;
    if (rest[0] == '\xe8' && ReadAt(code, at + 1, distance) &&
        IsCode(image, next + static_cast<uint64_t>(int64_t{distance}))) {
      return LinkRange{image.entry(), next};
    }
    constexpr uint64_t kIndirectCallBytes = 6;  // call *slot(%rip)
    if (rest.starts_with("\xff\x15"sv) && rest.size() >= kIndirectCallBytes) {
      return LinkRange{image.entry(), image.entry() + at + kIndirectCallBytes};
    }
  }
  return std::nullopt;
}

// ---- linkage tables -----------------------------------------------------------------------------

constexpr uint64_t kPltEntryBytes = 16;
constexpr int32_t kPushedBytes = 8;

// The header pushes twice for the resolver. Entered from an entry of LLD's and GNU ld's form, which
// has pushed a number already, or from one of mold's, which keeps it in r11.
std::vector<CfiRow> RowsOfPltHeader(std::string_view code, uint64_t address, uint64_t& bytes) {
  if (code.starts_with("\xff\x35"sv)) {  // push slot(%rip); jmp *slot(%rip)
    bytes = kPltEntryBytes;
    return {{address, AboveRsp(2 * kPushedBytes)}, {address + 6, AboveRsp(3 * kPushedBytes)}};
  }
  if (code.starts_with("\xf3\x0f\x1e\xfa\x41\x53\xff\x35"sv)) {  // endbr64; push %r11; push slot
    bytes = 2 * kPltEntryBytes;
    return {{address, AboveRsp(kPushedBytes)},
            {address + 6, AboveRsp(2 * kPushedBytes)},
            {address + 12, AboveRsp(3 * kPushedBytes)}};
  }
  bytes = 0;
  return {};
}

// Of all entries, by the form of the first; nullopt: another form.
std::optional<UnwindRule> RuleOfPltEntries(std::string_view code) {
  const auto pushes_up_to = [](int32_t byte) {
    return UnwindRule{.cfa = UnwindCfa::kPlt, .cfa_offset = byte};
  };
  const bool has_landing = code.starts_with("\xf3\x0f\x1e\xfa"sv);
  if (has_landing) code.remove_prefix(4);
  if (has_landing && code.starts_with("\x68"sv)) return pushes_up_to(9);  // push number; jmp
  if (code.starts_with("\x41\xbb"sv)) code.remove_prefix(std::min<size_t>(6, code.size()));
  if (!code.starts_with("\xff\x25"sv)) return std::nullopt;  // jmp *slot(%rip)
  code.remove_prefix(std::min<size_t>(6, code.size()));
  if (!has_landing && code.starts_with("\x68"sv)) return pushes_up_to(11);
  return AboveRsp(kPushedBytes);
}

std::optional<KnownCode> KnownPlt(const ElfSection& section) {
  const std::string_view code = TextOf(section.bytes);
  const uint64_t begin = section.link_address;
  if (!section.exists || section.is_compressed || code.empty() || begin % kPltEntryBytes != 0) {
    return std::nullopt;
  }
  KnownCode known{.range = {begin, begin + code.size()}, .rows = {}};
  uint64_t header_bytes = 0;
  known.rows = RowsOfPltHeader(code, begin, header_bytes);
  if (header_bytes < code.size()) {
    const auto rule = RuleOfPltEntries(code.substr(header_bytes));
    if (!rule) return std::nullopt;
    known.rows.push_back({begin + header_bytes, *rule});
  }
  return known;
}

// ---- threads of musl ----------------------------------------------------------------------------

// call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al (exit)
constexpr std::string_view kThreadStart = "\x41\xff\xd1\x89\xc7\x31\xc0\xb0\x3c";
constexpr uint64_t kThreadCallBytes = 3;
// The C library has 0.6 MB of code; of others it may be the smaller part.
constexpr uint64_t kMaxSearchedForThreads = uint64_t{4} << 20;

std::optional<LinkRange> FindThreadStart(const ElfImage& image, std::span<const LinkRange> gaps) {
  uint64_t left = kMaxSearchedForThreads;
  for (const LinkRange& gap : gaps) {
    if (gap.end - gap.begin < kThreadStart.size()) continue;
    const auto code = image.BytesAtLinkAddress(gap.begin, std::min(gap.end - gap.begin, left));
    const size_t at = TextOf(code).find(kThreadStart);
    if (at != std::string_view::npos) {
      return LinkRange{gap.begin + at, gap.begin + at + kThreadCallBytes};
    }
    left -= code.size();
  }
  return std::nullopt;
}

// ---- contexts of glibc --------------------------------------------------------------------------

// A stack that makecontext made ends with the address of __start_context, which no call returns to:
// what unwinders look up is the byte before it, between two functions. Only makecontext's code
// tells where it is.
std::optional<LinkRange> FindContextStart(const ElfImage& image) {
  constexpr uint64_t kSearchedBytes = 256;
  constexpr uint64_t kLoadBytes = 7;                          // lea distance(%rip), register
  constexpr std::string_view kContextStart = "\x48\x89\xdc";  // mov %rbx,%rsp
  const auto make_context = FindSymbolAddress(image, "makecontext");
  if (!make_context || !IsCode(image, *make_context)) return std::nullopt;
  const auto code = image.BytesAtLinkAddress(*make_context, kSearchedBytes);
  int32_t distance = 0;
  for (uint64_t at = 0; ReadAt(code, at + 3, distance); ++at) {
    const std::string_view load = TextOf(code.subspan(at, 3));
    if ((load[0] & 0xfb) != 0x48 || load[1] != '\x8d' || (load[2] & 0xc7) != 0x05) continue;
    const uint64_t target =
        *make_context + at + kLoadBytes + static_cast<uint64_t>(int64_t{distance});
    if (IsCode(image, target) &&
        TextOf(image.BytesAtLinkAddress(target, kContextStart.size())) == kContextStart) {
      return LinkRange{target - 1, target};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<KnownCode> FindKnownCode(const ElfImage& image, std::span<const LinkRange> gaps,
                                     std::vector<KnownCode> more) {
  std::vector<KnownCode> found;
  const auto add = [&](KnownCode known) {
    const auto clipped = ClipToGap(gaps, known.range);
    if (!clipped) return;
    known.range = *clipped;
    std::erase_if(known.rows, [&](const CfiRow& row) { return row.address >= clipped->end; });
    found.push_back(std::move(known));
  };
  for (KnownCode& known : more) add(std::move(known));
  for (const auto& range :
       {FindEntryPoint(image), FindThreadStart(image, gaps), FindContextStart(image)}) {
    if (range) add({*range, {{range->begin, kOutermost}}});
  }
  for (const std::string_view name : {".plt", ".plt.sec", ".plt.got"}) {
    if (auto known = KnownPlt(image.Section(name))) add(*std::move(known));
  }
  std::ranges::stable_sort(found, {}, [](const KnownCode& known) { return known.range.begin; });
  uint64_t end = 0;
  std::erase_if(found, [&](const KnownCode& known) {
    const bool overlaps = known.range.begin < end;
    end = std::max(end, known.range.end);
    return overlaps;
  });
  return found;
}

}  // namespace xpu
