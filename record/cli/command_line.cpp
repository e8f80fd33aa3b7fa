#include "record/cli/command_line.h"

#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "format/base/number.h"
#include "format/base/text.h"
#include "record/cli/help.h"
#include "record/cli/help_groups.h"
#include "record/cli/metric_options.h"
#include "record/cli/other_tool_commands.h"
#include "record/cli/other_tool_options.h"
#include "record/cli/version.h"

namespace xpu {
namespace {

constexpr char kSeeHelp[] = "xpu-record --help lists the options";

Error UsageError(std::string message, std::string hint) {
  return Error{ErrorKind::kUsage, std::move(message), std::move(hint)};
}

Error UsageError(std::string message) {
  return Error{ErrorKind::kUsage, std::move(message), kSeeHelp};
}

// Option values as written on the command line, before they are parsed.
struct Words {
  std::string call_graph = "auto";
  std::string launch_stacks = "auto";
  std::string graph_trace;
  std::string symbols;  // empty: what the others need
  std::string sources = "none";
  std::string format = "text";
  std::vector<std::string> events;
  std::vector<std::pair<ProbeKind, std::string>> probes;
  uint64_t period = 0;  // 0: not given
  std::string delay;
  std::string every;
  std::string window;
  std::string duration;
  std::string off_cpu_min;
  std::vector<std::string> controls;
  std::string capture_range;
  std::string rotate_size;
  std::string max_size;
  std::string output_buffer;
  std::vector<std::string> pids;
  std::vector<std::string> labels;  // kept by the recorder's own arguments, which are recorded
  bool cpu_only = false;
  bool gpu_only = false;
  bool attach = false;
  bool no_attach = false;
  bool no_inject = false;
  bool no_nvtx = false;
  bool no_python = false;
  bool yield_cupti = false;
  uint64_t gpu_sample_period = 0;  // 0: not given
  std::string gpu_sample_buffer;
};

void AddGpuOptions(CLI::App& app, RecordOptions& options, Words& words, CLI::Option* cpu_only) {
  auto* graph = app.add_option("--cuda-graph-trace", words.graph_trace);
  graph->excludes(cpu_only)->check(CLI::IsMember({"graph", "node"}));
  app.add_option("--launch-stacks", words.launch_stacks)
      ->check(CLI::IsMember({"auto", "inline", "uprobe", "none"}));
  auto* cupti = app.add_option("--cupti-lib", options.cupti_library);
  cupti->type_name("FILE")->excludes(cpu_only);
  auto* memory = app.add_flag("--gpu-memory", options.record_memory)->excludes(cpu_only);
  auto* samples = app.add_flag("--gpu-samples", options.gpu_samples.is_on)->excludes(cpu_only);
  app.add_option("--gpu-sample-period", words.gpu_sample_period)->type_name("N")->needs(samples);
  app.add_option("--gpu-sample-buffer", words.gpu_sample_buffer)->type_name("SIZE")->needs(samples);
  app.add_flag("--no-nvtx", words.no_nvtx)->excludes(cpu_only);
  app.add_flag("--no-python", words.no_python);
  for (auto* without_library : {app.add_flag("--no-inject", words.no_inject),
                                app.add_flag("--yield-cupti", words.yield_cupti)}) {
    without_library->excludes(cpu_only)->excludes(cupti)->excludes(memory)->excludes(graph);
    without_library->excludes(samples);
  }
  app.add_option("--cuda-lib", options.cuda_libraries)
      ->type_name("FILE")
      ->allow_extra_args(false);  // one value each; the rest belongs to the program
}

void AddEventOptions(CLI::App& app, RecordOptions& options, Words& words) {
  app.add_option("-e,--event", words.events)
      ->type_name("{" + KnownCpuEvents() + "},...")
      ->allow_extra_args(false);  // one list each; the rest belongs to the program
  auto* frequency = app.add_option("-F,--freq", options.frequency_hz);
  frequency->type_name("HZ")->check(CLI::Range(uint64_t{1}, uint64_t{100000}));
  app.add_option("-c,--count", words.period)
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{INT64_MAX}))
      ->excludes(frequency);
}

