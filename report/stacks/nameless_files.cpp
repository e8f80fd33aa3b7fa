#include "report/stacks/nameless_files.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace xpu {
namespace {

// Adds what `tree` holds to `count` of each file; returns how much lies in any of them.
uint64_t Count(const Analysis& analysis, const CallTree& tree,
               std::map<ModuleId, NamelessFile>& files, uint64_t NamelessFile::*count) {
  uint64_t all = 0;
  const std::vector<CallTree::Total> totals = tree.Totals();
  std::unordered_map<ModuleId, uint64_t> open;  // how often it is on the path
  uint64_t open_all = 0;
  const auto module_of = [&](PathId path) {
    const bool counts = totals[path.value - 1].count > 0;
    return counts ? analysis.frames[tree[path].frame].nameless_in : ModuleId{};
  };
  tree.Walk(
      [&](PathId path) {
        const ModuleId module = module_of(path);
        if (!module) return;
        const uint64_t count_below = totals[path.value - 1].count;
        if (open_all++ == 0) all += count_below;
        if (open[module]++ == 0) files[module].*count += count_below;
      },
      [&](PathId path) {
        const ModuleId module = module_of(path);
        if (!module) return;
        --open_all;
        --open[module];
      });
  return all;
}

std::string ReasonOf(const Symbolizer::Problem& problem) {
  const std::string prefix = problem.path + ": ";
  return problem.message.starts_with(prefix) ? problem.message.substr(prefix.size())
                                             : problem.message;
}

}  // namespace

NamelessFiles FindNamelessFiles(const Analysis& analysis, const CallTree& cpu,
                                const CallTree& gpu) {
  std::map<ModuleId, NamelessFile> files;
  NamelessFiles found;
  found.samples = Count(analysis, cpu, files, &NamelessFile::samples);
  Count(analysis, gpu, files, &NamelessFile::gpu_work);
  for (auto& [module, file] : files) {
    file.reason = "no symbol covers the addresses: install its debug symbols here, or --debuginfod";
  }
  for (const Symbolizer::Problem& problem : analysis.symbolizer.problems()) {
    files[problem.module].reason = ReasonOf(problem);
  }
  for (auto& [module, file] : files) {
    file.module = module;
    file.path = analysis.symbolizer[module].path;
    found.files.push_back(std::move(file));
  }
  std::stable_sort(
      found.files.begin(), found.files.end(), [](const NamelessFile& a, const NamelessFile& b) {
        return std::tie(b.samples, b.gpu_work, a.path) < std::tie(a.samples, a.gpu_work, b.path);
      });
  return found;
}

}  // namespace xpu
