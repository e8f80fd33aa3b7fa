#include "report/stacks/nameless_files.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace xpu {
namespace {

// Adds what `tree` holds to `count` of each file; returns how much lies in any of them.
uint64_t Count(const Analysis& analysis, const CallTree& tree,
               std::map<ModuleId, NamelessFile>& files, uint64_t NamelessFile::*count) {
  uint64_t all = 0;
  std::vector<ModuleId> on_path;
  for (const CallTree::Node& node : tree.nodes()) {
    if (node.self_count == 0) continue;
    on_path.clear();
    for (const CallTree::Node* at = &node;; at = &tree[at->parent]) {
      if (const ModuleId module = analysis.frames[at->frame].nameless_in) on_path.push_back(module);
      if (!at->parent) break;
    }
    std::sort(on_path.begin(), on_path.end());
    on_path.erase(std::unique(on_path.begin(), on_path.end()), on_path.end());
    for (const ModuleId module : on_path) files[module].*count += node.self_count;
    if (!on_path.empty()) all += node.self_count;
  }
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
