#include "report/cli/options.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace xpu {
namespace {

Result<std::variant<ReportOptions, Help>> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "xpu-report");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

ReportOptions Good(std::vector<const char*> arguments) {
  auto parsed = Parse(std::move(arguments));
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? std::get<ReportOptions>(parsed.value()) : ReportOptions{};
}

std::string Bad(std::vector<const char*> arguments) {
  const auto parsed = Parse(std::move(arguments));
  EXPECT_FALSE(parsed.ok());
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
  return parsed.error().message;
}

TEST(Options, Defaults) {
  const ReportOptions options = Good({});
  EXPECT_EQ(options.captures, std::vector<std::string>{"capture.xpu"});
  EXPECT_EQ(options.output, "");
  EXPECT_EQ(options.view->option, "");
  EXPECT_EQ(options.tree.kernel_names, KernelNames::kFull);
}

TEST(Options, GraphStacksDeviceTagsStrict) {
  ReportOptions options = Good({"--folded", "--graph-stacks=creation", "--device-tags"});
  EXPECT_EQ(options.tree.paths.graph_stacks, GraphStacks::kCreation);
  EXPECT_TRUE(options.tree.device_tags);
  EXPECT_FALSE(options.strict);
  options = Good({"--top", "--graph-stacks", "launch", "--strict"});
  EXPECT_EQ(options.tree.paths.graph_stacks, GraphStacks::kLaunch);
  EXPECT_TRUE(options.strict);
  EXPECT_EQ(Good({}).tree.paths.graph_stacks, GraphStacks::kBoth);
  EXPECT_EQ(Bad({"--top", "--device-tags"}), "--device-tags needs --folded or --flamegraph");
  EXPECT_EQ(Bad({"--graph-stacks=x"}), "--graph-stacks: 'x' is not one of both, launch, creation");
}

TEST(Options, OptionsOfTablesMeanTables) {
  for (const auto& arguments : std::vector<std::vector<const char*>>{
           {"--table", "cuda_api_sum"}, {"--format=csv"}, {"-n", "3"}, {"--sort", "total"}}) {
    EXPECT_EQ(Good(arguments).view->option, "--top") << arguments.front();
  }
  EXPECT_EQ(Good({"--table", "cuda_api_sum", "--diff", "a.xpu"}).view->option, "--diff");
  EXPECT_EQ(Bad({"--folded", "--table", "cuda_api_sum"}), "--table needs --top or --diff");
}

TEST(Options, ByIsOfStacksOrOfDifferences) {
  EXPECT_EQ(Good({"--diff", "a.xpu", "--by", "operator"}).table, "op_sum");
  EXPECT_EQ(Good({"--diff", "a.xpu", "--by", "path"}).table, "callpath_sum");
  EXPECT_TRUE(Good({"--diff", "a.xpu", "--by", "step"}).per_step);
  EXPECT_EQ(Good({"b.xpu", "c.xpu", "--diff", "a.xpu", "--diff", "d.xpu"}).other_captures,
            (std::vector<std::string>{"a.xpu", "d.xpu"}));
  EXPECT_EQ(Bad({"--folded", "--by", "step"}), "--by step needs --diff");
  EXPECT_EQ(Bad({"--diff", "a.xpu", "--by", "thread"}),
            "--by thread needs --folded or --flamegraph");
  EXPECT_EQ(Bad({"--diff", "a.xpu", "--by", "module", "--table", "op_sum"}),
            "--by and --table: one of them is enough");
}

TEST(Options, SlowStepsAreComparedByViewsOfTimes) {
  EXPECT_EQ(Good({"--slow-steps"}).view->option, "--top");
  EXPECT_TRUE(Good({"--slow-steps", "--flamegraph", "-o", "a.html"}).slow_steps);
  EXPECT_EQ(Bad({"--slow-steps", "--script"}),
            "--slow-steps needs --folded, --flamegraph or --top");
  EXPECT_EQ(Bad({"--slow-steps", "--step-range", "3"}),
            "--slow-steps cannot be combined with --step-range or --sample");
  EXPECT_EQ(
      Bad({"--slow-steps", "--folded", "--unit", "samples"}),
      "--slow-steps cannot be combined with --mode critical, memory, probe or --unit samples");
  EXPECT_EQ(Bad({"--slow-steps", "--table", "step_sum"}),
            "--table: step_sum has no totals to compare");
}

