#include "record/options.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr char kSeeHelp[] = "xpu-record --help lists the options";

Error UsageError(std::string message) {
  return Error{ErrorKind::kUsage, std::move(message), kSeeHelp};
}

// Choices as the command line has them.
struct Words {
  std::string call_graph = "auto";
  std::string launch_stacks = "auto";
  std::string graph_trace = "graph";
  std::string symbols = "slice";
  std::vector<std::string> events;
  std::vector<std::pair<ProbeKind, std::string>> probes;
  uint64_t period = 0;  // 0: none was given
  bool cpu_only = false;
  bool gpu_only = false;
  bool no_inject = false;
  bool no_nvtx = false;
  bool yield_cupti = false;
};

void AddGpuOptions(CLI::App& app, RecordOptions& options, Words& words, CLI::Option* cpu_only) {
  auto* graph = app.add_option("--cuda-graph-trace", words.graph_trace,
                               "One record per replay of a CUDA graph, or one per node, under the "
                               "code that made it");
  graph->excludes(cpu_only)->check(CLI::IsMember({"graph", "node"}))->capture_default_str();
  app.add_option("--launch-stacks", words.launch_stacks,
                 "How the CPU stack of each GPU launch is taken")
      ->check(CLI::IsMember({"auto", "inline", "uprobe", "none"}))
      ->capture_default_str();
  auto* cupti = app.add_option("--cupti-lib", options.cupti_library, "The libcupti to use")
                    ->type_name("FILE")
                    ->excludes(cpu_only);
  auto* memory = app.add_flag("--gpu-memory", options.record_memory,
                              "Record allocations of GPU memory, with their stacks")
                     ->excludes(cpu_only);
  app.add_flag("--no-nvtx", words.no_nvtx, "Leave the ranges and marks of NVTX out")
      ->excludes(cpu_only);
  app.add_flag("--no-inject", words.no_inject,
               "Load nothing into the program; see launches by probes, without GPU times")
      ->excludes(cpu_only)
      ->excludes(cupti)
      ->excludes(memory)
      ->excludes(graph);
  app.add_flag("--yield-cupti", words.yield_cupti,
               "Leave CUPTI to the program's own profiler; implies --no-inject")
      ->excludes(cpu_only)
      ->excludes(cupti)
      ->excludes(memory)
      ->excludes(graph);
  app.add_option("--cuda-lib", options.cuda_libraries,
                 "A libcudart or libcuda to probe with --no-inject")
      ->type_name("FILE")
      ->allow_extra_args(false);  // one each, the rest is the program's
}

void AddEventOptions(CLI::App& app, RecordOptions& options, Words& words) {
  app.add_option("-e,--event", words.events, "Sample at these events instead of the CPU clock")
      ->type_name("LIST")
      ->allow_extra_args(false);  // one list each, the rest is the program's
  auto* frequency =
      app.add_option("-F,--freq", options.frequency_hz, "CPU samples per second and thread")
          ->check(CLI::Range(uint64_t{1}, uint64_t{100000}))
          ->capture_default_str();
  app.add_option("-c,--count", words.period, "A CPU sample every N events (of a clock: ns)")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{INT64_MAX}))
      ->excludes(frequency);
}

// A probe each time one of them is given.
void AddProbeOptions(CLI::App& app, Words& words) {
  const auto add = [&](const char* name, ProbeKind kind, const char* form, const char* help) {
    app.add_option_function<std::vector<std::string>>(
           name,
           [&words, kind](const std::vector<std::string>& probes) {
             for (const std::string& probe : probes) words.probes.emplace_back(kind, probe);
           },
           help)
        ->type_name(form)
        ->allow_extra_args(false);
  };
  add("--uprobe", ProbeKind::kUprobe, "LIB:FUNC[+OFF]", "Record each entry of a function");
  add("--uretprobe", ProbeKind::kUretprobe, "LIB:FUNC", "Record each return from one");
  add("--kprobe", ProbeKind::kKprobe, "FUNC[+OFF]", "The same in the kernel");
  add("--kretprobe", ProbeKind::kKretprobe, "FUNC", "Likewise");
  add("--tracepoint", ProbeKind::kTracepoint, "CAT:NAME", "Record each pass of a tracepoint");
}

void AddOptions(CLI::App& app, RecordOptions& options, Words& words) {
  app.set_help_flag("-h,--help", "Print this and exit");
  app.set_version_flag("--version", "xpu-record " XPU_VERSION, "Print the version and exit");
  app.add_option("-o,--output", options.output,
                 "Capture to write, '-' for standard output; an existing file is kept as .old")
      ->capture_default_str();
  AddEventOptions(app, options, words);
  AddProbeOptions(app, words);
  auto* cpu = app.add_flag("--cpu-only", words.cpu_only,
                           "Record no GPU activity, load nothing into the "
                           "program");
  app.add_flag("--gpu-only", words.gpu_only, "Take no CPU samples")->excludes(cpu);
  AddGpuOptions(app, options, words, cpu);
  app.add_option(
         "--call-graph", words.call_graph,
         "How stacks are unwound: eh by the tables of .eh_frame, fp by frame pointers, auto "
         "eh where the kernel can")
      ->check(CLI::IsMember({"auto", "fp", "eh"}))
      ->capture_default_str();
  app.add_option("--symbols", words.symbols,
                 "What the capture keeps of the names of code: slice those of the functions that "
                 "occur, full their source lines and inlined functions too")
      ->check(CLI::IsMember({"slice", "full", "none"}))
      ->capture_default_str();
  auto* verbose = app.add_flag("-v,--verbose", options.verbose, "Say what is being done");
  app.add_flag("-q,--quiet", options.quiet, "Print errors only")->excludes(verbose);
  app.add_flag("--check", options.check, "Tell what works on this machine, record nothing");
}

