#include "record/options/options.h"

#include <sstream>

#include <gtest/gtest.h>

#include "record/cli/command_line.h"

namespace xpu {
namespace {

Result<ParsedCommandLine> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "xpu-record");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

RecordOptions Good(std::vector<const char*> arguments) {
  auto parsed = Parse(std::move(arguments));
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_FALSE(parsed->answer.has_value());
  return parsed->options;
}

std::string Bad(std::vector<const char*> arguments) {
  auto parsed = Parse(std::move(arguments));
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(parsed.error().hint, "xpu-record --help lists the options");
  return parsed.error().message;
}

using Words = std::vector<std::string>;

TEST(Options, Defaults) {
  const RecordOptions options = Good({"app"});
  EXPECT_EQ(options.output, "capture.xpu");
  EXPECT_EQ(options.frequency_hz, 99u);
  EXPECT_TRUE(options.record_cpu);
  EXPECT_TRUE(options.record_gpu);
  EXPECT_EQ(options.launch_stacks, LaunchStacks::kAuto);
  EXPECT_EQ(options.cupti_library, "");
  EXPECT_FALSE(options.verbose);
  EXPECT_FALSE(options.quiet);
  EXPECT_FALSE(options.check);
  EXPECT_EQ(options.command, Words{"app"});
  EXPECT_EQ(options.own_arguments, Words{});
}

TEST(Options, RepeatedOption) {
  const auto parsed = Parse({"-o", "-", "--cpu-only", "-o", "x.xpu", "app"});
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message, "--output: given twice");
  EXPECT_EQ(parsed.error().hint, "keep only one of - and x.xpu");
  EXPECT_TRUE(
      Good({"--cuda-lib", "a", "--no-inject", "--cuda-lib", "b", "-v", "-v", "app"}).verbose);
}

TEST(Options, All) {
  const RecordOptions options = Good({"-o", "x.xpu", "-F", "499", "--gpu-only", "--cupti-lib",
                                      "/lib/c.so", "--launch-stacks=none", "-v", "app", "-q"});
  EXPECT_EQ(options.output, "x.xpu");
  EXPECT_EQ(options.frequency_hz, 499u);
  EXPECT_FALSE(options.record_cpu);
  EXPECT_TRUE(options.record_gpu);
  EXPECT_EQ(options.cupti_library, "/lib/c.so");
  EXPECT_EQ(options.launch_stacks, LaunchStacks::kNone);
  EXPECT_TRUE(options.verbose);
  EXPECT_FALSE(options.quiet);
  EXPECT_EQ(options.command, (Words{"app", "-q"}));
  EXPECT_EQ(options.own_arguments, (Words{"-o", "x.xpu", "-F", "499", "--gpu-only", "--cupti-lib",
                                          "/lib/c.so", "--launch-stacks=none", "-v"}));
  EXPECT_FALSE(Good({"--cpu-only", "-q", "app"}).record_gpu);
}

TEST(Options, GraphAndProbeOptions) {
  EXPECT_EQ(Good({"app"}).graph_trace, GraphTraceMode::kGraph);
  EXPECT_EQ(Good({"--cuda-graph-trace=node", "app"}).graph_trace, GraphTraceMode::kNode);
  EXPECT_TRUE(Good({"app"}).inject);
  EXPECT_FALSE(Good({"--yield-cupti", "app"}).inject);
  const RecordOptions options =
      Good({"--no-inject", "--cuda-lib", "/a.so", "--cuda-lib=/b.so", "app", "--cuda-lib"});
  EXPECT_FALSE(options.inject);
  EXPECT_EQ(options.cuda_libraries, (Words{"/a.so", "/b.so"}));
  EXPECT_EQ(options.command, (Words{"app", "--cuda-lib"}));
}

TEST(Options, InvalidGraphAndProbeOptionsAreRefused) {
  EXPECT_NE(Bad({"--cuda-graph-trace=nodes", "app"}).find("nodes"), std::string::npos);
  EXPECT_NE(Bad({"--cuda-lib", "/a.so", "app"}).find("--no-inject"), std::string::npos);
  EXPECT_NE(Bad({"--no-inject", "--cpu-only", "app"}).find("--cpu-only"), std::string::npos);
  EXPECT_NE(Bad({"--yield-cupti", "--cupti-lib", "/c.so", "app"}).find("--cupti-lib"),
            std::string::npos);
  EXPECT_NE(Bad({"--no-inject", "--launch-stacks=none", "app"}).find("--launch-stacks=none"),
            std::string::npos);
}

