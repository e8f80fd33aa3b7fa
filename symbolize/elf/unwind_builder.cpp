#include "symbolize/elf/unwind_builder.h"

#include <algorithm>

#include <elf.h>

#include "format/base/check.h"
#include "symbolize/elf/cfi_interpreter.h"
#include "symbolize/elf/cfi_section.h"
#include "symbolize/elf/unwind_table_writer.h"

namespace xpu {
namespace {

// Between two functions: as long as this it is alignment, which no call returns to and nothing
// executes; the rule before goes on, which saves two rows of most functions.
constexpr uint64_t kMaxAlignmentBytes = 15;

// [begin, end) of link addresses.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Where the file has code: sorted, disjoint.
std::vector<Range> ExecutableRanges(const ElfImage& image) {
  std::vector<Range> ranges;
  for (const ElfSegment& segment : image.segments()) {
    if (!segment.executable) continue;
    const uint64_t bytes = image.CountBytesAt(segment.file_offset, segment.file_bytes);
    if (bytes == 0 || segment.link_address + bytes < segment.link_address) continue;
    ranges.push_back({segment.link_address, segment.link_address + bytes});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Range& range : ranges) {
    if (kept > 0 && range.begin <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  return ranges;
}

// Cuts an entry to the code that it begins in. False: it begins elsewhere.
bool ClipToCode(const std::vector<Range>& code, Fde& fde) {
  const auto after =
      std::upper_bound(code.begin(), code.end(), fde.begin,
                       [](uint64_t address, const Range& range) { return address < range.begin; });
  if (after == code.begin()) return false;
  const Range& range = *(after - 1);
  if (fde.begin >= range.end) return false;
  fde.end = std::min(fde.end, range.end);
  return true;
}

// By address and without overlaps. An entry ends where the next one begins, because unwinders look
// for the last one that begins at or before an address; of those that begin together the first
// stays. Returns how many were left out.
uint64_t Arrange(const std::vector<Range>& code, std::vector<Fde>& fdes) {
  const size_t all = fdes.size();
  std::erase_if(fdes, [&](Fde& fde) { return !ClipToCode(code, fde); });
  const auto earlier = [](const Fde& a, const Fde& b) { return a.begin < b.begin; };
  if (!std::is_sorted(fdes.begin(), fdes.end(), earlier)) {
    std::stable_sort(fdes.begin(), fdes.end(), earlier);
  }
  fdes.erase(std::unique(fdes.begin(), fdes.end(),
                         [](const Fde& a, const Fde& b) { return a.begin == b.begin; }),
             fdes.end());
  for (size_t i = 0; i + 1 < fdes.size(); ++i) {
    fdes[i].end = std::min(fdes[i].end, fdes[i + 1].begin);
  }
  return all - fdes.size();
}

CfiEntries ReadAllEntries(const std::vector<CfiSection>& sections) {
  CfiEntries all;
  for (const CfiSection& section : sections) {
    CfiEntries entries = ReadEntries(section);
    const auto base = static_cast<uint32_t>(all.cies.size());
    for (Fde& fde : entries.fdes) fde.cie += base;
    all.invalid += entries.invalid;
    all.cies.insert(all.cies.end(), entries.cies.begin(), entries.cies.end());
    if (all.fdes.empty()) {
      all.fdes = std::move(entries.fdes);
    } else {
      all.fdes.insert(all.fdes.end(), entries.fdes.begin(), entries.fdes.end());
    }
  }
  return all;
}

// The states behind the instructions of the CIEs. Those that are damaged have no register for the
// CFA, hence no rule of their functions is supported.
std::vector<CfiState> InitialStates(const std::vector<Cie>& cies, uint64_t& invalid) {
  std::vector<CfiState> states(cies.size());
  for (size_t i = 0; i < cies.size(); ++i) {
    if (!CfiInterpreter::RunCie(cies[i], states[i])) ++invalid;
  }
  return states;
}

// Adds the rows of all entries; returns where the last one ends.
uint64_t AddAll(const CfiEntries& entries, uint64_t& invalid, UnwindTableWriter& writer) {
  const std::vector<CfiState> initial = InitialStates(entries.cies, invalid);
  CfiInterpreter interpreter;
  std::vector<CfiRow> rows;
  uint64_t end = 0;
  for (const Fde& fde : entries.fdes) {
    if (!interpreter.Run(entries.cies[fde.cie], initial[fde.cie], fde, rows)) {
      ++invalid;
      continue;
    }
    if (end != 0 && fde.begin - end > kMaxAlignmentBytes) writer.Add(end, UnwindRule{});
    for (const CfiRow& row : rows) writer.Add(row.address, row.rule);
    end = fde.end;
  }
  return end;
}

}  // namespace

UnwindTable UnwindTableBytes::view() const {
  UnwindTable table;
  XPU_CHECK(table.Open(words_.data(), words_.size() * sizeof(uint64_t)));
  return table;
}

Result<UnwindTableBytes> BuildUnwindTable(const ElfImage& image, UnwindStats* stats) {
  if (image.machine() != EM_X86_64) {
    return Error{ErrorKind::kUnsupported, "unwind tables are made for x86-64 only", {}};
  }
  XPU_ASSIGN_OR_RETURN(const std::vector<CfiSection> sections, FindCallFrames(image));
  CfiEntries entries = ReadAllEntries(sections);
  uint64_t invalid = entries.invalid + Arrange(ExecutableRanges(image), entries.fdes);
  UnwindTableWriter writer;
  const uint64_t end = AddAll(entries, invalid, writer);
  if (stats != nullptr) {
    stats->entries = entries.fdes.size();
    stats->invalid = invalid;
  }
  if (end == 0) {
    return Error{ErrorKind::kNotFound, "no call frame information of its code", {}};
  }
  return writer.Finish(end, stats);
}

}  // namespace xpu
