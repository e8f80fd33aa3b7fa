// Stacks by unwind tables, all of it: tables, BPF maps, and what each process has mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/base/clock.h"
#include "record/kernel/kernel_features.h"
#include "record/kernel/perf_records.h"
#include "record/python/python_stacks.h"
#include "record/sink/event_sink.h"
#include "record/unwind/unwind_maps.h"
#include "record/unwind/unwind_processes.h"
#include "record/unwind/unwind_tables.h"

namespace xpu {

// Whether this kernel can walk by tables (bpf_loop, Linux 5.17).
bool CanWalkByTables();

class Unwinder {
 public:
  // `python`: nullptr leaves out what interpreters run.
  Unwinder(UnwindTables& tables, UnwindMaps maps, std::unique_ptr<PythonStacks> python)
      : tables_(tables),
        maps_(std::move(maps)),
        python_(std::move(python)),
        processes_(maps_, tables_, python_.get()) {}
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  const UnwindMaps& maps() const { return maps_; }
  PythonStacks* python() const { return python_.get(); }
  // Before the target's exec: from then on the BPF programs follow it and its descendants.
  Status Follow(pid_t target);
  void TakeTables() { processes_.TakeFinishedTables(UINT64_MAX); }
  void See(const PerfRecord& record) {
    if (processes_.See(record)) last_seen_ns_ = MonotonicNs();
  }
  // A process has begun, or loaded something, a moment ago: more of it is likely.
  bool IsBusy(uint64_t now_ns) const {
    return processes_.has_finished_tables() || now_ns - last_seen_ns_ < kBusyNs;
  }
  // Tells the BPF programs what is new.
  void Apply(EventSink& sink);

 private:
  UnwindTables& tables_;
  UnwindMaps maps_;
  std::unique_ptr<PythonStacks> python_;
  UnwindProcesses processes_;
  static constexpr uint64_t kBusyNs = 50'000'000;
  uint64_t last_seen_ns_ = 0;
};

// Asks for the tables of what `command` will map at its start, and waits a little for them.
void PrepareTables(UnwindTables& tables, const std::string& program,
                   const std::vector<std::string>& environment);

// How a program walks stacks, and its maps for it; `unwinder`: nullptr walks by frame pointers, and
// not what interpreters run. Between the program's open and its load.
template <typename Skeleton>
Status UseUnwinder(Skeleton& skeleton, const Unwinder* unwinder) {
  const PythonStacks* python = unwinder != nullptr ? unwinder->python() : nullptr;
  skeleton.rodata->walk_by_tables = unwinder != nullptr;
  skeleton.rodata->may_read_map_tree = MayUse(KernelFeature::kMapTree);
  skeleton.rodata->walk_python = python != nullptr;
  XPU_RETURN_IF_ERROR(python != nullptr ? python->maps().ShareWith(skeleton.obj)
                                        : PythonMaps::Shrink(skeleton.obj));
  return unwinder != nullptr ? unwinder->maps().ShareWith(skeleton.obj)
                             : UnwindMaps::Shrink(skeleton.obj);
}

// CpuSample::python_stack of a stack that such a program took.
inline StackId TakePython(const Unwinder* unwinder, const xpu_stack& stack, size_t bytes,
                          uint32_t pid, EventSink& sink) {
  PythonStacks* python = unwinder != nullptr ? unwinder->python() : nullptr;
  return python != nullptr ? python->Take(stack, bytes, pid, sink) : StackId{};
}

}  // namespace xpu
