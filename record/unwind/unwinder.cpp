#include "record/unwind/unwinder.h"

#include <ctime>
#include <utility>

#include "record/base/clock.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/kernel_features.h"
#include "record/unwind/unwind_expected.h"

namespace xpu {
namespace {

uint64_t ProcessCpuNs() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace

bool CanWalkByTables() {
  return MayUse(KernelFeature::kTableWalk) &&
         libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, nullptr) == 1;
}

Status Unwinder::Follow(pid_t target) {
  return maps_.SetCode(static_cast<uint32_t>(target), {}, MonotonicNs());
}

void Unwinder::Apply(EventSink& sink) {
  const Status published = publisher_.Publish(MonotonicNs());
  if (python_) python_->Drain(sink);
  if (!published.ok()) {
    sink.losses().Add(LossKind::kUnwindTableFailed, 1, 0, {}, published.error().message);
  }
}

void PrepareTables(UnwindTables& tables, const std::string& program,
                   const std::vector<std::string>& environment) {
  // The start of the program is not delayed longer, whatever it needs. Time in which the table
  // threads wait for a processor does not count.
  constexpr uint64_t kPatienceNs = 200'000'000, kLongestNs = 2'000'000'000, kStepNs = 20'000'000;
  const uint64_t start_ns = MonotonicNs(), start_cpu_ns = ProcessCpuNs();
  // When the file is mapped it is recognized by its build-id.
  for (std::string& path : ExpectedFiles(program, environment)) {
    UnwindTables::File file;
    file.paths.push_back(std::move(path));
    tables.Request(std::move(file));
  }
  tables.Request({.paths = {"[vdso]"}, .build_id = {}, .device = 0, .inode = 0});
  uint64_t until_ns = start_ns + kPatienceNs;
  while (!tables.WaitUntil(until_ns) && ProcessCpuNs() - start_cpu_ns < kPatienceNs &&
         until_ns < start_ns + kLongestNs) {
    until_ns += kStepNs;
  }
}

}  // namespace xpu
