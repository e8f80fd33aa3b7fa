#include "report/query/unsymbolized_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "format/base/text.h"

namespace xpu {
namespace {

// Adds what `tree` holds to `count` of the file of the innermost frame of code, where that has no
// name; returns how much. Frames further out are not counted: nearly every stack begins in the C
// library or the interpreter, whose names nobody misses there.
uint64_t Count(const Analysis& analysis, const CallTree& tree,
               std::map<ModuleId, UnsymbolizedFile>& files, uint64_t UnsymbolizedFile::*count) {
  uint64_t all = 0;
  std::vector<ModuleId> innermost(tree.nodes().size() + 1);  // by path; parents come first
  for (size_t i = 0; i < tree.nodes().size(); ++i) {
    const CallTree::Node& node = tree.nodes()[i];
    const NamedFrame& frame = analysis.frames[node.frame];
    const bool is_outermost = !node.parent;
    const ModuleId module =
        is_outermost || frame.IsFunction() ? frame.nameless_in : innermost[node.parent.value];
    innermost[i + 1] = module;
    if (node.self_count == 0 || !module) continue;
    files[module].*count += node.self_count;
    all += node.self_count;
  }
  return all;
}

uint64_t CountGenerated(const Analysis& analysis, const CallTree& tree) {
  uint64_t count = 0;
  for (const CallTree::Node& node : tree.nodes()) {
    if (node.self_count > 0 && analysis.frames[node.frame].name == "[anon]") {
      count += node.self_count;
    }
  }
  return count;
}

// The switch of the compiler that was mapped. Of several the first: such programs are rare.
std::string HintForGenerated(const Model& model) {
  struct Compiler {
    std::string_view file;
    std::string_view hint;
  };
  constexpr std::array<Compiler, 5> kCodeMakers = {{
      {"/libjvm.so",
       "Java: java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (JDK 17), jcmd PID "
       "Compiler.perfmap, or perf-map-agent"},
      {"/libcoreclr.so", ".NET: DOTNET_PerfMapEnabled=1"},
      {"/node", "Node.js: node --perf-basic-prof"},
      {"/nodejs", "Node.js: node --perf-basic-prof"},
      {"/libjulia", "Julia: ENABLE_JITPROFILING=1"},
  }};
  for (const Mapping& mapping : model.events.mappings) {
    const std::string_view path = model.Text(mapping.path);
    const std::string_view name = path.substr(std::min(path.rfind('/'), path.size()));
    for (const Compiler& compiler : kCodeMakers) {
      const bool is_library = compiler.file.starts_with("/lib");
      if (is_library ? name.starts_with(compiler.file) : name == compiler.file) {
        return std::string(compiler.hint);
      }
    }
  }
  return "Have the compiler write /tmp/perf-PID.map.";
}

// Whether a file is of NVIDIA's toolkit, driver or wheels, also if others bring it (Triton its
// ptxas).
bool IsOfNvidia(std::string_view path) {
  constexpr std::array<std::string_view, 6> kPlaces = {"/usr/local/cuda",   "/opt/cuda",
                                                       "/usr/local/nvidia", "/opt/nvidia",
                                                       "/usr/lib/nvidia",   "/usr/lib/cuda"};
  constexpr std::array<std::string_view, 6> kPrograms = {"ptxas",     "nvlink", "cicc",
                                                         "fatbinary", "nvcc",   "cudafe++"};
  constexpr std::array<std::string_view, 10> kLibraries = {
      "libcuda.so", "libcudart", "libcublas",   "libcudnn",    "libcufft",
      "libcurand",  "libcupti",  "libcusolver", "libcusparse", "libnv"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto begins = [](std::string_view text) {
    return [text](std::string_view begin) { return text.starts_with(begin); };
  };
  return std::any_of(kPlaces.begin(), kPlaces.end(), begins(path)) ||
         std::find(kPrograms.begin(), kPrograms.end(), name) != kPrograms.end() ||
         std::any_of(kLibraries.begin(), kLibraries.end(), begins(name)) ||
         path.find("-packages/nvidia/") != path.npos;
}

// Where a distribution puts the files of its packages.
bool IsOfDistribution(std::string_view path) {
  constexpr std::array<std::string_view, 8> kPlaces = {
      "/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/", "/bin/", "/sbin/"};
  return std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](std::string_view place) { return path.starts_with(place); });
}

// The package with the names of a file, by the name that distributions give the file.
std::string PackageOf(std::string_view name) {
  if (name.starts_with("libc.so") || name.starts_with("ld-linux")) {
    return "install libc6-dbg (Debian, Ubuntu) or glibc-debuginfo";
  }
  if (name.starts_with("libstdc++")) {
    return "install libstdc++6-dbgsym (Debian, Ubuntu) or gcc-debuginfo";
  }
  if (name.starts_with("python3")) {  // "python3.12-dbg"
    return Format("install {}-dbg (Debian, Ubuntu) or python3-debuginfo", name);
  }
  return "install its package's -dbgsym (Debian, Ubuntu) or -debuginfo package";
}

// How to get the names of a file, where it is known.
std::string HintForFile(std::string_view path, std::string_view build_id) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string begin = "no symbol covers the addresses: ";
  if (IsOfNvidia(path)) {
    return begin + (name.starts_with("libcuda.so") ? "NVIDIA publishes none for its driver"
                                                   : "NVIDIA publishes none for its files");
  }
  const bool has_package = IsOfDistribution(path);
  if (!has_package) return begin + "it is in no system package; build it without stripping";
  const std::string hint = begin + PackageOf(name);
  return build_id.empty() ? hint
                          : hint + Format(", or --debuginfod (build-id {})", ToHex(build_id));
}

std::string ReasonOf(const Symbolizer::Problem& problem) {
  const std::string prefix = problem.path + ": ";
  return problem.message.starts_with(prefix) ? problem.message.substr(prefix.size())
                                             : problem.message;
}

}  // namespace

UnsymbolizedFiles FindUnsymbolizedFiles(const Analysis& analysis, const CallTree& cpu,
                                        const CallTree& gpu) {
  std::map<ModuleId, UnsymbolizedFile> files;
  UnsymbolizedFiles found;
  found.samples = Count(analysis, cpu, files, &UnsymbolizedFile::samples);
  Count(analysis, gpu, files, &UnsymbolizedFile::gpu_work);
  found.generated = CountGenerated(analysis, cpu);
  if (found.generated > 0) found.generated_hint = HintForGenerated(analysis.model);
  for (auto& [module, file] : files) {
    file.reason =
        HintForFile(analysis.symbolizer[module].path, analysis.symbolizer[module].build_id);
  }
  for (const Symbolizer::Problem& problem : analysis.symbolizer.problems()) {
    if (problem.kind == FileProblem::kLines) continue;  // it has names
    files[problem.module].reason = ReasonOf(problem);
  }
  const bool any = std::any_of(files.begin(), files.end(), [](const auto& each) {
    return each.second.samples + each.second.gpu_work > 0;
  });
  for (auto& [module, file] : files) {
    // No name of theirs is missed at the end of a stack.
    if (any && file.samples + file.gpu_work == 0) continue;
    file.module = module;
    file.path = analysis.symbolizer[module].path;
    found.files.push_back(std::move(file));
  }
  std::stable_sort(found.files.begin(), found.files.end(),
                   [](const UnsymbolizedFile& a, const UnsymbolizedFile& b) {
                     return std::tie(b.samples, b.gpu_work, a.path) <
                            std::tie(a.samples, a.gpu_work, b.path);
                   });
  return found;
}

}  // namespace xpu
