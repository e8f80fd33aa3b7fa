#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "format/base/text.h"
#include "report/model/recorded_time.h"
#include "report/model/saturated.h"
#include "report/output/text.h"
#include "report/query/gpu_busy.h"
#include "report/views/tables/table.h"
#include "report/views/tables/top_tables.h"
#include "report/views/view.h"

namespace xpu {
namespace {

using Number = long double;

struct Side {
  bool is_there = false;
  Number total = 0;
  Number count = 0;
};

struct Change {
  Row names;
  std::map<size_t, std::string> details;  // by column
  Side before;
  Side after;

  Number delta() const { return after.total - before.total; }
};

std::string Text(Number number, int digits) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number,
                                          std::chars_format::fixed, digits);
  return error == std::errc() ? std::string(text.data(), end) : std::string();
}

size_t PlaceOf(const TableKind& kind, std::string_view name) {
  for (size_t i = 0; i < kind.columns.size(); ++i) {
    if (kind.columns[i].name == name) return i;
  }
  return 0;
}

// "CUTLASS -> cuBLAS": a detail that changed.
void AddDetail(std::string& detail, const std::string& text) {
  if (detail.empty()) {
    detail = text;
  } else if (!text.empty() && text != detail) {
    detail += " -> " + text;
  }
}

void Collect(const TableKind& kind, const Table& table, Side Change::*side,
             std::map<Row, Change>& changes) {
  const size_t total = PlaceOf(kind, kind.total);
  const size_t count = PlaceOf(kind, kind.count);
  Row cells;
  for (size_t i = 0; i < table.shown(); ++i) {
    table.MakeShown(i, cells);
    Row names;
    for (size_t column = 0; column < cells.size(); ++column) {
      const Column& of = kind.columns[column];
      if (of.is_text && !of.is_detail) names.push_back(cells[column]);
    }
    Change& change = changes[std::move(names)];
    for (size_t column = 0; column < cells.size(); ++column) {
      if (kind.columns[column].is_detail) AddDetail(change.details[column], cells[column]);
    }
    Side& of = change.*side;
    of.is_there = true;
    of.total += NumberOf(cells[total], 0);
    of.count += NumberOf(cells[count], 0);
  }
}

std::vector<Column> DiffColumns(const TableKind& kind) {
  const std::string_view unit = kind.total.substr(kind.total.rfind('('));
  std::vector<Column> columns = {{Format("Delta {}", unit)},
                                 {Format("Before {}", unit)},
                                 {Format("After {}", unit)},
                                 {"Ratio"},
                                 {Format("{} Before", kind.count)},
                                 {Format("{} After", kind.count)},
                                 {"Change", true}};
  for (const Column& column : kind.columns) {
    if (column.is_text) columns.push_back(column);
  }
  return columns;
}

// "1.25"; none when there is nothing to compare with.
std::string Ratio(const Change& change) {
  if (!change.before.is_there || !change.after.is_there || change.before.total == 0) return "";
  return Text(change.after.total / change.before.total, 2);
}

std::string_view ChangeText(const Change& change) {
  if (!change.before.is_there) return "new";
  return change.after.is_there ? "" : "gone";
}

struct Totals {
  uint64_t run_ns = 0;
  bool has_end = false;  // otherwise the program ran for at least run_ns
  uint64_t gpu_ns = 0;   // all work added up
  uint64_t busy_ns = 0;  // the union over streams, all GPUs
};

Totals TotalsOf(const Analysis& analysis) {
  Totals totals{.run_ns = RunTimeNs(analysis.model),
                .has_end = !analysis.model.events.recording_end.empty()};
  if (!totals.has_end) totals.run_ns = analysis.recorded_until_ns;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind == WorkKind::kSynchronization) continue;
    totals.gpu_ns = AddSaturated(totals.gpu_ns, work.duration_ns);
  }
  for (const GpuBusy& gpu : FindGpuBusy(analysis)) {
    totals.busy_ns = AddSaturated(totals.busy_ns, gpu.busy_ns);
  }
  return totals;
}