TEST(Options, TablesForScriptsAreComplete) {
  EXPECT_EQ(Good({"--top"}).rows, 20u);
  EXPECT_EQ(Good({"--top"}).TableKernelNames(), KernelNames::kShort);
  for (const char* format : {"--format=csv", "--format=json"}) {
    EXPECT_EQ(Good({"--top", format}).rows, 0u) << format;
    EXPECT_EQ(Good({"--top", format, "-n", "20"}).rows, 20u) << format;
    EXPECT_EQ(Good({"--top", format}).TableKernelNames(), KernelNames::kFull) << format;
  }
  EXPECT_EQ(Good({"--top", "--kernel-names=full"}).TableKernelNames(), KernelNames::kFull);
}

TEST(Options, OptionsOfOtherProfilersGetAHint) {
  const auto hint = [](const char* option) { return Parse({option}).error().hint; };
  EXPECT_EQ(hint("--csv"), "--top --format csv prints tables as CSV");
  EXPECT_EQ(hint("--stdio"), "text is the default: a summary, or tables with --top");
  EXPECT_EQ(hint("--report=cuda_api_sum"),
            "--table NAME prints one table; --list-tables lists them");
}

TEST(Options, Python) {
  EXPECT_EQ(Good({}).symbols.python, PythonView::kMerge);
  EXPECT_EQ(Good({"--python=only", "--top"}).symbols.python, PythonView::kOnly);
  EXPECT_EQ(Good({"--python", "native"}).symbols.python, PythonView::kNative);
  EXPECT_EQ(Good({"--python", "merge"}).symbols.python, PythonView::kMerge);
  EXPECT_EQ(Bad({"--python=x"}), "--python: 'x' is not one of merge, only, native");
}

TEST(Options, FlagsDoNotSwallowTheCapture) {
  EXPECT_EQ(Good({"--top", "x.xpu"}).captures, std::vector<std::string>{"x.xpu"});
  EXPECT_EQ(Good({"--folded", "x.xpu"}).view->option, "--folded");
  EXPECT_EQ(Good({"x.xpu", "--dump"}).view->option, "--dump");
  EXPECT_EQ(Good({"--chrome-trace", "-o", "t.json", "x.xpu"}).output, "t.json");
}

TEST(Options, OfFoldedAndTop) {
  ReportOptions options = Good({"--folded", "--mode", "gpu", "--unit=samples",
                                "--keep-internal-frames", "--kernel-names", "mangled"});
  EXPECT_EQ(options.tree.mode, TreeMode::kGpu);
  EXPECT_EQ(options.unit, TimeUnit::kSamples);
  EXPECT_TRUE(options.tree.paths.keep_internal_frames);
  EXPECT_EQ(options.tree.kernel_names, KernelNames::kMangled);
  options = Good({"--top", "-n", "7", "--format", "csv", "--table", "cuda_api_sum"});
  EXPECT_EQ(options.rows, 7u);
  EXPECT_EQ(options.format, TableFormat::kCsv);
  EXPECT_EQ(options.table, "cuda_api_sum");
}