// Adds a probe each time one of these options is given.
void AddProbeOptions(CLI::App& app, Words& words) {
  const auto add = [&](const char* name, ProbeKind kind, const char* form) {
    app.add_option_function<std::vector<std::string>>(
           name,
           [&words, kind](const std::vector<std::string>& probes) {
             for (const std::string& probe : probes) words.probes.emplace_back(kind, probe);
           })
        ->type_name(form)
        ->allow_extra_args(false);
  };
  add("--uprobe", ProbeKind::kUprobe, "LIB:FUNC[+OFF]");
  add("--uretprobe", ProbeKind::kUretprobe, "LIB:FUNC");
  add("--kprobe", ProbeKind::kKprobe, "FUNC[+OFF]");
  add("--kretprobe", ProbeKind::kKretprobe, "FUNC");
  add("--tracepoint", ProbeKind::kTracepoint, "CAT:NAME");
}

void AddControlOptions(CLI::App& app, RecordOptions& options, Words& words) {
  app.add_option("-p,--pid", words.pids)->type_name("PID,...")->allow_extra_args(false);
  app.add_flag("--no-attach", words.no_attach);
  app.add_flag("--attach", words.attach);
  auto* user = app.add_option("--user", options.user)->type_name("USER");
  app.add_flag("--allow-new-privs", options.allow_new_privileges)->needs(user);
  app.add_flag("--keep-fds", options.keep_descriptors)->needs(user);
  app.add_flag("-a,--all", options.whole_system);
  app.add_option("-d,--duration", words.duration)->type_name("TIME");
  app.add_option("-D,--delay", words.delay)->type_name("TIME");
  app.add_option("--every", words.every)->type_name("TIME");
  app.add_option("--window", words.window)->type_name("TIME");
  app.add_option("--control", words.controls)->type_name("{signal,fifo:}")->allow_extra_args(false);
  app.add_option("--capture-range", words.capture_range)->type_name("{cudaProfilerApi,nvtx:}");
}

void AddOutputOptions(CLI::App& app, RecordOptions& options, Words& words) {
  app.add_option("-o,--output", options.output)->type_name("FILE");
  auto* rotate = app.add_option("--rotate-size", words.rotate_size)->type_name("SIZE");
  app.add_option("--rotate-keep", options.output_options.rotate_keep)
      ->type_name("N")
      ->check(CLI::Range(OutputOptions::kLeastKept, uint32_t{INT32_MAX}))
      ->needs(rotate);
  app.add_option("--max-size", words.max_size)->type_name("SIZE");
  app.add_option("--label", words.labels)->type_name("KEY=VALUE")->allow_extra_args(false);
  app.add_option("--output-buffer", words.output_buffer)->type_name("SIZE");
}

// An empty value comes from a variable that a script forgot to set: `--user "$SERVICE"` must not
// run as root then.
void RefuseEmptyValues(CLI::App& app) {
  const auto problem = [](const std::string& value) { return value.empty() ? "is empty" : ""; };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->check(problem);
  }
}

