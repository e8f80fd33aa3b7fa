// What the sources of one recording share: its scope, the processes, and how stacks are
// unwound.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/events.h"
#include "record/options/options.h"
#include "record/options/scope.h"
#include "record/process/process_table.h"
#include "record/unwind/unwind_tables.h"
#include "record/unwind/unwinder.h"

namespace xpu {

// Whether the options ask the injected library to take the launch stacks.
bool WantsInlineStacks(const RecordOptions& options);
// Whether launches are to be seen by probes, because nothing is injected.
bool WantsLaunchProbes(const RecordOptions& options);
// Those, or probes that the user asks for.
bool WantsProbes(const RecordOptions& options);

struct SourceContext {
  // `table` outlives this.
  SourceContext(const RecordOptions& wanted, ProcessTable& table)
      : options(wanted), processes(table) {}
  SourceContext(const SourceContext&) = delete;
  SourceContext& operator=(const SourceContext&) = delete;

  // Tables and unwinder, as far as the options need them. Tables of what the program will map at
  // its start are made or loaded here.
  Status OpenUnwinding();

  CallGraph call_graph() const { return tables ? CallGraph::kTables : CallGraph::kFramePointers; }

  const RecordOptions options;
  Scope scope;
  std::vector<std::string> environment;  // of the program
  ProcessTable& processes;
  std::chrono::milliseconds table_delay{0};  // UnwindTables::Options
  uint64_t device_buffers = 0;               // wire::RingHeader
  // The kernel reports processes and mappings; else each source finds those that it needs.
  bool has_task_records = false;
  bool stacks_are_inline = false;        // the injected libraries take the launch stacks
  std::unique_ptr<UnwindTables> tables;  // nullptr: none are needed
  std::unique_ptr<Unwinder> unwinder;    // of BPF programs; nullptr: they use frame pointers

 private:
  void OpenTables();
};

}  // namespace xpu
