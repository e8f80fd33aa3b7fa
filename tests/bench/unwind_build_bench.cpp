// Time to build the unwind tables of the files that are named, and what is in them.

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "format/base/text.h"
#include "symbolize/unwind/cfi_section.h"
#include "symbolize/unwind/unwind_builder.h"

namespace xpu {
namespace {

double CpuMilliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

bool Measure(const std::string& path) {
  const auto failed = [&](const Error& error) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), error.message.c_str());
    return false;
  };
  const auto file = ElfFile::Open(path);
  if (!file.ok()) return failed(file.error());
  const auto frames = FindCallFrames(file.value().image());
  size_t frame_bytes = 0;
  for (const CfiSection& section : frames->sections) frame_bytes += section.bytes.size();
  // The second time: the pages of the file are there.
  constexpr int kRuns = 3;
  double fastest_ms = 0;
  for (int run = 0; run < kRuns; ++run) {
    UnwindStats stats;
    const double before_ms = CpuMilliseconds();
    const auto table = BuildUnwindTable(file.value().image(), &stats);
    const double ms = CpuMilliseconds() - before_ms;
    if (!table.ok()) return failed(table.error());
    fastest_ms = run == 0 ? ms : std::min(fastest_ms, ms);
    if (run + 1 < kRuns) continue;
    const UnwindTableHeader& header = *table.value().view().header;
    const auto rows = static_cast<double>(stats.rows);
    std::printf("%12zu %9u %9zu %7zu %9u %6u %7zu %7zu %6.2f %8.1f %7.1f  %s\n", frame_bytes,
                static_cast<unsigned>(stats.entries), static_cast<size_t>(stats.rows),
                static_cast<size_t>(header.page_count), static_cast<unsigned>(header.bytes / 1024),
                header.rule_count, static_cast<size_t>(stats.unsupported),
                static_cast<size_t>(stats.invalid), static_cast<double>(header.bytes) / rows,
                fastest_ms, rows / fastest_ms / 1e3, path.c_str());
  }
  return true;
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  std::printf("%12s %9s %9s %7s %9s %6s %7s %7s %6s %8s %7s  %s\n", "frame bytes", "FDEs", "rows",
              "pages", "KiB", "rules", "unsupp", "invalid", "B/row", "ms", "Mrows/s", "file");
  bool good = argc > 1;
  for (int i = 1; i < argc; ++i) good = xpu::Measure(argv[i]) && good;
  return good ? 0 : 1;
}
