// Stacks by unwind tables, all of it: tables, BPF maps, and what each process has mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/base/clock.h"
#include "record/kernel/kernel_features.h"
#include "record/process/process_table.h"
#include "record/python/python_stacks.h"
#include "record/sink/event_sink.h"
#include "record/unwind/unwind_maps.h"
#include "record/unwind/unwind_publisher.h"
#include "record/unwind/unwind_tables.h"

namespace xpu {

// Whether this kernel can walk by tables (bpf_loop, Linux 5.17).
bool CanWalkByTables();

class Unwinder {
 public:
  // `python`: nullptr leaves out what interpreters run. The others outlive this.
  Unwinder(UnwindTables& tables, ProcessTable& processes, UnwindMaps maps,
           std::unique_ptr<PythonStacks> python)
      : tables_(tables),
        maps_(std::move(maps)),
        python_(std::move(python)),
        processes_(processes),
        publisher_(maps_, tables, processes) {}
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  const UnwindMaps& maps() const { return maps_; }
  PythonStacks* python() const { return python_.get(); }
  // Before the target's exec: from then on the BPF programs follow it and its descendants.
  Status Follow(pid_t target);
  void TakeTables() { publisher_.TakeFinishedTables(UINT64_MAX); }
  // A process has begun, or loaded something, a moment ago: more of it is likely.
  bool IsBusy(uint64_t now_ns) const {
    return publisher_.has_finished_tables() || now_ns - processes_.last_change_ns() < kBusyNs;
  }
  // The BPF programs have the tables of everything that was seen until the last Apply.
  bool IsUpToDate() const { return !publisher_.has_finished_tables() && tables_.WaitUntil(0); }
  // Tells the BPF programs what is new.
  void Apply(EventSink& sink);

 private:
  static constexpr uint64_t kBusyNs = 50'000'000;

  UnwindTables& tables_;
  UnwindMaps maps_;
  std::unique_ptr<PythonStacks> python_;
  const ProcessTable& processes_;
  UnwindPublisher publisher_;
};

// Asks for the tables of what `command` will map at its start, and waits for them: for 200 ms of
// their making, which on a loaded machine may take 2 s.
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
