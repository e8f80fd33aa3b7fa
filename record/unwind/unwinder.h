// Lets BPF programs walk stacks by unwind tables: it ties together the tables, the BPF maps, and
// what each process has mapped.
//
// After Apply the programs know all mappings that were recorded until then and whose tables are
// finished; a walk through code without a table falls back to frame pointers, and the stack says
// how it was walked and whether it is complete. Tables were chosen because frame pointers end in
// libraries such as libtorch and cuBLAS and in CPython, and copying stacks to unwind them later
// costs forty times the bytes.
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

// True if this kernel can walk by tables (bpf_loop, Linux 5.17).
bool CanWalkByTables();

class Unwinder {
 public:
  // `python`: nullptr to leave out Python frames. The others outlive this object.
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
  // Called before the target's exec: from then on the BPF programs follow it and its descendants.
  Status Follow(pid_t target);
  void TakeTables() { publisher_.TakeFinishedTables(UINT64_MAX); }
  // True if a process has begun or mapped something a moment ago, so that more is likely.
  bool IsBusy(uint64_t now_ns) const {
    return publisher_.has_finished_tables() || now_ns - processes_.last_change_ns() < kBusyNs;
  }
  // True if the BPF programs have the tables of everything that was known at the last Apply.
  bool IsUpToDate() const { return !publisher_.has_finished_tables() && tables_.WaitUntil(0); }
  // Publishes what is new to the BPF programs.
  void Apply(EventSink& sink);

 private:
  static constexpr uint64_t kBusyNs = 50'000'000;

  UnwindTables& tables_;
  UnwindMaps maps_;
  std::unique_ptr<PythonStacks> python_;
  const ProcessTable& processes_;
  UnwindPublisher publisher_;
};

// Requests the tables of what `command` will map at its start and waits for them: for 200 ms of
// work, which may take 2 s on a loaded machine.
void PrepareTables(UnwindTables& tables, const std::string& program,
                   const std::vector<std::string>& environment);

// Configures how a BPF program walks stacks, and sets its maps; `unwinder`: nullptr to walk by
// frame pointers, without Python. Called between the program's open and load.
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

// The id for CpuSample::python_stack of a stack that such a program took.
inline StackId TakePython(const Unwinder* unwinder, const xpu_stack& stack, size_t bytes,
                          uint32_t pid, EventSink& sink) {
  PythonStacks* python = unwinder != nullptr ? unwinder->python() : nullptr;
  return python != nullptr ? python->Take(stack, bytes, pid, sink) : StackId{};
}

}  // namespace xpu