TEST(Options, AClockHasAShortestPeriod) {
  EXPECT_EQ(Good({"-c", "10000", "app"}).cpu_events[0].period, 10'000u);
  EXPECT_NE(Bad({"-c", "9999", "app"}).find("10000 ns"), std::string::npos);
  EXPECT_NE(Bad({"-e", "task-clock/period=1/", "app"}).find("task-clock"), std::string::npos);
  EXPECT_EQ(Good({"-e", "page-faults", "-c", "1", "app"}).cpu_events[0].period, 1u);
}

TEST(Options, MemoryAndNvtx) {
  EXPECT_FALSE(Good({"app"}).record_memory);
  EXPECT_TRUE(Good({"--gpu-memory", "app"}).record_memory);
  EXPECT_TRUE(Good({"app"}).record_nvtx);
  EXPECT_FALSE(Good({"--no-nvtx", "app"}).record_nvtx);
  EXPECT_NE(Bad({"--cpu-only", "--gpu-memory", "app"}).find("--cpu-only"), std::string::npos);
}

TEST(Options, Sources) {
  EXPECT_FALSE(Good({"app"}).store_sources);
  EXPECT_FALSE(Good({"--sources=none", "app"}).store_sources);
  EXPECT_TRUE(Good({"--sources=hit", "app"}).store_sources);
  EXPECT_NE(Bad({"--sources=all", "app"}).find("--sources"), std::string::npos);
}

TEST(Options, TheProgramKeepsItsOwnOptions) {
  EXPECT_EQ(Good({"--", "app", "-o", "y"}).command, (Words{"app", "-o", "y"}));
  EXPECT_EQ(Good({"app", "--", "-F", "1"}).command, (Words{"app", "--", "-F", "1"}));
  EXPECT_EQ(Good({"--", "--odd"}).command, Words{"--odd"});
  EXPECT_EQ(Good({"app", "--version", "--help"}).command, (Words{"app", "--version", "--help"}));
  EXPECT_EQ(Good({"-q", "--", "app", ""}).command, (Words{"app", ""}));
}

TEST(Options, UnknownOptionsGetAHint) {
  const auto hint = [](const char* option) {
    const char* const arguments[] = {"xpu-record", option, "app"};
    return ParseCommandLine(3, arguments).error().hint;
  };
  EXPECT_EQ(hint("--outpt=x"), "did you mean --output?");
  EXPECT_EQ(hint("--cupti"), "did you mean --cupti-lib, --yield-cupti?");
  EXPECT_EQ(hint("--bogus"), "xpu-record --help lists the options");
  EXPECT_EQ(hint("-Z"), "xpu-record --help lists the options");
}

TEST(Options, OptionsOfOtherProfilersGetAHint) {
  const auto hint = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "xpu-record");
    return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data()).error().hint;
  };
  EXPECT_EQ(
      hint({"-g", "app"}),
      "omit it: stacks are always recorded; --call-graph=fp or eh selects how they are unwound");
  EXPECT_EQ(hint({"--frequency=99", "app"}), "-F, --freq HZ: samples per second");
  EXPECT_EQ(hint({"-t", "cuda", "app"}),
            "CUDA and NVTX are recorded unless --cpu-only or --no-nvtx leave them out");
  EXPECT_NE(hint({"--call-graph", "dwarf", "app"}).find("--call-graph=eh"), std::string::npos);
  EXPECT_EQ(hint({"--call-graph", "lbr", "app"}), "xpu-record --help lists the options");
}

// What to type is said whole: an option of theirs would be the next mistake.
TEST(Options, CommandsOfOtherProfilersGetAHint) {
  const auto hint = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "xpu-record");
    const auto parsed = ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
    EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
    return parsed.error().hint.substr(parsed.error().hint.find(": ") + 2);
  };
  EXPECT_EQ(hint({"profile", "./app"}), "xpu-record -- ./app");
  EXPECT_EQ(hint({"record", "-g", "./x", "-n"}), "xpu-record -- ./x -n");
  EXPECT_EQ(hint({"record", "-F", "500", "--call-graph=fp", "-o", "a b", "--", "./x"}),
            "xpu-record -F 500 --call-graph=fp -o 'a b' -- ./x");
  EXPECT_EQ(hint({"record", "-t", "7", "-g", "./x"}), "xpu-record -- ./x");
  EXPECT_EQ(hint({"profile", "-t", "cuda", "--stats=true", "./x"}), "xpu-record -- ./x");
}