CallGraphMode CallGraphOf(const std::string& word) {
  if (word == "fp") return CallGraphMode::kFramePointers;
  return word == "eh" ? CallGraphMode::kTables : CallGraphMode::kAuto;
}

LaunchStacks LaunchStacksOf(const std::string& word) {
  if (word == "none") return LaunchStacks::kNone;
  if (word == "inline") return LaunchStacks::kInline;
  return word == "uprobe" ? LaunchStacks::kUprobe : LaunchStacks::kAuto;
}

SymbolDetail SymbolsOf(const std::string& word) {
  if (word == "none") return SymbolDetail::kNone;
  return word == "full" ? SymbolDetail::kLines : SymbolDetail::kNames;
}

constexpr uint64_t kMinClockPeriodNs = 10'000;

Status TakeEvents(const Words& words, RecordOptions& options) {
  if (words.gpu_only && !words.events.empty()) {
    return UsageError("--gpu-only takes no CPU samples: it excludes --event");
  }
  if (!words.events.empty()) options.cpu_events.clear();
  for (const std::string& list : words.events) {
    XPU_ASSIGN_OR_RETURN(std::vector<CpuEvent> events, ParseCpuEvents(list));
    for (CpuEvent& event : events) options.cpu_events.push_back(std::move(event));
  }
  for (CpuEvent& event : options.cpu_events) {
    if (event.period == 0) event.period = words.period;
    // As --freq has a limit: a program that is sampled all the time does not get on.
    if (event.is_clock && event.period != 0 && event.period < kMinClockPeriodNs) {
      return UsageError(Format("{}: a sample every {} ns is too many, 10000 ns is the least",
                               event.name, event.period));
    }
  }
  return Ok();
}

// A return probe puts the kernel's trampoline in place of a return address, which a walk inside the
// program cannot look behind.
bool ReplacesReturns(const UserProbe& probe) { return probe.kind == ProbeKind::kUretprobe; }

Status TakeProbes(const Words& words, RecordOptions& options) {
  for (const auto& [kind, text] : words.probes) {
    XPU_ASSIGN_OR_RETURN(UserProbe probe, ParseUserProbe(kind, text));
    options.probes.push_back(std::move(probe));
  }
  const bool is_auto = options.launch_stacks == LaunchStacks::kAuto;
  if (is_auto && std::any_of(options.probes.begin(), options.probes.end(), ReplacesReturns)) {
    options.launch_stacks = LaunchStacks::kUprobe;
  }
  return Ok();
}

Status TakeWords(const Words& words, RecordOptions& options) {
  options.record_cpu = !words.gpu_only;
  options.record_gpu = !words.cpu_only;
  options.inject = !words.no_inject && !words.yield_cupti;
  options.record_nvtx = !words.no_nvtx;
  options.call_graph = CallGraphOf(words.call_graph);
  options.launch_stacks = LaunchStacksOf(words.launch_stacks);
  options.symbols = SymbolsOf(words.symbols);
  options.graph_trace =
      words.graph_trace == "node" ? GraphTraceMode::kNode : GraphTraceMode::kGraph;
  XPU_RETURN_IF_ERROR(TakeEvents(words, options));
  XPU_RETURN_IF_ERROR(TakeProbes(words, options));
  if (options.inject && !options.cuda_libraries.empty()) {
    return UsageError("--cuda-lib names what --no-inject probes; give both");
  }
  if (!options.inject && options.launch_stacks == LaunchStacks::kNone) {
    return UsageError(
        "--no-inject sees launches by their stacks: --launch-stacks=none leaves nothing");
  }
  return Ok();
}

// What CLI11 left over: the target, with or without "--" before it.
Status TakeCommand(std::vector<std::string> rest, RecordOptions& options) {
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().starts_with("-") && rest.front() != "-") {
    return UsageError(Format("unknown option: {}", rest.front()));
  }
  if (options.check) {
    if (!rest.empty()) return UsageError("--check takes no program");
    return Ok();
  }
  if (rest.empty() || rest.front().empty()) return UsageError("no program to record");
  options.command = std::move(rest);
  return Ok();
}

}  // namespace

Result<ParsedCommandLine> ParseCommandLine(int argc, const char* const* argv) {
  ParsedCommandLine parsed;
  RecordOptions& options = parsed.options;
  Words words;

  CLI::App app("Records a program's CPU samples and GPU activity into a capture.", "xpu-record");
  app.prefix_command();
  app.get_formatter()->label("OPTIONS", "options] [--] program [arguments");
  AddOptions(app, options, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    parsed.answer = app.help();
    return parsed;
  } catch (const CLI::CallForVersion& version) {
    parsed.answer = std::string(version.what()) + "\n";
    return parsed;
  } catch (const CLI::ParseError& error) {
    return UsageError(error.what());
  }

  std::vector<std::string> rest = app.remaining();
  const auto own = static_cast<size_t>(argc) - rest.size();
  options.own_arguments.assign(argv + (argc > 0 ? 1 : 0), argv + own);
  XPU_RETURN_IF_ERROR(TakeWords(words, options));
  XPU_RETURN_IF_ERROR(TakeCommand(std::move(rest), options));
  return parsed;
}

}  // namespace xpu