// The options that kHelpGroups describes. Completion in shells depends on the types of their
// values.
void AddOptions(CLI::App& app, RecordOptions& options, Words& words) {
  app.set_help_flag("-h,--help");
  app.set_version_flag("--version", "");
  AddOutputOptions(app, options, words);
  AddEventOptions(app, options, words);
  auto* off_cpu = app.add_flag("--off-cpu", options.record_off_cpu);
  app.add_option("--off-cpu-min", words.off_cpu_min)->type_name("TIME")->needs(off_cpu);
  AddProbeOptions(app, words);
  AddControlOptions(app, options, words);
  auto* cpu = app.add_flag("--cpu-only", words.cpu_only);
  app.add_flag("--gpu-only", words.gpu_only)->excludes(cpu);
  AddGpuOptions(app, options, words, cpu);
  AddMetricOptions(app, options);
  app.add_option("--call-graph", words.call_graph)->check(CLI::IsMember({"auto", "fp", "eh"}));
  app.add_option("--symbols", words.symbols)->check(CLI::IsMember({"slice", "full", "none"}));
  app.add_option("--sources", words.sources)->check(CLI::IsMember({"none", "hit"}));
  auto* verbose = app.add_flag("-v,--verbose", options.verbose);
  app.add_flag("-q,--quiet", options.quiet)->excludes(verbose);
  auto* check = app.add_flag("--check", options.check);
  app.add_option("--format", words.format)->needs(check)->check(CLI::IsMember({"text", "json"}));
  RefuseEmptyValues(app);
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

Status SetEvents(const Words& words, RecordOptions& options) {
  if (words.gpu_only && !words.events.empty()) {
    return UsageError("--gpu-only takes no CPU samples and cannot be combined with --event");
  }
  if (!words.events.empty()) options.cpu_events.clear();
  for (const std::string& list : words.events) {
    XPU_ASSIGN_OR_RETURN(std::vector<CpuEvent> events, ParseCpuEvents(list));
    for (CpuEvent& event : events) options.cpu_events.push_back(std::move(event));
  }
  for (CpuEvent& event : options.cpu_events) {
    if (event.period == 0) event.period = words.period;
    // Limited as --freq is: a program that is sampled all the time makes no progress.
    if (event.is_clock && event.period != 0 && event.period < kMinClockPeriodNs) {
      return UsageError(Format("{}: a sample every {} ns is too often; the minimum is 10000 ns",
                               event.name, event.period));
    }
  }
  return CheckNoneTwice(options.cpu_events);
}

Status SetProbes(const Words& words, RecordOptions& options) {
  for (const auto& [kind, text] : words.probes) {
    XPU_ASSIGN_OR_RETURN(UserProbe probe, ParseUserProbe(kind, text));
    options.probes.push_back(std::move(probe));
  }
  XPU_RETURN_IF_ERROR(CheckNoneTwice(options.probes));
  // A walk inside the program cannot pass a return address that a probe has replaced.
  if (options.launch_stacks == LaunchStacks::kAuto && ReplacesReturns(options.probes)) {
    options.launch_stacks = LaunchStacks::kUprobe;
  }
  return Ok();
}

// perf counts milliseconds. Few users wait for more than a minute, and those write seconds.
std::string NoteOfDelay(const std::string& delay) {
  const auto seconds = ParseNumber<uint64_t>(delay);
  if (!seconds || *seconds < 60) return {};
  return Format(
      "--delay: the recording starts after {} seconds\nhint: for milliseconds, as in perf: -D "
      "{}ms; -D {}s avoids this note",
      delay, delay, delay);
}

Status SetWindows(const Words& words, ControlOptions& control) {
  if (words.every.empty() && words.window.empty()) return Ok();
  if (words.every.empty() || words.window.empty()) {
    return UsageError("--every and --window belong together",
                      "a tenth of a second in every minute: --every 60s --window 100ms");
  }
  XPU_ASSIGN_OR_RETURN(control.every_ns, ParseDuration("--every", words.every));
  XPU_ASSIGN_OR_RETURN(control.window_ns, ParseDuration("--window", words.window));
  if (control.window_ns == 0 || control.every_ns <= control.window_ns) {
    return UsageError("--window: must be greater than 0 and less than --every",
                      "to record all the time, leave out both");
  }
  if (!words.delay.empty() || !words.controls.empty() || !words.capture_range.empty()) {
    return UsageError(
        "--every cannot be combined with --delay, --control or --capture-range, which also say "
        "when to record");
  }
  if (control.duration_ns && *control.duration_ns < control.window_ns) {
    return UsageError("--duration: must not be less than --window",
                      "it limits the whole recording");
  }
  return Ok();
}

Status SetControl(const Words& words, ControlOptions& control) {
  control.waits_for_enable = words.delay == "-1";
  if (!words.delay.empty() && !control.waits_for_enable) {
    XPU_ASSIGN_OR_RETURN(control.delay_ns, ParseDuration("--delay", words.delay));
    control.note = NoteOfDelay(words.delay);
  }
  if (!words.duration.empty()) {
    XPU_ASSIGN_OR_RETURN(control.duration_ns, ParseDuration("--duration", words.duration));
    if (*control.duration_ns == 0) return UsageError("--duration: must be greater than 0");
  }
  XPU_RETURN_IF_ERROR(SetWindows(words, control));
  for (const std::string& text : words.controls) {
    XPU_RETURN_IF_ERROR(ParseControl(text, control));
  }
  if (control.waits_for_enable && control.fifo.empty() && !control.by_signal) {
    return UsageError("--delay=-1 needs --control to start the recording");
  }
  if (words.capture_range.empty()) return Ok();
  XPU_ASSIGN_OR_RETURN(control.capture_range, ParseCaptureRange(words.capture_range));
  if (words.cpu_only || words.no_inject || words.yield_cupti) {
    return UsageError(
        "--capture-range needs the injected library and cannot be combined with --cpu-only, "
        "--no-inject or --yield-cupti");
  }
  if (words.no_nvtx && !control.capture_range->is_profiler_api) {
    return UsageError("--no-nvtx leaves out the ranges that --capture-range waits for");
  }
  return Ok();
}

Status CheckLabels(const Words& words) {
  for (const std::string& label : words.labels) {
    const size_t key_bytes = label.find('=');
    if (key_bytes != 0 && key_bytes != std::string::npos) continue;
    return Error{ErrorKind::kUsage, Format("--label: '{}' is not KEY=VALUE", label),
                 "for example: --label commit=$(git rev-parse HEAD)"};
  }
  return Ok();
}

Status SetOutput(const Words& words, RecordOptions& options) {
  XPU_RETURN_IF_ERROR(CheckLabels(words));
  OutputOptions& output = options.output_options;
  if (!words.rotate_size.empty()) {
    XPU_ASSIGN_OR_RETURN(output.rotate_bytes,
                         ParseSize("--rotate-size", words.rotate_size, OutputOptions::kLeastBytes));
    if (options.output == "-") {
      return Error{ErrorKind::kUsage, "--rotate-size: standard output cannot be rotated",
                   "name a file with -o: the parts of x.xpu are x.0001.xpu, x.0002.xpu, ..."};
    }
  }
  if (!words.max_size.empty()) {
    XPU_ASSIGN_OR_RETURN(options.control.max_bytes,
                         ParseSize("--max-size", words.max_size, OutputOptions::kLeastBytes));
  }
  if (!words.output_buffer.empty()) {
    XPU_ASSIGN_OR_RETURN(output.buffer_bytes, ParseSize("--output-buffer", words.output_buffer,
                                                        OutputOptions::kLeastBufferBytes));
  }
  return Ok();
}

// Names an option that only the injected library can serve; empty if there is none.
std::string_view NeedsLibrary(const Words& words, const RecordOptions& options) {
  if (words.gpu_only) return "--gpu-only";
  if (!words.capture_range.empty()) return "--capture-range";
  if (options.record_memory) return "--gpu-memory";
  if (options.gpu_samples.is_on) return "--gpu-samples";
  if (words.launch_stacks == "inline") return "--launch-stacks=inline";
  return words.graph_trace == "node" ? "--cuda-graph-trace" : "";
}

// Refuses what a library that is loaded while the program runs cannot do.
Status CheckAttach(const Words& words, const RecordOptions& options) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{ErrorKind::kUsage,
                 Format("{} does not work in a process that is already running: {}", option, why),
                 "start the program under xpu-record"};
  };
  if (options.gpu_samples.is_on) {
    return refuse("--gpu-samples", "sampling begins where the program creates its CUDA context");
  }
  if (words.launch_stacks == "uprobe") {
    return refuse("--launch-stacks=uprobe", "the library that is loaded there takes the stacks");
  }
  const std::optional<CaptureRange>& range = options.control.capture_range;
  if (range && !range->is_profiler_api) {
    return refuse("--capture-range=nvtx",
                  "NVTX looks for a tool only once, at the program's first NVTX call");
  }
  return Ok();
}

