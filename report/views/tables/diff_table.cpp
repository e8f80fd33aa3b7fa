// Two tables of one kind as one: what changed, row by row.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "report/query/statistics.h"
#include "report/views/tables/table.h"
#include "report/views/tables/top_tables.h"

namespace xpu {
namespace {

using Number = long double;

struct Side {
  bool is_there = false;
  std::vector<Number> totals;  // by run
  Number count = 0;            // of all of them

  Number total() const {
    Number sum = 0;
    for (const Number run : totals) sum += run;
    return sum / static_cast<Number>(totals.size());
  }
  Number average_count() const { return count / static_cast<Number>(totals.size()); }
};

struct Change {
  Row names;
  std::map<size_t, std::string> details;  // by column
  Side before;
  Side after;
  bool is_renamed = false;

  Number delta() const { return after.total() - before.total(); }
  // In parts of the larger one; 0 where there is nothing to compare with.
  Number relative() const {
    const Number larger = std::max(std::fabs(before.total()), std::fabs(after.total()));
    if (!before.is_there || !after.is_there || larger == 0) return 0;
    return std::fabs(delta()) / larger;
  }
};

using Changes = std::map<Row, Change>;

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

void Collect(const TableKind& kind, const DiffSide& side, Side Change::*member, Changes& changes) {
  const size_t total = PlaceOf(kind, kind.total);
  const size_t count = PlaceOf(kind, kind.count);
  Row cells;
  for (size_t run = 0; run < side.runs.size(); ++run) {
    const auto& [table, of_how_many] = side.runs[run];
    for (size_t i = 0; i < table.shown(); ++i) {
      table.MakeShown(i, cells);
      // A module that only calls others, for instance: their rows have its time.
      if (NumberOf(cells[total], 0) == 0 && NumberOf(cells[count], 0) == 0) continue;
      Row names;
      for (size_t column = 0; column < cells.size(); ++column) {
        if (kind.columns[column].is_key()) names.push_back(cells[column]);
      }
      Change& change = changes[std::move(names)];
      Side& of = change.*member;
      // The first of several rows and runs of a side gives the details.
      for (size_t column = 0; column < cells.size() && !of.is_there; ++column) {
        if (kind.columns[column].is_description) AddDetail(change.details[column], cells[column]);
      }
      of.is_there = true;
      of.totals.resize(side.runs.size());
      of.totals[run] += NumberOf(cells[total], 0) / of_how_many;
      of.count += NumberOf(cells[count], 0) / of_how_many;
    }
  }
}

// Kernels at one place, by all names of their rows without the kernel's.
struct Renamed {
  std::vector<const Row*> gone;
  std::vector<const Row*> added;
};

// The name of the kernel that the path ends with; none: it ends with something else.
std::string_view KernelOf(std::string_view path) {
  constexpr std::string_view kKernel = ";[GPU_Kernel]";
  const size_t at = path.rfind(kKernel);
  return at == std::string_view::npos ? std::string_view() : path.substr(at + kKernel.size());
}

// A kernel that is gone from a path and another one that is new there are one that changed its
// name: of several the ones with most time, in their order.
void JoinRenamed(size_t path_name, Changes& changes) {
  std::map<Row, Renamed> places;
  for (const auto& [names, change] : changes) {
    const std::string_view kernel = KernelOf(names[path_name]);
    if (kernel.empty() || (change.before.is_there && change.after.is_there)) continue;
    Row place = names;
    place[path_name].resize(place[path_name].size() - kernel.size());
    Renamed& renamed = places[std::move(place)];
    (change.before.is_there ? renamed.gone : renamed.added).push_back(&names);
  }
  for (auto& [place, renamed] : places) {
    const auto total_of = [&](const Row* names) {
      const Change& change = changes.at(*names);
      return change.before.is_there ? change.before.total() : change.after.total();
    };
    const auto is_larger = [&](const Row* a, const Row* b) { return total_of(a) > total_of(b); };
    std::stable_sort(renamed.gone.begin(), renamed.gone.end(), is_larger);
    std::stable_sort(renamed.added.begin(), renamed.added.end(), is_larger);
    for (size_t i = 0; i < std::min(renamed.gone.size(), renamed.added.size()); ++i) {
      const auto gone = changes.find(*renamed.gone[i]);
      const auto added = changes.find(*renamed.added[i]);
      Row names = gone->first;
      names[path_name] += Format(" -> {}", KernelOf(added->first[path_name]));
      Change change = std::move(added->second);
      change.before = std::move(gone->second.before);
      change.is_renamed = true;
      changes.erase(gone);
      changes.erase(added);
      changes.try_emplace(std::move(names), std::move(change));
    }
  }
}

std::vector<Column> DiffColumns(const TableKind& kind, const DiffSide& before,
                                const DiffSide& after) {
  // " (ns)"; none: it is another one in each row.
  const size_t at = kind.total.rfind(" (");
  const std::string_view unit = at == std::string_view::npos ? "" : kind.total.substr(at);
  std::vector<Column> columns = {{Format("Delta{}", unit)},
                                 {Format("{}{}", before.name, unit)},
                                 {Format("{}{}", after.name, unit)},
                                 {"Ratio"},
                                 {Format("{} {}", kind.count, before.name)},
                                 {Format("{} {}", kind.count, after.name)},
                                 {"Change", true}};
  for (const Column& column : kind.columns) {
    if (column.is_key() || column.is_description) columns.push_back(column);
  }
  return columns;
}

// "1.25"; none when there is nothing to compare with.
std::string Ratio(const Change& change) {
  if (!change.before.is_there || !change.after.is_there || change.before.total() == 0) return "";
  return Text(change.after.total() / change.before.total(), 2);
}

std::string_view ChangeText(const Change& change) {
  if (!change.before.is_there) return "new";
  if (!change.after.is_there) return "gone";
  if (change.is_renamed) return "renamed";
  if (change.before.totals.size() < 2 || change.after.totals.size() < 2) return "";
  const std::vector<double> before(change.before.totals.begin(), change.before.totals.end());
  const std::vector<double> after(change.after.totals.begin(), change.after.totals.end());
  return DifferByMeans(before, after) ? "changed" : "noise";
}

// Sums of one thing in one run are whole numbers.
bool HasFractions(const DiffSide& side) {
  return side.runs.size() > 1 || (!side.runs.empty() && side.runs.front().of_how_many != 1);
}

// Joins by the first text column that is a path, counted among the names of rows.
void JoinRenamed(const TableKind& kind, Changes& changes) {
  size_t name = 0;
  for (const Column& column : kind.columns) {
    if (column.is_path) return JoinRenamed(name, changes);
    name += column.is_key() ? 1 : 0;
  }
}

}  // namespace

Table DiffTable(const TableKind& kind, const DiffSide& before, const DiffSide& after) {
  Changes by_names;
  Collect(kind, before, &Change::before, by_names);
  Collect(kind, after, &Change::after, by_names);
  for (auto& [names, change] : by_names) {
    change.before.totals.resize(before.runs.size());
    change.after.totals.resize(after.runs.size());
  }
  JoinRenamed(kind, by_names);
  auto changes = std::make_shared<std::vector<Change>>();
  for (auto& [names, change] : by_names) {
    change.names = names;
    changes->push_back(std::move(change));
  }
  std::stable_sort(changes->begin(), changes->end(), [&](const Change& a, const Change& b) {
    return kind.is_average ? a.relative() > b.relative() : a.delta() > b.delta();
  });
  Table table{std::string(kind.name), Format("Change of {}", kind.title),
              DiffColumns(kind, before, after), changes->size()};
  const int digits = kind.total.ends_with("(MB)") ? 3 : kind.is_average ? 2 : 0;
  const int count_digits = HasFractions(before) || HasFractions(after) ? 1 : 0;
  table.row = [changes, digits, count_digits, columns = kind.columns](size_t index, Row& cells) {
    const Change& change = (*changes)[index];
    cells.assign({Text(change.delta(), digits), Text(change.before.total(), digits),
                  Text(change.after.total(), digits), Ratio(change),
                  Text(change.before.average_count(), count_digits),
                  Text(change.after.average_count(), count_digits),
                  std::string(ChangeText(change))});
    auto name = change.names.begin();
    for (size_t column = 0; column < columns.size(); ++column) {
      if (columns[column].is_key()) cells.push_back(*name++);
      if (columns[column].is_description) cells.push_back(change.details.at(column));
    }
  };
  return table;
}

}  // namespace xpu
