// The running processes that are recorded, and all processes that they fork from then on, which a
// BPF program follows (bpf/watched.bpf.c).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/perf_records.h"
#include "record/options/scope.h"
#include "record/process/process_table.h"
#include "record/sink/loss_ledger.h"

namespace xpu {

class WatchedProcesses : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this object.
  static Result<std::unique_ptr<WatchedProcesses>> Open(ProcessTable& processes);
  ~WatchedProcesses() override;

  // The map `watched`, for other BPF programs.
  int map_fd() const;
  Status Watch(pid_t pid);
  // Also true for an ended process whose last records are being read.
  bool IsWatched(uint32_t pid);
  // True if any of them still runs.
  bool AnyRuns() const;
  void OnEnd(uint32_t pid) override;
  void CountLosses(LossLedger& losses);

 private:
  class Impl;
  explicit WatchedProcesses(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The process that a record belongs to.
uint32_t PidOf(const PerfRecord& record);

// Sets a program's constant `watch` and its map `watched`. Called between its open and load.
template <typename Skeleton>
Status WatchOnly(Skeleton& skeleton, const Scope& scope) {
  constexpr const char* kMap = "watched";
  skeleton.rodata->watch = scope.watch();
  if (scope.kind != Scope::Kind::kProcesses) return ShrinkMaps(skeleton.obj, {&kMap, 1});
  const SharedMap shared{kMap, scope.watched_map_fd};
  return ShareMaps(skeleton.obj, {&shared, 1});
}

// `map_fd`: of the map `recorded`. Called before the program's exec, which the mark waits for.
Status MarkProgram(int map_fd, pid_t program);

}  // namespace xpu