Status CheckAttachFlag(const Words& words, const RecordOptions& options) {
  if (options.pids.empty() && !options.whole_system) return UsageError("--attach needs -a");
  const char* other = words.no_attach       ? "--no-attach"
                      : !options.record_gpu ? "--cpu-only"
                      : words.yield_cupti   ? "--yield-cupti"
                      : !options.inject     ? "--no-inject"
                                            : nullptr;
  if (other == nullptr) return Ok();
  return UsageError(Format("--attach cannot be combined with {}", other));
}

// Determines what to record. Called after the command has been parsed.
Status SetScope(const Words& words, RecordOptions& options) {
  for (const std::string& list : words.pids) {
    XPU_ASSIGN_OR_RETURN(const std::vector<pid_t> pids, ParsePids(list));
    options.pids.insert(options.pids.end(), pids.begin(), pids.end());
  }
  const bool has_pids = !options.pids.empty();
  if (has_pids && options.whole_system)
    return UsageError("-a records all processes and cannot be combined with -p");
  if (words.no_attach && !has_pids) return UsageError("--no-attach needs -p");
  if (words.attach) XPU_RETURN_IF_ERROR(CheckAttachFlag(words, options));
  if (!has_pids && !options.whole_system) return Ok();
  const bool injects = options.whole_system && !options.command.empty() && !words.attach;
  if (injects || !options.inject) return Ok();
  options.attach = (has_pids || words.attach) && !words.no_attach && options.record_gpu;
  if (options.attach) {
    // A whole replay is timed by events there, which shows less of what other threads do.
    if (words.graph_trace != "graph") options.graph_trace = GraphTraceMode::kNode;
    options.record_nvtx = false;
    return CheckAttach(words, options);
  }
  if (const std::string_view option = NeedsLibrary(words, options); !option.empty()) {
    return Error{ErrorKind::kUsage,
                 Format("{} needs the injected library, which {} does not load into processes that "
                        "are already running",
                        option, has_pids ? "--no-attach" : "-a"),
                 has_pids ? "leave out --no-attach, or start the program under xpu-record"
                          : "give --attach, or the process with -p, or start the program under "
                            "xpu-record"};
  }
  options.gpu_out_of_reach = options.record_gpu && !words.no_attach;
  options.record_gpu = false;
  return Ok();
}

