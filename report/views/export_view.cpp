// Views for other programs: --export and --pprof.
#include <array>
#include <memory>

#include "report/analysis/call_paths.h"
#include "report/export/export_tables.h"
#include "report/export/parquet/parquet_tables.h"
#include "report/export/pprof/pprof.h"
#include "report/export/sqlite/sqlite_tables.h"
#include "report/export/text_tables.h"
#include "report/views/view.h"

namespace xpu {
namespace {

// In the order of kFormats.
enum class ExportFormat : uint8_t { kSqlite, kParquet, kCsv, kNdjson };
constexpr std::array<std::string_view, 4> kFormats = {"sqlite", "parquet", "csv", "ndjson"};

ExportFormat FormatOf(std::string_view name) {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i] == name) return static_cast<ExportFormat>(i);
  }
  return ExportFormat::kSqlite;
}

Result<std::unique_ptr<TableSink>> OpenTables(ExportFormat format, const std::string& path) {
  if (format == ExportFormat::kSqlite) return OpenSqliteTables(path);
  if (format == ExportFormat::kParquet) return OpenParquetTables(path);
  XPU_ASSIGN_OR_RETURN(
      std::unique_ptr<TextTables> tables,
      TextTables::Open(
          path, format == ExportFormat::kCsv ? TextTableFormat::kCsv : TextTableFormat::kNdjson));
  return std::unique_ptr<TableSink>(std::move(tables));
}

Status WriteExport(const ViewOptions& options, Analysis& analysis, const std::string& path) {
  const ExportFormat format = FormatOf(options.value);
  XPU_ASSIGN_OR_RETURN(const std::unique_ptr<TableSink> tables, OpenTables(format, path));
  CallPaths paths(analysis, {.graph_stacks = options.tree.paths.graph_stacks});
  paths.NameAhead({.samples = true, .launches = true});
  std::string_view prefix;
  if (format == ExportFormat::kSqlite) {
    prefix = "XPU_";
    WriteNsysTables(analysis, paths, *tables);
  }
  WriteRecordTables(analysis, prefix, *tables);
  WriteTraceTables(analysis, paths, prefix, *tables);
  WriteStackTables(analysis, paths.tree(), prefix, *tables);
  return tables->Close();
}

}  // namespace

View ExportView() {
  return {
      .option = "--export",
      .help = "tables: sqlite (a file), parquet, csv, ndjson",
      .value = "FORMAT",
      .values = kFormats,
      .takes_filters = false,
      .events = View::Events::kAll,
      .write_to = WriteExport,
  };
}

View PprofView() {
  return {
      .option = "--pprof",
      .help = "a profile for go tool pprof",
      .is_for_reading = false,
      .file_name_end = ".pb",
      .write =
          [](const ViewInput& input) {
            WritePprof(input.analysis,
                       {input.options.tree.kernel_names, input.options.tree.paths.graph_stacks},
                       input.output);
          },
  };
}

}  // namespace xpu
