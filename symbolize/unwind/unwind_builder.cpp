#include "symbolize/unwind/unwind_builder.h"

#include <algorithm>
#include <memory>

#include <elf.h>

#include "format/base/check.h"
#include "symbolize/unwind/cfi_interpreter.h"
#include "symbolize/unwind/cfi_section.h"
#include "symbolize/unwind/go_code.h"
#include "symbolize/unwind/known_code.h"
#include "symbolize/unwind/unwind_table_writer.h"

namespace xpu {
namespace {

// Between two functions: as long as this it is alignment, which no call returns to and nothing
// executes; the rule before goes on, which saves two rows of most functions.
constexpr uint64_t kMaxAlignmentBytes = 15;

// Where the file has code: sorted, disjoint.
std::vector<LinkRange> ExecutableRanges(const ElfImage& image) {
  std::vector<LinkRange> ranges;
  for (const ElfSegment& segment : image.segments()) {
    if (!segment.executable) continue;
    const uint64_t bytes = image.CountBytesAt(segment.file_offset, segment.file_bytes);
    if (bytes == 0 || segment.link_address + bytes < segment.link_address) continue;
    ranges.push_back({segment.link_address, segment.link_address + bytes});
  }
  UniteRanges(ranges);
  return ranges;
}

// Cuts an entry to the code that it begins in. False: it begins elsewhere.
bool ClipToCode(const std::vector<LinkRange>& code, Fde& fde) {
  const auto after = std::upper_bound(
      code.begin(), code.end(), fde.begin,
      [](uint64_t address, const LinkRange& range) { return address < range.begin; });
  if (after == code.begin()) return false;
  const LinkRange& range = *(after - 1);
  if (fde.begin >= range.end) return false;
  fde.end = std::min(fde.end, range.end);
  return true;
}

// By address and without overlaps. An entry ends where the next one begins, because unwinders look
// for the last one that begins at or before an address; of those that begin together the first
// stays. Returns how many were left out.
uint64_t Arrange(const std::vector<LinkRange>& code, std::vector<Fde>& fdes) {
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

// Go's own entries know nothing of the stacks that its runtime switches between.
void RemoveGoEntries(const std::vector<KnownCode>& go, std::vector<Fde>& fdes) {
  std::erase_if(fdes, [&](const Fde& fde) {
    return fde.begin >= go.front().range.begin && fde.begin < go.back().range.end;
  });
}

// The states after the instructions of the CIEs. Those that are damaged have no register for the
// CFA, hence no rule of their functions is supported.
std::vector<CfiState> InitialStates(const std::vector<Cie>& cies, uint64_t& invalid) {
  std::vector<CfiState> states(cies.size());
  for (size_t i = 0; i < cies.size(); ++i) {
    if (!CfiInterpreter::RunCie(cies[i], states[i])) ++invalid;
  }
  return states;
}

// The code that no entry describes.
std::vector<LinkRange> GapsBetween(const std::vector<LinkRange>& code,
                                   const std::vector<Fde>& fdes) {
  std::vector<LinkRange> gaps;
  const auto add = [&](uint64_t begin, uint64_t end) {
    if (begin < end) gaps.push_back({begin, end});
  };
  auto fde = fdes.begin();
  for (const LinkRange& range : code) {
    uint64_t at = range.begin;
    for (; fde != fdes.end() && fde->begin < range.end; ++fde) {
      add(at, fde->begin);
      at = fde->end;
    }
    add(at, range.end);
  }
  return gaps;
}

// Rows of one range after the other, ascending.
class RowsOfRanges {
 public:
  explicit RowsOfRanges(UnwindTableWriter& writer) : writer_(writer) {}

  void Add(const LinkRange& range, const std::vector<CfiRow>& rows) {
    if (end_ != 0 && range.begin - end_ > kMaxAlignmentBytes) writer_.Add(end_, UnwindRule{});
    for (const CfiRow& row : rows) writer_.Add(row.address, row.rule);
    end_ = range.end;
  }
  uint64_t end() const { return end_; }

 private:
  UnwindTableWriter& writer_;
  uint64_t end_ = 0;
};

// Adds the rows of all entries and of what else is known; returns where the last one ends.
uint64_t AddAll(const CfiEntries& entries, const std::vector<KnownCode>& known, uint64_t& invalid,
                UnwindTableWriter& writer) {
  const std::vector<CfiState> initial = InitialStates(entries.cies, invalid);
  CfiInterpreter interpreter;
  std::vector<CfiRow> rows;
  RowsOfRanges all(writer);
  auto next = known.begin();
  const auto add_known_below = [&](uint64_t address) {
    for (; next != known.end() && next->range.begin < address; ++next)
      all.Add(next->range, next->rows);
  };
  for (const Fde& fde : entries.fdes) {
    if (!interpreter.Run(entries.cies[fde.cie], initial[fde.cie], fde, rows)) {
      ++invalid;
      continue;
    }
    add_known_below(fde.begin);
    all.Add({fde.begin, fde.end}, rows);
  }
  add_known_below(~uint64_t{0});
  return all.end();
}

}  // namespace

UnwindTable UnwindTableBytes::view() const {
  UnwindTable table;
  XPU_CHECK(table.Open(words_.data(), words_.size() * sizeof(uint64_t)));
  return table;
}

Result<UnwindTableBytes> BuildUnwindTable(const ElfImage& image, UnwindStats* stats,
                                          const ElfImage* debug) {
  if (image.machine() != EM_X86_64) {
    return Error{ErrorKind::kUnsupported, "unwind tables are made for x86-64 only", {}};
  }
  const std::unique_ptr<CallFrames> frames = FindCallFrames(image, debug);
  const std::vector<LinkRange> code = ExecutableRanges(image);
  const std::vector<KnownCode> go = FindGoCode(image);
  CfiEntries entries = ReadAllEntries(frames->sections);
  uint64_t invalid = entries.invalid + Arrange(code, entries.fdes);
  if (!go.empty()) RemoveGoEntries(go, entries.fdes);
  UnwindTableWriter writer;
  const std::vector<LinkRange> gaps = GapsBetween(code, entries.fdes);
  const uint64_t end = AddAll(entries, FindKnownCode(image, gaps, go), invalid, writer);
  if (stats != nullptr) {
    stats->entries = entries.fdes.size();
    stats->invalid = invalid;
    stats->problem = frames->problem;
  }
  if (end != 0) return writer.Finish(end, stats);
  if (!frames->problem.empty()) return Error{ErrorKind::kUnsupported, frames->problem, {}};
  return Error{ErrorKind::kNotFound, "no call frame information of its code", {}};
}

}  // namespace xpu