Status SetOptions(const Words& words, RecordOptions& options) {
  options.record_cpu = !words.gpu_only;
  options.record_gpu = !words.cpu_only;
  options.inject = !words.no_inject && !words.yield_cupti;
  options.record_nvtx = !words.no_nvtx;
  options.walk_python = !words.no_python;
  options.call_graph = CallGraphOf(words.call_graph);
  options.launch_stacks = LaunchStacksOf(words.launch_stacks);
  options.store_sources = words.sources == "hit";
  options.check_as_json = words.format == "json";
  const std::string usual = options.store_sources ? "full" : "slice";
  options.symbols = SymbolsOf(words.symbols.empty() ? usual : words.symbols);
  options.graph_trace =
      words.graph_trace == "node" ? GraphTraceMode::kNode : GraphTraceMode::kGraph;
  XPU_RETURN_IF_ERROR(SetEvents(words, options));
  if (!words.off_cpu_min.empty()) {
    XPU_ASSIGN_OR_RETURN(options.off_cpu_min_ns, ParseDuration("--off-cpu-min", words.off_cpu_min));
  }
  options.gpu_metrics.cupti_library = options.cupti_library;
  XPU_RETURN_IF_ERROR(ParseGpuMetrics(options.gpu_metrics));
  XPU_RETURN_IF_ERROR(SetProbes(words, options));
  XPU_RETURN_IF_ERROR(SetControl(words, options.control));
  XPU_RETURN_IF_ERROR(SetOutput(words, options));
  XPU_RETURN_IF_ERROR(options.gpu_samples.Set(words.gpu_sample_period, words.gpu_sample_buffer));
  if (options.inject && !options.cuda_libraries.empty()) {
    return UsageError("--cuda-lib needs --no-inject");
  }
  if (!options.inject && options.launch_stacks == LaunchStacks::kNone) {
    return UsageError(
        "--no-inject records only launch stacks and cannot be combined with --launch-stacks=none");
  }
  return Ok();
}