TEST(Options, ALongDelayWithoutAUnitIsNoted) {
  EXPECT_NE(Good({"-D", "500", "app"}).control.note.find("-D 500ms"), std::string::npos);
  EXPECT_EQ(Good({"-D", "500s", "app"}).control.note, "");
  EXPECT_EQ(Good({"-D", "5", "app"}).control.note, "");
}

TEST(Options, OwnArgumentsEndBeforeTheDashes) {
  EXPECT_EQ(Good({"-q", "--", "app"}).own_arguments, Words{"-q"});
}

TEST(Options, Refusals) {
  EXPECT_EQ(Bad({}), "no program to record");
  EXPECT_EQ(Bad({"--"}), "no program to record");
  EXPECT_EQ(Bad({""}), "no program to record");
  EXPECT_EQ(Bad({"--bogus", "app"}), "unknown option: --bogus");
  EXPECT_EQ(Bad({"-p"}), "--pid needs a value");
  EXPECT_EQ(Bad({"--gpu-metrics=x", "app"}), "--gpu-metrics takes no value");
  EXPECT_EQ(Bad({"--gpu-sample-period", "x", "app"}), "--gpu-sample-period: 'x' is no valid value");
  EXPECT_EQ(Bad({"--check", "app"}), "--check takes no program");
  EXPECT_NE(Bad({"-F", "0", "app"}), "accepted");
  EXPECT_NE(Bad({"-F", "100001", "app"}), "accepted");
  EXPECT_NE(Bad({"-F", "99x", "app"}), "accepted");
  EXPECT_NE(Bad({"-F", "-1", "app"}), "accepted");
  EXPECT_NE(Bad({"--cpu-only", "--gpu-only", "app"}), "accepted");
  EXPECT_NE(Bad({"--cpu-only", "--cupti-lib", "x", "app"}), "accepted");
  EXPECT_NE(Bad({"-v", "-q", "app"}), "accepted");
  EXPECT_NE(Bad({"--launch-stacks=maybe", "app"}), "accepted");
  EXPECT_NE(Bad({"-o"}), "accepted");
}

TEST(Options, AnEmptyValueIsAMistake) {
  for (const char* option : {"--user", "-d", "-D", "--cupti-lib", "--capture-range", "-o",
                             "--rotate-size", "-e", "--uprobe", "--control"}) {
    EXPECT_NE(Bad({option, "", "--", "app"}).find("is empty"), std::string::npos) << option;
  }
  EXPECT_EQ(Good({"app", ""}).command, (Words{"app", ""}));
}

TEST(Options, LabelsAreKeptAmongTheArguments) {
  EXPECT_EQ(Good({"--label", "commit=1a2b", "--label=who=me", "--", "app"}).own_arguments,
            (Words{"--label", "commit=1a2b", "--label=who=me"}));
  for (const char* wrong : {"commit", "=1a2b"}) {
    auto parsed = Parse({"--label", wrong, "app"});
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().message, "--label: '" + std::string(wrong) + "' is not KEY=VALUE");
  }
}

TEST(Options, HelpAndVersionAreAnswers) {
  const std::string version = *Parse({"--version"})->answer;
  EXPECT_TRUE(version.starts_with("xpu-record 0.1.0\n")) << version;
  EXPECT_NE(version.find("\nformat     container 1, reader generation 1\n"), std::string::npos);
  EXPECT_NE(version.find("\nlibraries  libbpf "), std::string::npos);
  const std::string help = *Parse({"-h"})->answer;
  EXPECT_TRUE(help.starts_with("Usage: xpu-record [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"));
}

