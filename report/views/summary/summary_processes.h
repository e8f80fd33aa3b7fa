// The parts of the summary that only several processes or captures need.
#pragma once

#include "report/analysis/analysis.h"
#include "report/views/summary/summary_text.h"

namespace xpu {

// "exit status 0", "killed by SIGKILL", of a status as waitpid gives it.
std::string DescribeStatus(int status);

// "node7 6.1.0 x86_64, 16 CPUs"
std::string HostText(const Model& model, const RecordingInfo& info);

// Of several captures that are shown as one: each one's name, command, host, time.
void WriteCaptures(const Analysis& analysis, SummaryText& text);
// CPU and GPU time by process, and by thread where a process has several. Nothing for one process.
void WriteProcessTimes(const Analysis& analysis, SummaryText& text);

}  // namespace xpu
