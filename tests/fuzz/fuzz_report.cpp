// The whole pipeline of a report, into nothing: load, correlate, every view. The first three bytes
// choose how; the messages of a capture follow (capture_of_messages.h).
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "capture_of_messages.h"
#include "format/base/check.h"
#include "format/reader.h"
#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/export/export_tables.h"
#include "report/export/pprof/pprof.h"
#include "report/model/load.h"
#include "report/query/ledger.h"
#include "report/views/tables/top_tables.h"
#include "report/views/view.h"

namespace {

using namespace xpu;

struct Choice {
  uint8_t views, merge, passes;

  template <typename Enum>
  static Enum Of(uint8_t byte, int shift, int count) {
    return static_cast<Enum>((byte >> shift & 7) % count);
  }
};

void WriteTables(const Choice& choice, Analysis& analysis, Output& output) {
  const auto format = Choice::Of<TableFormat>(choice.views, 3, 3);
  for (const TableKind& kind : TableKinds()) {
    const std::string sort = (choice.views & 1) != 0 ? kind.columns.back().name : "";
    WriteTop(analysis, {.rows = 0, .format = format, .table = std::string(kind.name), .sort = sort},
             output);
  }
}

// Checks that each row has as many cells as its table has columns.
class CheckingTables final : public TableSink {
 public:
  void Begin(std::string_view, std::span<const ExportColumn> columns) override {
    columns_ = columns.size();
  }
  void Signed(int64_t) override { ++cells_; }
  void Unsigned(uint64_t) override { ++cells_; }
  void Text(std::string_view) override { ++cells_; }
  void Null() override { ++cells_; }
  void EndRow() override {
    XPU_CHECK(cells_ == columns_);
    cells_ = 0;
  }
  void End() override {}
  bool failed() const override { return false; }
  Status Close() override { return Ok(); }

 private:
  size_t columns_ = 0;
  size_t cells_ = 0;
};

void WriteExports(Analysis& analysis, GraphStacks graph_stacks) {
  CheckingTables tables;
  CallPaths paths(analysis, {.graph_stacks = graph_stacks});
  WriteNsysTables(analysis, paths, tables);
  WriteRecordTables(analysis, "", tables);
  WriteTraceTables(analysis, paths, "", tables);
  WriteStackTables(analysis, paths.tree(), "", tables);
}

void WriteViews(const Choice& choice, Analysis& analysis, Output& output) {
  std::string notes;
  const auto names = Choice::Of<KernelNames>(choice.views, 0, 3);
  const auto stacks = Choice::Of<GraphStacks>(choice.passes, 0, 3);
  const TreeOptions tree{.mode = Choice::Of<TreeMode>(choice.merge, 0, 3),
                         .kernel_names = names,
                         .paths = {.graph_stacks = stacks},
                         .device_tags = (choice.merge & 0x40) != 0,
                         .by = Choice::Of<GroupBy>(choice.merge, 3, 5),
                         .nvtx_frames = (choice.merge & 0x80) != 0};
  WriteSummary(analysis, {.tree = tree}, output);
  WriteFolded(analysis,
              {.tree = tree,
               .unit = Choice::Of<TimeUnit>(choice.views, 3, 3),
               .reverse = (choice.views & 0x40) != 0},
              output, notes);
  WriteFlameGraph(analysis, {.tree = tree, .title = {}}, output, notes);
  WriteChromeTrace(analysis, {.tree = tree}, output, notes);
  WritePerfetto(analysis, {.tree = tree}, output, notes);
  WriteTables(choice, analysis, output);
  WriteScript(analysis, {.tree = tree}, output);
  WriteDump(analysis, output);
  WritePprof(analysis, {names, stacks}, output);
  WriteExports(analysis, stacks);
  if ((choice.views & 0x80) != 0) WriteDiff({{{&analysis}}, {{&analysis}}}, {}, output, notes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choice choice{};
  if (size < sizeof(choice)) return 0;
  choice = {data[0], data[1], data[2]};
  const std::string file = fuzz::CaptureOfMessages({data + sizeof(choice), size - sizeof(choice)});
  auto reader = CaptureReader::FromBytes(std::as_bytes(std::span(file)), "fuzz");
  XPU_CHECK(reader.ok());
  Result<Model> model = LoadCapture(std::move(reader).value(), "fuzz");
  XPU_CHECK(model.ok());
  // Not the files that the capture names: those of this machine are no part of the input.
  SymbolOptions symbols;
  symbols.places = {.lines = (choice.passes & 0x10) != 0, .offsets = (choice.passes & 0x20) != 0};
  symbols.python = Choice::Of<PythonView>(choice.passes, 3, 3);
  Analysis analysis(std::move(model).value(), std::move(symbols),
                    {.by = Choice::Of<CorrelateBy>(choice.passes, 5, 4)});
  FilterOptions filter;
  filter.pids = {4711, 7};
  if ((choice.passes & 0x80) != 0) analysis.shown = SelectPart(filter, analysis).value();
  if ((choice.merge & 0x20) != 0) SelectOneOf(3, analysis.trace(), analysis.shown);
  Result<Output> output = Output::Open("/dev/null");
  XPU_CHECK(output.ok());
  WriteViews(choice, analysis, *output);
  XPU_CHECK(output->Close().ok());
  BuildLedger(analysis);
  const Correlation::Counts& counts = analysis.counts();
  XPU_CHECK(counts.launches_seen ==
            counts.launches_matched + counts.launches_pending + counts.launches_lost);
  return 0;
}