TEST(Options, HelpOfAGroup) {
  const std::string gpu = *Parse({"--help", "gpu"})->answer;
  EXPECT_TRUE(gpu.starts_with("GPU activity (--help gpu)\n  --gpu-only  ")) << gpu;
  EXPECT_EQ(gpu.find("--duration"), std::string::npos);
  EXPECT_EQ(*Parse({"-h", "gpu"})->answer, gpu);
  EXPECT_EQ(*Parse({"--help=gpu"})->answer, gpu);
  EXPECT_EQ(*Parse({"--help", "--check"})->answer, *Parse({"--help"})->answer);
  EXPECT_NE(Parse({"--help", "all"})->answer->find("\n" + gpu), std::string::npos);
  const auto unknown = Parse({"--help", "gpus"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().ToString(),
            "--help: unknown group 'gpus'\nhint: groups: control, cpu, gpu, output, general, all");
}

TEST(Options, HelpFitsAScreen) {
  std::istringstream help(*Parse({"--help"})->answer);
  int lines = 0;
  for (std::string line; std::getline(help, line); ++lines) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_LE(lines, 46);
}

TEST(Options, TargetsAndControl) {
  const RecordOptions defaults = Good({"app"});
  EXPECT_FALSE(defaults.control.CanPause());
  EXPECT_FALSE(defaults.control.CanEndEarly());
  const RecordOptions all = Good({"-d", "2s", "-D", "100ms", "--control", "signal", "--control",
                                  "fifo:a,b", "--capture-range", "nvtx:n@d", "app", "-p"});
  EXPECT_EQ(all.control.duration_ns, 2'000'000'000u);
  EXPECT_EQ(all.control.delay_ns, 100'000'000u);
  EXPECT_TRUE(all.control.by_signal);
  EXPECT_EQ(all.control.fifo, "a");
  EXPECT_EQ(all.control.capture_range->domain, "d");
  EXPECT_EQ(all.command, (Words{"app", "-p"}));
  EXPECT_TRUE(Good({"--delay=-1", "--control", "signal", "app"}).control.waits_for_enable);

  const RecordOptions pids = Good({"-p", "12,13", "--pid", "14"});
  EXPECT_EQ(pids.pids, (std::vector<pid_t>{12, 13, 14}));
  EXPECT_FALSE(pids.gpu_out_of_reach);
  EXPECT_FALSE(Good({"-a", "--cpu-only"}).gpu_out_of_reach);
  EXPECT_TRUE(Good({"-p", "12", "--no-inject"}).record_gpu);
  EXPECT_EQ(Good({"-p", "12", "sleep", "1"}).command, (Words{"sleep", "1"}));
  EXPECT_TRUE(Good({"-a"}).gpu_out_of_reach);
  EXPECT_TRUE(Good({"-a", "app"}).record_gpu);
  EXPECT_EQ(Bad({"-p", "12", "-a"}), "-a records all processes and cannot be combined with -p");
  EXPECT_EQ(Bad({"-d", "0", "app"}), "--duration: must be greater than 0");
  EXPECT_EQ(Bad({"--delay=-1", "app"}), "--delay=-1 needs --control to start the recording");
}

TEST(Options, RunningProcessesAreAttachedToUnlessDisabled) {
  const RecordOptions pids = Good({"-p", "12", "--gpu-only"});
  EXPECT_TRUE(pids.attach);
  EXPECT_TRUE(pids.record_gpu);
  EXPECT_FALSE(pids.record_nvtx);
  EXPECT_EQ(pids.graph_trace, GraphTraceMode::kNode);
  EXPECT_FALSE(Good({"app"}).attach);
  EXPECT_EQ(Good({"app"}).graph_trace, GraphTraceMode::kGraph);
  EXPECT_FALSE(Good({"-a", "app"}).attach);
  EXPECT_FALSE(Good({"-p", "12", "--no-inject"}).attach);
  for (const char* option : {"--no-attach", "--cpu-only"}) {
    const RecordOptions without = Good({"-p", "12", option});
    EXPECT_FALSE(without.attach || without.record_gpu || without.gpu_out_of_reach) << option;
  }
  EXPECT_TRUE(Good({"-p", "12", "--capture-range=cudaProfilerApi"}).attach);
  EXPECT_EQ(Bad({"--no-attach", "app"}), "--no-attach needs -p");
  for (const char* option : {"--launch-stacks=uprobe", "--capture-range=nvtx:a"}) {
    const auto parsed = Parse({"-p", "12", option});
    ASSERT_FALSE(parsed.ok()) << option;
    EXPECT_NE(parsed.error().message.find(" does not work in a process that is already running"),
              std::string::npos)
        << option;
  }
  EXPECT_EQ(Parse({"-p", "12", "--no-attach", "--gpu-memory"}).error().message,
            "--gpu-memory needs the injected library, which --no-attach does not load into "
            "processes that are already running");
}

TEST(Options, AllProcessesAreAttachedToOnlyWhenAsked) {
  const RecordOptions all = Good({"-a", "--attach"});
  EXPECT_TRUE(all.attach && all.record_gpu && !all.gpu_out_of_reach && !all.record_nvtx);
  EXPECT_EQ(all.graph_trace, GraphTraceMode::kNode);
  EXPECT_EQ(Good({"-p", "12", "--cuda-graph-trace=graph"}).graph_trace, GraphTraceMode::kGraph);
  EXPECT_TRUE(Good({"-a", "--attach", "sleep", "1"}).attach);
  EXPECT_TRUE(Good({"-a", "--attach", "--gpu-only"}).attach);
  EXPECT_TRUE(Good({"-p", "12", "--attach"}).attach);
  EXPECT_FALSE(Good({"-a"}).attach);
  EXPECT_EQ(Bad({"--attach", "app"}), "--attach needs -a");
  for (const char* option : {"--no-inject", "--yield-cupti", "--cpu-only"}) {
    EXPECT_EQ(Bad({"-a", "--attach", option}),
              std::string("--attach cannot be combined with ") + option);
  }
  EXPECT_EQ(Bad({"-p", "1", "--attach", "--no-attach"}),
            "--attach cannot be combined with --no-attach");
}

TEST(Options, CheckNeedsNoProgram) { EXPECT_TRUE(Good({"--check"}).check); }

TEST(Options, FormatIsThatOfCheck) {
  EXPECT_FALSE(Good({"--check"}).check_as_json);
  EXPECT_FALSE(Good({"--check", "--format", "text"}).check_as_json);
  EXPECT_TRUE(Good({"--check", "--format", "json"}).check_as_json);
  EXPECT_EQ(Bad({"--format", "json", "app"}), "--format requires --check");
}

TEST(Options, EventsAndTheirPeriods) {
  const RecordOptions options =
      Good({"-e", "cycles/period=7/,cs", "-e", "cpu-clock:u", "-c", "50000", "app"});
  ASSERT_EQ(options.cpu_events.size(), 3u);
  EXPECT_EQ(options.cpu_events[0].name, "cycles");
  EXPECT_EQ(options.cpu_events[0].period, 7u);
  EXPECT_EQ(options.cpu_events[1].name, "cs");
  EXPECT_EQ(options.cpu_events[1].period, 50'000u);
  EXPECT_EQ(options.cpu_events[2].name, "cpu-clock:u");
  EXPECT_EQ(options.command, Words{"app"});
  const RecordOptions others = Good({"app"});
  ASSERT_EQ(others.cpu_events.size(), 1u);
  EXPECT_EQ(others.cpu_events[0].name, "cpu-clock");
  EXPECT_EQ(others.cpu_events[0].period, 0u);
  EXPECT_EQ(Bad({"--gpu-only", "-e", "cs", "app"}),
            "--gpu-only takes no CPU samples and cannot be combined with --event");
  EXPECT_NE(Bad({"-c", "5", "-F", "99", "app"}), "accepted");
  EXPECT_NE(Bad({"-c", "0", "app"}), "accepted");
}

TEST(Options, ProbesInTheirOrderOfKinds) {
  const RecordOptions options =
      Good({"--uprobe", "libc:malloc", "--uprobe=./a:b+4", "--uretprobe", "libc:malloc", "--kprobe",
            "f", "--kretprobe", "f", "--tracepoint", "sched:sched_switch", "app", "x"});
  std::vector<std::string> probes;
  for (const UserProbe& probe : options.probes) probes.push_back(probe.Text());
  EXPECT_EQ(probes, (Words{"uprobe libc:malloc", "uprobe ./a:b+0x4", "uretprobe libc:malloc",
                           "kprobe f", "kretprobe f", "tracepoint sched:sched_switch"}));
  EXPECT_EQ(options.command, (Words{"app", "x"}));
}

}  // namespace
}  // namespace xpu
