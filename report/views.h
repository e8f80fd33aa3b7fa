// The views: each writes one form of an analysis.
#pragma once

#include <cstdint>
#include <string>

#include "report/analysis.h"
#include "report/gpu_names.h"
#include "report/merge.h"
#include "report/output.h"

namespace xpu {

enum class TimeUnit : uint8_t { kMicroseconds, kNanoseconds, kSamples };
enum class TableFormat : uint8_t { kTable, kCsv, kJson };

struct FoldedOptions {
  MergeOptions merge;
  TimeUnit unit = TimeUnit::kMicroseconds;
};

struct TopOptions {
  uint64_t rows = 20;  // of each table, 0: all
  TableFormat format = TableFormat::kTable;
  std::string table;  // only this one, empty: all
  KernelNames kernel_names = KernelNames::kFull;
  GraphStacks graph_stacks = GraphStacks::kBoth;
};

struct TraceOptions {
  KernelNames kernel_names = KernelNames::kFull;
  GraphStacks graph_stacks = GraphStacks::kBoth;
};

// What was recorded, the ledger, the top of each table; within 80 columns.
void WriteSummary(Analysis& analysis, KernelNames kernel_names, Output& output);
// One line `frame;frame;... value` per path, sorted. `notes` gets a sentence about the paths whose
// time rounds to 0 and which are left out.
void WriteFolded(Analysis& analysis, const FoldedOptions& options, Output& output,
                 std::string& notes);
// Trace Event Format, for Perfetto and chrome://tracing.
void WriteChromeTrace(Analysis& analysis, const TraceOptions& options, Output& output);
void WriteTop(Analysis& analysis, const TopOptions& options, Output& output);
// Every record as one line of text.
void WriteDump(const Analysis& analysis, Output& output);

}  // namespace xpu
