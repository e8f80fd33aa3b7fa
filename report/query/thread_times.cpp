#include "report/query/thread_times.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "report/analysis/call_paths.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/sampled_events.h"
#include "report/model/saturated.h"

namespace xpu {
namespace {

// By its process and, where no record names one, by its pid.
using ProcessKey = std::pair<ProcessId, uint32_t>;

ProcessKey KeyOf(const ThreadTime& row) { return {row.process, row.process ? 0 : row.pid}; }

// Samples that count something else than time are no time to add to.
uint64_t BusyOf(const ThreadTime& row, bool is_time) {
  return is_time ? AddSaturated(row.cpu, row.gpu_ns) : row.cpu;
}

class Threads {
 public:
  explicit Threads(const Analysis& analysis) : analysis_(analysis) {}

  ThreadTime& Of(const Owner& owner) {
    ThreadTime& row = rows_[{{owner.process, owner.process ? 0 : owner.pid}, owner.tid}];
    if (row.samples + row.gpu_work == 0) {
      row.process = owner.process;
      row.pid = owner.pid;
      row.tid = owner.tid;
    }
    // The last name that it had: threads begin with that of what starts them.
    row.thread_name = analysis_.processes.ThreadName(owner.process, owner.tid, owner.time_ns);
    row.process_name =
        owner.process ? std::string(analysis_.processes.Name(owner.process)) : row.thread_name;
    return row;
  }

  std::vector<ThreadTime> Take() {
    std::vector<ThreadTime> rows;
    for (auto& [key, row] : rows_) {
      row.cpu = MultiplySaturated(row.cpu, analysis_.kept_of);
      row.samples = MultiplySaturated(row.samples, analysis_.kept_of);
      row.gpu_ns = MultiplySaturated(row.gpu_ns, analysis_.kept_of);
      row.gpu_work = MultiplySaturated(row.gpu_work, analysis_.kept_of);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  const Analysis& analysis_;
  std::map<std::pair<ProcessKey, uint32_t>, ThreadTime> rows_;
};

}  // namespace

std::vector<ThreadTime> ThreadTimes(const Analysis& analysis) {
  Threads threads(analysis);
  const SampleWeights weights(analysis.model);
  for (const CpuSample& sample : analysis.model.events.cpu_samples) {
    ThreadTime& row = threads.Of(OwnerOf(analysis, sample));
    row.cpu = AddSaturated(row.cpu, weights.Of(sample));
    ++row.samples;
  }
  for (const GpuWork& work : analysis.correlation.work) {
    if (work.kind == WorkKind::kSynchronization || !work.timed) continue;
    ThreadTime& row = threads.Of(OwnerOf(analysis, work));
    row.gpu_ns = AddSaturated(row.gpu_ns, work.duration_ns);
    ++row.gpu_work;
  }
  std::vector<ThreadTime> rows = threads.Take();
  const bool is_time = SamplesCountTime(analysis.model);
  std::map<ProcessKey, uint64_t> of_process;
  for (const ThreadTime& row : rows) {
    uint64_t& sum = of_process[KeyOf(row)];
    sum = AddSaturated(sum, BusyOf(row, is_time));
  }
  std::sort(rows.begin(), rows.end(), [&](const ThreadTime& a, const ThreadTime& b) {
    return std::tuple(of_process[KeyOf(b)], KeyOf(a), BusyOf(b, is_time), a.tid) <
           std::tuple(of_process[KeyOf(a)], KeyOf(b), BusyOf(a, is_time), b.tid);
  });
  return rows;
}

std::vector<ThreadTime> ProcessTimes(const std::vector<ThreadTime>& threads) {
  std::vector<ThreadTime> processes;
  for (const ThreadTime& thread : threads) {
    if (processes.empty() || KeyOf(processes.back()) != KeyOf(thread)) {
      processes.push_back({.process = thread.process,
                           .pid = thread.pid,
                           .process_name = thread.process_name,
                           .thread_name = {}});
    }
    ThreadTime& process = processes.back();
    process.cpu = AddSaturated(process.cpu, thread.cpu);
    process.samples += thread.samples;
    process.gpu_ns = AddSaturated(process.gpu_ns, thread.gpu_ns);
    process.gpu_work += thread.gpu_work;
  }
  return processes;
}

}  // namespace xpu
