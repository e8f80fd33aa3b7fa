// The settings of one recording, as parsed from the command line.
//
// Plain values, which cli/ fills in and the rest of the recorder only reads. The parsers of values
// lie in this directory, without CLI11, which only cli/ includes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/events.h"
#include "record/options/control_options.h"
#include "record/options/cpu_events.h"
#include "record/options/gpu_metrics_options.h"
#include "record/options/gpu_sample_options.h"
#include "record/options/output_options.h"
#include "record/options/user_probes.h"

namespace xpu {

enum class LaunchStacks { kNone, kAuto, kInline, kUprobe };
enum class CallGraphMode { kAuto, kFramePointers, kTables };
enum class GraphTraceMode { kGraph, kNode };

struct RecordOptions {
  std::string output = "capture.xpu";  // "-": standard output
  OutputOptions output_options;
  std::vector<CpuEvent> cpu_events = {CpuEvent{}};
  uint64_t frequency_hz = 99;  // of events without a period
  bool record_cpu = true;
  bool record_gpu = true;
  bool record_off_cpu = false;
  uint64_t off_cpu_min_ns = 10'000;  // shorter times off the CPU are summed, without stacks
  CallGraphMode call_graph = CallGraphMode::kAuto;
  LaunchStacks launch_stacks = LaunchStacks::kAuto;
  GraphTraceMode graph_trace = GraphTraceMode::kGraph;
  SymbolDetail symbols = SymbolDetail::kNames;
  bool store_sources = false;  // lines around those that occur; of native code see below
  std::string cupti_library;   // empty: the injected library searches
  // False: nothing is loaded into the program and CUPTI is left to it; launches are recorded by
  // probes on `cuda_libraries` (empty: those that the program maps).
  bool inject = true;
  bool walk_python = true;
  bool record_nvtx = true;  // with `inject`
  bool record_memory = false;
  GpuMetricsOptions gpu_metrics;
  GpuSampleOptions gpu_samples;
  std::vector<std::string> cuda_libraries;
  std::vector<UserProbe> probes;
  ControlOptions control;
  // Running processes to record instead of a program, or the whole system, with or without a
  // program.
  std::vector<pid_t> pids;
  bool attach = false;  // load the injected library into recorded processes that use CUDA
  bool whole_system = false;
  bool gpu_out_of_reach = false;  // requested, but no started program could load the library
  bool verbose = false;
  bool quiet = false;
  bool list_gpu_metrics = false;
  bool check = false;  // print what works on this machine, record nothing
  bool check_as_json = false;
  // The target and its arguments; with `pids`, a command whose end ends the recording. May be empty
  // with `pids` and `whole_system`.
  std::vector<std::string> command;
  std::string user;  // the user that the target runs as, name or number; empty: the caller
  bool allow_new_privileges = false;  // with `user`: setuid programs gain their privileges
  bool keep_descriptors = false;  // with `user`: the program inherits descriptors other than 0 to 2
  std::vector<std::string> own_arguments;

  // The lines of native code are known only where its line tables are read.
  bool StoresNativeSources() const { return store_sources && symbols == SymbolDetail::kLines; }
};

}  // namespace xpu
