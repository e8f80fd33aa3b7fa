#include "record/options.h"

#include <CLI/CLI.hpp>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr char kSeeHelp[] = "xpu-record --help lists the options";

Error UsageError(std::string message) {
  return Error{ErrorKind::kUsage, std::move(message), kSeeHelp};
}

void AddOptions(CLI::App& app, RecordOptions& options, std::string& launch_stacks, bool& cpu_only,
                bool& gpu_only) {
  app.set_help_flag("-h,--help", "Print this and exit");
  app.set_version_flag("--version", "xpu-record " XPU_VERSION, "Print the version and exit");
  app.add_option("-o,--output", options.output,
                 "Capture to write, '-' for standard output; an existing file is kept as .old")
      ->capture_default_str();
  app.add_option("-F,--freq", options.frequency_hz, "CPU samples per second and thread")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100000}))
      ->capture_default_str();
  auto* cpu = app.add_flag("--cpu-only", cpu_only,
                           "Record no GPU activity, load nothing into the "
                           "program");
  app.add_flag("--gpu-only", gpu_only, "Take no CPU samples")->excludes(cpu);
  app.add_option("--cupti-lib", options.cupti_library, "The libcupti to use")
      ->type_name("FILE")
      ->excludes(cpu);
  app.add_option("--launch-stacks", launch_stacks, "How the CPU stack of each GPU launch is taken")
      ->check(CLI::IsMember({"uprobe", "none"}))
      ->capture_default_str();
  auto* verbose = app.add_flag("-v,--verbose", options.verbose, "Say what is being done");
  app.add_flag("-q,--quiet", options.quiet, "Print errors only")->excludes(verbose);
  app.add_flag("--check", options.check, "Tell what works on this machine, record nothing");
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
  std::string launch_stacks = "uprobe";
  bool cpu_only = false;
  bool gpu_only = false;

  CLI::App app("Records a program's CPU samples and GPU activity into a capture.", "xpu-record");
  app.prefix_command();
  app.get_formatter()->label("OPTIONS", "options] [--] program [arguments");
  AddOptions(app, options, launch_stacks, cpu_only, gpu_only);
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
  options.record_cpu = !gpu_only;
  options.record_gpu = !cpu_only;
  options.launch_stacks = launch_stacks == "none" ? LaunchStacks::kNone : LaunchStacks::kUprobe;
  XPU_RETURN_IF_ERROR(TakeCommand(std::move(rest), options));
  return parsed;
}

}  // namespace xpu
