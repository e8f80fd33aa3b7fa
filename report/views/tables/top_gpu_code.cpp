// Tables of samples of GPU code: by line, by function, by what warps wait for.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/query/code_samples.h"
#include "report/query/kernel_parts.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

// What a row of these tables is made of.
struct CodeRow {
  std::string function;  // of a line or function
  std::string kernel;
  std::string line;
  CodeCount sum;
  uint64_t total_ns = 0;  // with what is inlined
  std::map<std::string, uint64_t> stalls;

  void Add(const std::string& stall, const CodeCount& count) {
    sum.samples = AddSaturated(sum.samples, count.samples);
    sum.not_issued = AddSaturated(sum.not_issued, count.not_issued);
    sum.ns = AddSaturated(sum.ns, count.ns);
    stalls[stall] = AddSaturated(stalls[stall], count.samples);
  }
  // The reason of most samples.
  std::pair<std::string, uint64_t> Top() const {
    std::pair<std::string, uint64_t> top;
    for (const auto& [stall, samples] : stalls) {
      if (samples > top.second) top = {stall, samples};
    }
    return top;
  }
};

// Most time first, of equal ones most samples.
template <typename Key>
std::vector<CodeRow> SortedRows(std::map<Key, CodeRow>& by_key) {
  std::vector<CodeRow> rows;
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const CodeRow& a, const CodeRow& b) {
    return std::pair(a.sum.ns, a.sum.samples) > std::pair(b.sum.ns, b.sum.samples);
  });
  return rows;
}

template <typename Member>
uint64_t WholeOf(const std::vector<CodeRow>& rows, Member member) {
  uint64_t whole = 0;
  for (const CodeRow& row : rows) whole = AddSaturated(whole, row.sum.*member);
  return whole;
}

std::string LongPlaceOf(const SourceFrame& frame) {
  if (frame.file.empty()) return {};
  return frame.line == 0 ? std::string(frame.file) : Format("{}:{}", frame.file, frame.line);
}

// The kernel's own name where nothing is inlined or called.
std::string InnermostFunction(const SampledFunction& function, const SampledInstruction& at,
                              const std::string& kernel) {
  if (!at.lines.empty() && !at.lines.front().function.empty()) {
    return Demangle(at.lines.front().function);
  }
  return function.callee.empty() ? kernel : Demangle(function.callee);
}

struct SampledPlace {
  const SampledFunction& of;
  const SampledInstruction& at;
  const std::string& kernel;
  std::string function;  // the innermost one
};

// Calls visit(place, stall, count) for all that was sampled.
template <typename Visit>
void ForEachCount(TableSource& source, const CodeSamples& samples, Visit visit) {
  for (const SampledFunction& function : samples.functions()) {
    const std::string kernel = source.names.KernelName(function.kernel);
    for (const SampledInstruction& at : function.instructions) {
      const SampledPlace place{function, at, kernel, InnermostFunction(function, at, kernel)};
      for (const auto& [stall, count] : at.stalls) visit(place, stall, count);
    }
  }
}

}  // namespace

void FillGpuLines(TableSource& source, Table& table) {
  const CodeSamples samples(source.analysis);
  std::map<std::tuple<std::string, std::string, std::string>, CodeRow> by_line;
  ForEachCount(source, samples,
               [&](const SampledPlace& place, const std::string& stall, const CodeCount& count) {
                 const auto& lines = place.at.lines;
                 const std::string line = lines.empty() ? "" : LongPlaceOf(lines.front());
                 CodeRow& row = by_line[{line, place.function, place.kernel}];
                 row.line = line;
                 row.function = place.function;
                 row.kernel = place.kernel;
                 row.Add(stall, count);
               });
  std::vector<CodeRow> rows = SortedRows(by_line);
  const uint64_t whole_ns = WholeOf(rows, &CodeCount::ns);
  SetRows(table, std::move(rows), [whole_ns](const CodeRow& row, Row& cells) {
    const auto [stall, stalled] = row.Top();
    cells.assign({Percent(row.sum.ns, whole_ns), std::to_string(row.sum.ns),
                  std::to_string(row.sum.samples), Percent(stalled, row.sum.samples), stall,
                  row.line, row.function, row.kernel});
  });
}

void FillGpuFunctions(TableSource& source, Table& table) {
  const CodeSamples samples(source.analysis);
  std::map<std::pair<std::string, std::string>, CodeRow> by_function;
  ForEachCount(source, samples,
               [&](const SampledPlace& place, const std::string& stall, const CodeCount& count) {
                 const auto row_of = [&](const std::string& function) -> CodeRow& {
                   CodeRow& row = by_function[{function, place.kernel}];
                   row.function = function;
                   row.kernel = place.kernel;
                   return row;
                 };
                 row_of(place.function).Add(stall, count);
                 // One that is inlined into itself counts once.
                 std::vector<std::string> around = {place.kernel};
                 if (!place.of.callee.empty()) around.push_back(Demangle(place.of.callee));
                 for (const SourceFrame& frame : place.at.lines) {
                   if (!frame.function.empty()) around.push_back(Demangle(frame.function));
                 }
                 std::sort(around.begin(), around.end());
                 around.erase(std::unique(around.begin(), around.end()), around.end());
                 for (const std::string& function : around) {
                   CodeRow& row = row_of(function);
                   row.total_ns = AddSaturated(row.total_ns, count.ns);
                 }
               });
  std::vector<CodeRow> rows = SortedRows(by_function);
  const uint64_t whole_ns = WholeOf(rows, &CodeCount::ns);
  SetRows(table, std::move(rows), [whole_ns](const CodeRow& row, Row& cells) {
    const auto [stall, stalled] = row.Top();
    cells.assign({Percent(row.sum.ns, whole_ns), std::to_string(row.sum.ns),
                  Percent(row.total_ns, whole_ns), std::to_string(row.total_ns),
                  std::to_string(row.sum.samples), Percent(stalled, row.sum.samples), stall,
                  row.function, row.kernel});
  });
}

void FillGpuStalls(TableSource& source, Table& table) {
  const CodeSamples samples(source.analysis, false);
  std::map<std::string, CodeRow> by_stall;
  ForEachCount(
      source, samples,
      [&](const SampledPlace& /*place*/, const std::string& stall, const CodeCount& count) {
        CodeRow& row = by_stall[stall];
        row.function = stall;
        row.Add(stall, count);
      });
  std::vector<CodeRow> rows = SortedRows(by_stall);
  const uint64_t whole_ns = WholeOf(rows, &CodeCount::ns);
  SetRows(table, std::move(rows), [whole_ns](const CodeRow& row, Row& cells) {
    cells.assign({Percent(row.sum.ns, whole_ns), std::to_string(row.sum.ns),
                  std::to_string(row.sum.samples), Percent(row.sum.not_issued, row.sum.samples),
                  row.function, std::string(AdviceOf(row.function).meaning)});
  });
}

}  // namespace xpu
