// The last part of the summary: how good the recording is, and what is missing from it.
#pragma once

#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/query/gpu_busy.h"
#include "report/query/nameless_files.h"
#include "report/views/summary/summary_text.h"

namespace xpu {

// Samples, the profiler's own among them, stacks, symbols, launches and the kernels matched to
// them, clocks. `cpu`: the tree of the samples.
void WriteQuality(Analysis& analysis, const CallTree& cpu, const std::vector<GpuBusy>& gpus,
                  SummaryText& text);
// How many of the stacks reach their outermost frame: "98.7 % of 12,345 CPU samples and 100 % of
// 2,000 CUDA calls reach their outermost frame (unwind tables)". Empty where no stack was unwound
// by tables: frame pointers do not tell whether they led to the end. Shares are rounded down, so
// that 100 means all.
std::string StackCountsText(const LoadedEvents& events, const EventSet& cpu_samples);
// The ledger: losses, then notes. Nothing when it is empty.
void WriteLedger(const Analysis& analysis, SummaryText& text);
// Files without names, and why.
void WriteNameless(const Analysis& analysis, const NamelessFiles& nameless, SummaryText& text);

// "exit status 0", "killed by SIGKILL", of a status as waitpid gives it.
std::string DescribeStatus(int status);

// "node7 6.1.0 x86_64, 16 CPUs"
std::string HostText(const Model& model, const RecordingInfo& info);
// "commit=1a2b3c, branch=main". Nothing where there are none.
void WriteLabels(const Model& model, const RecordingInfo& info, std::string_view title,
                 SummaryText& text);

// Of several captures that are shown as one: each one's name, command, host, time.
void WriteCaptures(const Analysis& analysis, SummaryText& text);
// CPU and GPU time by process, and by thread where a process has several. Nothing for one process.
void WriteProcessTimes(const Analysis& analysis, SummaryText& text);

}  // namespace xpu
