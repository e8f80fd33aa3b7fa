// What the sources of one recording share: its scope, the processes, and how stacks are unwound.
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

// True if the options select launch stacks taken by the injected library.
bool UsesInlineStacks(const RecordOptions& options);
// True if launches are recorded by probes, because nothing is injected.
bool UsesLaunchProbes(const RecordOptions& options);
// True for launch probes, and for probes that the user requests.
bool UsesProbes(const RecordOptions& options);

struct SourceContext {
  // `table` outlives this object.
  SourceContext(const RecordOptions& wanted, ProcessTable& table)
      : options(wanted), processes(table) {}
  SourceContext(const SourceContext&) = delete;
  SourceContext& operator=(const SourceContext&) = delete;

  // Opens tables and unwinder as far as the options need them. Loads or makes tables of the files
  // that the program will map at its start.
  Status OpenUnwinding();

  CallGraph call_graph() const { return tables ? CallGraph::kTables : CallGraph::kFramePointers; }

  const RecordOptions options;
  Scope scope;
  std::vector<std::string> environment;  // of the program
  ProcessTable& processes;
  std::chrono::milliseconds table_delay{0};  // UnwindTables::Options
  uint64_t device_buffers = 0;               // wire::RingHeader
  uint64_t hang_ns = 10'000'000'000;         // likewise
  // Processes on whose GPU nothing ends: their waiting threads are to be listed, once.
  std::vector<uint32_t> hanging;
  // True if the kernel reports processes and mappings; otherwise each source finds those that it
  // needs.
  bool has_task_records = false;
  bool stacks_are_inline = false;        // the injected libraries take the launch stacks
  std::unique_ptr<UnwindTables> tables;  // nullptr: not needed
  std::unique_ptr<Unwinder> unwinder;    // for BPF programs; nullptr: they use frame pointers

 private:
  void OpenTables();
};

}  // namespace xpu
