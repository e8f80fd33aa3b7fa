#include "report/trace/containers.h"

#include <algorithm>
#include <set>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kShortId = 12;
// Fewer digits are not the beginning of an id.
constexpr size_t kFewestDigits = 4;

std::string FirstNameOf(const Model& model, const ContainerInfo& container) {
  std::string text;
  for (const StringId part : {container.pod_namespace, container.pod_name, container.name}) {
    const std::string_view name = model.Text(part);
    if (!name.empty()) text += (text.empty() ? "" : "/") + std::string(name);
  }
  return text.empty() ? std::string(model.Text(container.id).substr(0, kShortId)) : text;
}

}  // namespace

Containers::Containers(const Model& model, const ProcessHistory& processes)
    : model_(model), processes_(processes) {
  std::map<std::string, std::set<std::string>> ids;  // by name
  for (const ContainerInfo& info : model.events.container_infos) {
    const ProcessId process = processes.At(info.pid, info.time_ns);
    if (!process) continue;
    of_processes_[process].push_back(&info);
    const std::string id(model.Text(info.id));
    if (id.empty()) continue;
    // The later of two descriptions of a container counts: its first program may know less.
    std::string& name = names_[id];
    if (!name.empty()) ids[name].erase(id);
    name = FirstNameOf(model, info);
    ids[name].insert(id);
  }
  for (const auto& [name, same] : ids) {
    if (same.size() < 2) continue;
    for (const std::string& id : same) {
      names_[id] += Format(" ({})", std::string_view(id).substr(0, kShortId));
    }
  }
  for (auto& [process, infos] : of_processes_) {
    std::stable_sort(
        infos.begin(), infos.end(),
        [](const ContainerInfo* a, const ContainerInfo* b) { return a->time_ns < b->time_ns; });
  }
}

InTime<const ContainerInfo*> Containers::Find(ProcessId process, uint64_t time_ns) const {
  constexpr int kMostAncestors = 64;  // a damaged capture may have them in a circle
  if (of_processes_.empty()) return {};
  for (int i = 0; process && i < kMostAncestors; ++i, process = processes_[process].parent) {
    const auto found = of_processes_.find(process);
    if (found == of_processes_.end()) continue;
    // The first one is read a little after the process began.
    return LastSince(
        found->second, time_ns, [](const ContainerInfo* info) { return info->time_ns; },
        [](const ContainerInfo* info) { return info->id ? info : nullptr; });
  }
  return {};
}

const std::string& Containers::NameOf(const ContainerInfo& container) const {
  static const std::string kNone;
  const auto found = names_.find(model_.Text(container.id));
  return found == names_.end() ? kNone : found->second;
}

bool Containers::IsCalled(const ContainerInfo& container, const std::string& text) const {
  if (text.empty()) return false;
  const std::string_view id = model_.Text(container.id);
  return text == NameOf(container) || (text.size() >= kFewestDigits && id.starts_with(text)) ||
         text == model_.Text(container.pod_name) || text == model_.Text(container.name);
}

}  // namespace xpu