// Of the words before the program that CLI11 did not recognize.
bool IsOption(std::string_view word) {
  return word.starts_with("-") && word != "-" && word != "--";
}

// Takes the target from what CLI11 did not recognize, with or without "--" before it.
Status SetCommand(const Words& words, std::vector<std::string> rest, RecordOptions& options) {
  if (!rest.empty() && rest.front() == "--") rest.erase(rest.begin());
  if (options.check && !rest.empty()) return UsageError("--check takes no program");
  if (options.check || options.list_gpu_metrics) return Ok();
  const bool needs_none = options.whole_system || !words.pids.empty();
  if (rest.empty() && !options.user.empty()) {
    return UsageError("--user needs a program to run");
  }
  if (rest.empty() && needs_none) return Ok();
  if (rest.empty() || rest.front().empty()) return UsageError("no program to record");
  if (auto mistake = CheckOtherToolCommand(rest, RecordCommandLineOptions()))
    return *std::move(mistake);
  options.command = std::move(rest);
  return Ok();
}

}  // namespace

Result<ParsedCommandLine> ParseCommandLine(int argc, const char* const* argv) {
  ParsedCommandLine parsed;
  RecordOptions& options = parsed.options;
  Words words;

  CLI::App app("", "xpu-record");
  app.prefix_command();
  AddOptions(app, options, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    XPU_ASSIGN_OR_RETURN(parsed.answer, HelpOn(HelpTopic(argc, argv), kHelpText, kHelpGroups));
    return parsed;
  } catch (const CLI::CallForVersion&) {
    parsed.answer = RecordVersionText();
    return parsed;
  } catch (const CLI::ParseError& error) {
    const std::string what = error.what();
    return ParseMistake(app, what, what.starts_with("--call-graph: dwarf") ? kDwarfHint : kSeeHelp);
  }

  std::vector<std::string> rest = app.remaining();
  const auto own = static_cast<size_t>(argc) - rest.size();
  options.own_arguments.assign(argv + (argc > 0 ? 1 : 0), argv + own);
  if (!rest.empty() && IsOption(rest.front())) {
    return UnknownOption(app, rest.front(), kSeeHelp, kOtherToolOptions);
  }
  XPU_RETURN_IF_ERROR(SetOptions(words, options));
  XPU_RETURN_IF_ERROR(SetCommand(words, std::move(rest), options));
  XPU_RETURN_IF_ERROR(SetScope(words, options));
  return parsed;
}

std::vector<CommandLineOption> RecordCommandLineOptions() {
  RecordOptions options;
  Words words;
  CLI::App app;
  AddOptions(app, options, words);
  return WithHelpGroups(CommandLineOptionsOf(app), kHelpGroups);
}

}  // namespace xpu