TEST(Options, OfSymbols) {
  ReportOptions options = Good({"--folded", "--inline", "--lines", "--offsets", "--debuginfod",
                                "--symfs", "/usr", "--debug-dir", "/etc", "--debug-dir=/tmp"});
  EXPECT_TRUE(options.symbols.inlines && options.symbols.frames.lines &&
              options.symbols.frames.offsets && options.symbols.debuginfod);
  EXPECT_EQ(options.symbols.symfs, "/usr");
  EXPECT_EQ(options.symbols.debug_directories, (std::vector<std::string>{"/etc", "/tmp"}));
  EXPECT_EQ(options.captures, std::vector<std::string>{"capture.xpu"});
  options = Good({"--debug-dir", "/etc", "--debug-dir", "/tmp", "x.xpu"});
  EXPECT_EQ(options.symbols.debug_directories, (std::vector<std::string>{"/etc", "/tmp"}));
  EXPECT_EQ(options.captures, std::vector<std::string>{"x.xpu"});
  options = Good({"--top"});
  EXPECT_FALSE(options.symbols.inlines || options.symbols.frames.lines ||
               options.symbols.frames.offsets || options.symbols.debuginfod);
  options = Good({"--export-symbols", "/out", "x.xpu"});
  EXPECT_EQ(options.task, Task::kExportSymbols);
  EXPECT_EQ(options.symbols.export_directory, "/out");
  options = Good({"--embed-symbols", "x.xpu", "-o", "y.xpu", "--lines"});
  EXPECT_EQ(options.task, Task::kEmbedSymbols);
  EXPECT_EQ(options.captures, std::vector<std::string>{"x.xpu"});
  EXPECT_EQ(Bad({"--embed-symbols", "--folded"}),
            "--folded and --embed-symbols: only one view can be given");
  EXPECT_EQ(Bad({"--export-symbols", "d", "-o", "x"}),
            "--export-symbols writes to its own directory and cannot be combined with -o");
  EXPECT_EQ(Bad({"--embed-symbols", "-"}),
            "--embed-symbols needs files, not standard input or output");
  EXPECT_EQ(Bad({"--symfs"}), "--symfs needs a value");
  EXPECT_EQ(Bad({"--symfs", "/no/such"}), "--symfs: Directory does not exist: /no/such");
  EXPECT_EQ(Bad({"--debug-dir", "/no/such"}), "--debug-dir: Directory does not exist: /no/such");
  EXPECT_EQ(Bad({"--export-symbols", ""}), "--export-symbols: is empty");
  EXPECT_EQ(Bad({"-o", ""}), "--output: is empty");
}

