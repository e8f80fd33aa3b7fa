#include "record/source/source_context.h"

#include <cstdio>
#include <utility>

#include <unistd.h>

#include "record/unwind/unwind_cache.h"

namespace xpu {

bool UsesInlineStacks(const RecordOptions& options) {
  return options.record_gpu && options.inject &&
         (options.launch_stacks == LaunchStacks::kInline ||
          options.launch_stacks == LaunchStacks::kAuto);
}

bool UsesLaunchProbes(const RecordOptions& options) {
  return options.record_gpu && !options.inject;
}

bool UsesProbes(const RecordOptions& options) {
  return UsesLaunchProbes(options) || !options.probes.empty();
}

void SourceContext::OpenTables() {
  if (tables != nullptr) return;
  UnwindTables::Options wanted;
  wanted.cache_directory = UnwindCache::DefaultDirectory(::geteuid());
  wanted.delay = table_delay;
  tables = std::make_unique<UnwindTables>(std::move(wanted));
  if (options.verbose && !tables->cache_problem().empty()) {
    std::fprintf(stderr, "unwind tables are not kept on disk: %s\n",
                 tables->cache_problem().c_str());
  }
}

// Stacks are walked in the kernel by BPF, or in programs by the injected library.
Status SourceContext::OpenUnwinding() {
  if (options.call_graph == CallGraphMode::kFramePointers) return Ok();
  const bool in_process = UsesInlineStacks(options);
  const bool in_kernel =
      options.record_cpu || options.record_off_cpu || !options.probes.empty() ||
      (options.record_gpu && options.launch_stacks != LaunchStacks::kNone && !in_process);
  if (in_process) OpenTables();
  if (!in_kernel) return Ok();
  if (!CanWalkByTables()) {
    if (options.call_graph == CallGraphMode::kAuto) return Ok();
    return Error{ErrorKind::kUnsupported, "--call-graph=eh needs Linux 5.17 or newer",
                 "--call-graph=fp uses frame pointers"};
  }
  XPU_ASSIGN_OR_RETURN(UnwindMaps maps, UnwindMaps::Create());
  std::unique_ptr<PythonStacks> python;
  if (options.walk_python) {
    XPU_ASSIGN_OR_RETURN(python, PythonStacks::Create(processes));
  }
  OpenTables();
  unwinder = std::make_unique<Unwinder>(*tables, processes, std::move(maps), std::move(python));
  if (options.command.empty()) return Ok();
  PrepareTables(*tables, options.command.front(), environment);
  unwinder->TakeTables();
  return Ok();
}

}  // namespace xpu