std::string Ratio(uint64_t before, uint64_t after) {
  if (before == 0) return "";
  return Format(" ({:.2f}x)", static_cast<double>(after) / static_cast<double>(before));
}

std::string RunText(const Totals& totals) {
  if (totals.has_end) return "ran " + HumanDuration(totals.run_ns);
  return totals.run_ns == 0
             ? "end not recorded"
             : Format("end not recorded, ran at least {}", HumanDuration(totals.run_ns));
}

std::string TotalsText(Analysis& before, Analysis& after) {
  const Totals a = TotalsOf(before);
  const Totals b = TotalsOf(after);
  const std::string run_ratio = a.has_end && b.has_end ? Ratio(a.run_ns, b.run_ns) : "";
  return Format("before  {}: {}, GPU work {}, GPU busy {}\n", ToWidth(before.model.path, 80),
                RunText(a), HumanDuration(a.gpu_ns), HumanDuration(a.busy_ns)) +
         Format("after   {}: {}{}, GPU work {}{}, GPU busy {}{}\n", ToWidth(after.model.path, 80),
                RunText(b), run_ratio, HumanDuration(b.gpu_ns), Ratio(a.gpu_ns, b.gpu_ns),
                HumanDuration(b.busy_ns), Ratio(a.busy_ns, b.busy_ns));
}

}  // namespace

Table DiffTable(const TableKind& kind, const Table& before, const Table& after) {
  std::map<Row, Change> by_names;
  Collect(kind, before, &Change::before, by_names);
  Collect(kind, after, &Change::after, by_names);
  auto changes = std::make_shared<std::vector<Change>>();
  for (auto& [names, change] : by_names) {
    change.names = names;
    changes->push_back(std::move(change));
  }
  std::stable_sort(changes->begin(), changes->end(),
                   [](const Change& a, const Change& b) { return a.delta() > b.delta(); });
  Table table{before.name, "Change of " + before.title, DiffColumns(kind), changes->size()};
  const int digits = kind.total.ends_with("(MB)") ? 3 : 0;
  table.row = [changes, digits, columns = kind.columns](size_t index, Row& cells) {
    const Change& change = (*changes)[index];
    cells.assign({Text(change.delta(), digits), Text(change.before.total, digits),
                  Text(change.after.total, digits), Ratio(change), Text(change.before.count, 0),
                  Text(change.after.count, 0), std::string(ChangeText(change))});
    auto name = change.names.begin();
    for (size_t column = 0; column < columns.size(); ++column) {
      if (!columns[column].is_text) continue;
      cells.push_back(columns[column].is_detail ? change.details.at(column) : *name++);
    }
  };
  return table;
}

void WriteDiff(Analysis& before, Analysis& after, const TopOptions& options, Output& output,
               std::string& notes) {
  const std::string totals = TotalsText(before, after);
  // Readers of CSV and JSON expect nothing before the tables.
  if (options.format == TableFormat::kTable) {
    output.Write(totals + "\n");
  } else {
    notes += totals;
  }
  after.other_kernels = KernelNamesOf(before.model);
  before.other_kernels = KernelNamesOf(after.model);
  TableSource source_before(before, options);
  TableSource source_after(after, options);
  TableWriter writer(options.format, output);
  std::vector<const TableKind*> kinds = WantedTables(options);
  std::erase_if(kinds, [](const TableKind* kind) { return kind->total.empty(); });
  for (const TableKind* kind : kinds) {
    Table table = DiffTable(*kind, MakeTable(*kind, source_before), MakeTable(*kind, source_after));
    LimitRows(table, options.rows);
    writer.Write(table, kinds.size() > 1);
  }
  writer.Close();
}

View DiffView() {
  return {
      .option = "--diff",
      .help = "tables: what became slower since capture BEFORE",
      .other_capture = "BEFORE",
      .shows_tables = true,
      .write =
          [](const ViewInput& input) {
            WriteDiff(*input.before, input.analysis, input.options.top, input.output, input.notes);
          },
  };
}

}  // namespace xpu