TEST(Options, OfFilters) {
  const ReportOptions options =
      Good({"--pid", "1,2", "--pid", "3", "--tid=4", "--comm", "a b,c", "--device", "0", "--stream",
            "7", "--kernel", "gemm|conv", "--api", "^cuda", "--time", "1.5s-2s", "x.xpu"});
  const FilterOptions& filter = options.filter;
  EXPECT_EQ(filter.pids, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(filter.tids, std::vector<uint32_t>{4});
  EXPECT_EQ(filter.comms, (std::vector<std::string>{"a b", "c"}));
  EXPECT_EQ(filter.devices, std::vector<uint32_t>{0});
  EXPECT_EQ(filter.streams, std::vector<uint32_t>{7});
  EXPECT_EQ(filter.kernel, "gemm|conv");
  EXPECT_EQ(filter.api, "^cuda");
  EXPECT_EQ(filter.time.start_ns, 1'500'000'000u);
  EXPECT_EQ(filter.time.end_ns, 2'000'000'000u);
  EXPECT_EQ(options.captures, std::vector<std::string>{"x.xpu"});
  EXPECT_FALSE(filter.empty());
  EXPECT_TRUE(Good({}).filter.empty());
}

TEST(Options, OfOtherViews) {
  EXPECT_EQ(Good({"a.xpu", "b.xpu"}).captures, (std::vector<std::string>{"a.xpu", "b.xpu"}));
  EXPECT_EQ(Good({"-i", "a.xpu", "--top"}).captures, std::vector<std::string>{"a.xpu"});
  EXPECT_EQ(Good({"b.xpu", "--top", "-i", "a.xpu"}).captures.size(), 2u);
  ReportOptions options = Good({"--diff", "a.xpu", "b.xpu", "-n", "3", "--format=json"});
  EXPECT_EQ(options.view->option, "--diff");
  EXPECT_EQ(options.other_captures, std::vector<std::string>{"a.xpu"});
  EXPECT_EQ(options.captures, std::vector<std::string>{"b.xpu"});
  EXPECT_EQ(options.rows, 3u);
  options = Good({"--flamegraph", "--mode", "idle", "--by", "thread", "--title", "T"});
  EXPECT_EQ(options.view->option, "--flamegraph");
  EXPECT_EQ(options.tree.mode, TreeMode::kIdle);
  EXPECT_EQ(options.tree.by, GroupBy::kThread);
  EXPECT_EQ(options.title, "T");
  EXPECT_TRUE(Good({"--folded", "--reverse"}).reverse);
  EXPECT_EQ(Good({"--chrome-trace", "--max-events", "9"}).max_events, 9u);
  EXPECT_EQ(Good({"--perfetto", "--max-events", "9"}).max_events, 9u);
  EXPECT_EQ(Good({"--script"}).view->option, "--script");
  EXPECT_FALSE(Good({"--no-pager"}).pager);
  EXPECT_NE(std::get<Help>(Parse({"--list-tables"}).value()).text.find("cuda_gpu_kern_sum"),
            std::string::npos);
}

TEST(Options, KernelNames) {
  EXPECT_EQ(Good({"--kernel-names=short"}).tree.kernel_names, KernelNames::kShort);
  EXPECT_EQ(Good({"--kernel-names=full"}).tree.kernel_names, KernelNames::kFull);
  EXPECT_EQ(Good({"--kernel-names=demangled"}).tree.kernel_names, KernelNames::kFull);
}

TEST(Options, UsageErrors) {
  EXPECT_EQ(Bad({"--folded", "--top"}), "--folded and --top: only one view can be given");
  EXPECT_EQ(Bad({"--mode", "gpu"}), "--mode needs --folded or --flamegraph");
  EXPECT_EQ(Bad({"--dump", "-n", "3"}), "--rows needs --top or --diff");
  EXPECT_EQ(Bad({"--folded", "--unit", "min"}), "--unit: 'min' is not one of us, ns, samples");
  EXPECT_EQ(Bad({"--top", "--table", "x"}), "--table: unknown table 'x'");
  EXPECT_EQ(Bad({"--nonsense"}), "unknown option: --nonsense");
  EXPECT_EQ(Bad({"--embed-symbols", "a.xpu", "b.xpu"}),
            "--export-symbols and --embed-symbols take one capture at a time");
  EXPECT_EQ(Bad({"--dump", "--pid", "1"}), "--pid cannot be combined with --dump");
  EXPECT_EQ(Bad({"--device", ""}), "--device: '' is not a number");
  EXPECT_EQ(Bad({"--pid", "1,,2"}), "--pid: '' is not a number");
  EXPECT_EQ(Bad({"--tid", "-1"}), "--tid: '-1' is not a number");
  EXPECT_EQ(Bad({"--comm", ",", "x.xpu"}), "--comm: '' is not a name");
  EXPECT_EQ(Bad({"--time", "2s-1s"}), "--time: '2s-1s': the end must be after the start");
  EXPECT_EQ(Bad({"--top", "--max-events", "7"}), "--max-events needs --perfetto or --chrome-trace");
  EXPECT_EQ(Bad({"--graph-stacks"}), "--graph-stacks needs a value");
  EXPECT_EQ(Bad({"-o"}), "--output needs a value");
  EXPECT_EQ(Bad({"-o", "x", "-o", "y"}), "--output: given twice");
  EXPECT_EQ(Bad({"--folded", "--mode", "gpu", "--mode", "cpu"}), "--mode: given twice");
  EXPECT_EQ(Bad({"--top", "-n", "-1"}), "--rows: '-1' is not a valid number of rows");
}

TEST(Options, TablesHaveTheFormatOfTheFilesName) {
  EXPECT_EQ(Good({"--top", "-o", "s.csv"}).format, TableFormat::kCsv);
  EXPECT_EQ(Good({"--top", "-o", "s.csv"}).rows, 0u);
  EXPECT_EQ(Good({"--table", "cuda_api_sum", "-o", "s.json.gz"}).format, TableFormat::kJson);
  EXPECT_EQ(Good({"--top", "-o", "s.csv", "--format", "table"}).format, TableFormat::kTable);
  EXPECT_EQ(Good({"--top", "-o", "s.txt"}).format, TableFormat::kTable);
}

TEST(Options, HintsOfMistakes) {
  const auto hint = [](std::vector<const char*> arguments) {
    return Parse(std::move(arguments)).error().hint;
  };
  const std::string see_help = "xpu-report --help lists the options";
  EXPECT_EQ(hint({"--nonsense"}), see_help);
  EXPECT_EQ(hint({"--flamegraf"}), "did you mean --flamegraph?");
  EXPECT_EQ(hint({"--mod=gpu", "--folded"}), "did you mean --mode?");
  EXPECT_EQ(hint({"-x"}), see_help);
  EXPECT_EQ(hint({"--time", "5"}), "examples: 1.5s-2s, 300ms-, -800us");
  EXPECT_EQ(hint({"--top", "--table", "cuda_gpu_kern_su"}),
            "did you mean cuda_gpu_kern_sum, cuda_gpu_kern_gb_sum?");
  EXPECT_EQ(hint({"--device", "GPU0"}), "GPUs are numbered from 0: --device 0");
  EXPECT_EQ(hint({"--gpu", "0"}), "--device N,... selects GPUs");
  EXPECT_EQ(hint({"--kernel-name", "x"}),
            "--kernel REGEX selects kernels; --kernel-names WHICH shortens their names");
  EXPECT_EQ(hint({"--top", "--table", "x"}), "xpu-report --list-tables lists the tables");
}

TEST(Options, HelpOfAGroup) {
  const auto text = [](std::vector<const char*> arguments) {
    return std::get<Help>(Parse(std::move(arguments)).value()).text;
  };
  EXPECT_TRUE(
      text({"--help", "tables"}).starts_with("Options of --top and --diff (--help tables)\n"));
  EXPECT_NE(text({"--help", "views"}).find("\n  --dump  "), std::string::npos);
  EXPECT_NE(text({"--help", "all"}).find("\n\n" + text({"--help", "filters"})), std::string::npos);
  EXPECT_EQ(Bad({"--help", "x.xpu"}), "--help: unknown group 'x.xpu'");
  EXPECT_EQ(Parse({"--help=x"}).error().hint,
            "groups: views, filters, stacks, tables, symbols, general, all");
}

TEST(Options, HelpFitsAScreen) {
  const auto parsed = Parse({"--help"});
  const std::string& text = std::get<Help>(parsed.value()).text;
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 46);
  size_t longest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  EXPECT_LE(longest, 80u);
  EXPECT_TRUE(std::get<Help>(Parse({"--version"}).value()).text.starts_with("xpu-report "));
}

TEST(Options, Import) {
  const ReportOptions options = Good({"--import", "cupti-text", "trace.txt", "-o", "out.xpu"});
  EXPECT_EQ(options.task, Task::kImport);
  EXPECT_EQ(options.captures, std::vector<std::string>{"trace.txt"});
  EXPECT_EQ(Bad({"--import", "nsys", "trace.txt", "-o", "out.xpu"}),
            "--import: 'nsys' is not one of cupti-text");
  EXPECT_EQ(Bad({"--import", "cupti-text", "-o", "out.xpu"}),
            "--import needs the name of one file");
  EXPECT_EQ(Bad({"--import", "cupti-text", "trace.txt"}),
            "--import needs -o FILE, the capture to write");
  EXPECT_EQ(Bad({"--import=cupti-text", "trace.txt", "-o", "x", "--pid", "1"}),
            "--pid cannot be combined with --import");
}

TEST(Options, Correlate) {
  EXPECT_EQ(Good({}).correlate.by, CorrelateBy::kAuto);
  EXPECT_EQ(Good({"--correlate", "time:5ms", "--top"}).correlate.window_ns, 5'000'000u);
  EXPECT_EQ(Bad({"--correlate=x"}),
            "--correlate: 'x' is not one of auto, id, nesting, time, time:WINDOW");
  EXPECT_EQ(Bad({"--dump", "--correlate=id"}), "--correlate cannot be combined with --dump");
}

TEST(Options, Memory) {
  const ReportOptions options = Good({"--flamegraph", "--mode=memory", "--memory", "growth"});
  EXPECT_EQ(options.tree.mode, TreeMode::kMemory);
  EXPECT_EQ(options.tree.memory, MemoryView::kGrowth);
  EXPECT_EQ(Good({"--folded", "--mode=memory"}).tree.memory, MemoryView::kPeak);
  EXPECT_EQ(Bad({"--folded", "--memory=left"}), "--memory needs --mode memory");
  EXPECT_EQ(Bad({"--folded", "--mode=memory", "--memory=x"}),
            "--memory: 'x' is not one of peak, growth, left");
}

TEST(Options, Sample) {
  EXPECT_EQ(Good({}).sample_rate, 1u);
  const ReportOptions options = Good({"--top", "--sample", "1/8"});
  EXPECT_EQ(options.sample_rate, 8u);
  EXPECT_EQ(Bad({"--top", "--sample=8"}), "--sample: '8': expected 1/N, with N from 1 to 1000000");
  EXPECT_EQ(
      Bad({"--folded", "--mode=idle", "--sample=1/8"}),
      "--sample cannot be combined with --mode idle, off, wall, probe, critical or memory: they "
      "need every event");
  EXPECT_EQ(Bad({"--sample=1/8"}),
            "--sample needs --folded, --flamegraph, --perfetto, --chrome-trace, --top or --script");
}

}  // namespace
}  // namespace xpu
