#include "record/process/container.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/environment.h"
#include "record/base/process_status.h"
#include "record/process/rank.h"

namespace xpu {
namespace {

constexpr size_t kIdDigits = 64;
constexpr size_t kLongestName = 253;  // of Kubernetes; host names are shorter
constexpr size_t kMostLines = 4096;   // mounts of a process; a container has some dozens

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// As names of pods, containers and hosts are written. Others, such as those with control
// characters, are not names.
std::string NameIn(std::string_view text) {
  const bool is_name = !text.empty() && text.size() <= kLongestName &&
                       std::all_of(text.begin(), text.end(), [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                       });
  return is_name ? std::string(text) : std::string();
}

// Takes the part of `rest` before `separator`, which is removed.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    if (const std::string_view part = TakeUntil(path, '/'); !part.empty()) parts.push_back(part);
  }
  return parts;
}

// "pod1234-...", "kubepods-burstable-pod1234_....slice": the uid, with dashes; "" if it is none.
std::string PodUidIn(std::string_view part) {
  constexpr size_t kWithDashes = 36;
  constexpr size_t kWithout = 32;  // pods of a file on the node
  if (part.ends_with(".slice")) part.remove_suffix(6);
  const size_t at = part.rfind("pod");
  if (at == std::string_view::npos || (at > 0 && part[at - 1] != '-')) return {};
  std::string uid(part.substr(at + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  std::string digits = uid;
  std::erase(digits, '-');
  const bool is_uid = (uid.size() == kWithDashes || uid.size() == kWithout) &&
                      digits.size() == kWithout && IsHex(digits);
  return is_uid ? uid : std::string();
}

struct Prefix {
  std::string_view text;  // before the id in the name of a systemd unit, or the parent's directory
  ContainerRuntime runtime;
};
constexpr std::array<Prefix, 7> kPrefixes = {{
    {"docker", ContainerRuntime::kDocker},
    {"cri-containerd", ContainerRuntime::kContainerd},
    {"nerdctl", ContainerRuntime::kContainerd},
    {"containerd", ContainerRuntime::kContainerd},
    {"crio", ContainerRuntime::kCriO},
    {"libpod", ContainerRuntime::kPodman},
    {"libpod_parent", ContainerRuntime::kPodman},
}};

std::optional<ContainerRuntime> RuntimeOf(std::string_view prefix) {
  for (const Prefix& known : kPrefixes) {
    if (known.text == prefix) return known.runtime;
  }
  return std::nullopt;
}

// Of the path of a control group the innermost container: one in another one is what runs.
//
//   /docker/ID, /system.slice/docker-ID.scope
//   /kubepods/burstable/podUID/ID
//   /kubepods.slice/.../kubepods-burstable-podUID.slice/cri-containerd-ID.scope
//   /machine.slice/libpod-ID.scope/container
std::optional<Container> ContainerIn(std::string_view path) {
  const std::vector<std::string_view> parts = PartsOf(path);
  for (size_t i = parts.size(); i-- > 0;) {
    std::string_view part = parts[i];
    if (part.ends_with(".scope")) part.remove_suffix(6);
    if (part.size() < kIdDigits) continue;
    const std::string_view id = part.substr(part.size() - kIdDigits);
    std::string_view prefix = part.substr(0, part.size() - kIdDigits);
    if (!IsHex(id) || (!prefix.empty() && !prefix.ends_with('-'))) continue;
    if (!prefix.empty()) prefix.remove_suffix(1);
    // conmon watches over a container from outside.
    if (prefix.ends_with("conmon")) continue;
    Container container{.id = std::string(id)};
    for (size_t j = i; j-- > 0 && container.pod_uid.empty();) {
      container.pod_uid = PodUidIn(parts[j]);
    }
    if (prefix.empty() && i > 0) prefix = parts[i - 1];
    container.runtime = RuntimeOf(prefix).value_or(ContainerRuntime::kUnknown);
    return container;
  }
  return std::nullopt;
}

// Of /proc/PID/cgroup, whose lines are "0::/path" (version 2) and "4:memory:/path" (version 1).
std::optional<Container> ContainerInGroups(std::string_view cgroup) {
  while (!cgroup.empty()) {
    std::string_view line = TakeUntil(cgroup, '\n');
    TakeUntil(line, ':');
    TakeUntil(line, ':');
    if (auto container = ContainerIn(line)) return container;
  }
  return std::nullopt;
}

struct MountNames {
  std::optional<Container> container;  // by a file that its runtime mounts into it
  std::string name;                    // of the container in its pod
};

// /proc/PID/mountinfo: "number number major:minor root mounted_at ...", the root being the path in
// the file system that is mounted. Files that runtimes mount into containers:
//
//   /var/lib/docker/containers/ID/hostname at /etc/hostname
//   .../overlay-containers/ID/userdata/hostname at /etc/hostname
//   /var/lib/kubelet/pods/UID/containers/NAME/... at /dev/termination-log
MountNames NamesInMounts(std::string_view mounts) {
  MountNames names;
  for (size_t line_number = 0; !mounts.empty() && line_number < kMostLines; ++line_number) {
    std::string_view line = TakeUntil(mounts, '\n');
    for (int skipped = 0; skipped < 3; ++skipped) TakeUntil(line, ' ');
    const std::vector<std::string_view> root = PartsOf(TakeUntil(line, ' '));
    const std::string_view mounted_at = TakeUntil(line, ' ');
    for (size_t i = 0; i + 2 < root.size(); ++i) {
      const bool is_id = root[i + 1].size() == kIdDigits && IsHex(root[i + 1]);
      if (mounted_at == "/etc/hostname" && is_id && !names.container) {
        if (root[i] == "containers") {
          names.container = {.runtime = ContainerRuntime::kDocker, .id = std::string(root[i + 1])};
        } else if (root[i] == "overlay-containers") {
          names.container = {.runtime = ContainerRuntime::kPodman, .id = std::string(root[i + 1])};
        }
      }
      const bool is_of_pod = i >= 2 && root[i] == "containers" && root[i - 2] == "pods";
      if (mounted_at == "/dev/termination-log" && is_of_pod) names.name = NameIn(root[i + 1]);
    }
  }
  return names;
}

std::string MountsOf(const std::string& process) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  Result<std::string> text = ReadFile(Format("/proc/{}/mountinfo", process), kMostBytes);
  return text.ok() ? *text : std::string();
}

std::string FirstName(const std::vector<std::string>& environment,
                      std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    std::string name = NameIn(FindVariable(environment, variable).value_or(""));
    if (!name.empty()) return name;
  }
  return {};
}

}  // namespace

std::optional<Container> FindContainer(std::string_view cgroup, std::string_view mounts,
                                       const std::vector<std::string>& environment) {
  std::optional<Container> container = ContainerInGroups(cgroup);
  MountNames names = NamesInMounts(mounts);
  if (!container) container = std::move(names.container);
  if (!container) return std::nullopt;
  const std::string host = FirstName(environment, {"HOSTNAME"});
  const bool is_of_pod =
      !container->pod_uid.empty() || FindVariable(environment, "KUBERNETES_SERVICE_HOST");
  container->name = std::move(names.name);
  if (is_of_pod) {
    // The first ones are what manifests usually call what the downward API gives.
    container->pod_name = FirstName(environment, {"POD_NAME", "K8S_POD_NAME", "MY_POD_NAME"});
    if (container->pod_name.empty()) container->pod_name = host;
    container->pod_namespace =
        FirstName(environment, {"POD_NAMESPACE", "K8S_POD_NAMESPACE", "MY_POD_NAMESPACE"});
  } else if (!container->id.starts_with(host)) {
    container->name = host;  // the default, the beginning of the id, says nothing
  }
  return container;
}

ContainerFinder::ContainerFinder()
    : own_namespace_(LinkText("/proc/self/ns/mnt")), own_mounts_(MountsOf("self")) {
  // A host has thousands of mounts, which would be gone through for each process.
  const MountNames names = NamesInMounts(own_mounts_);
  if (!names.container && names.name.empty()) own_mounts_.clear();
}

ContainerFinder::Answer ContainerFinder::Find(pid_t pid, std::optional<Container>& found) const {
  constexpr size_t kMostBytes = size_t{64} << 10;
  const std::string process = std::to_string(LivingThread(pid));
  Result<std::string> cgroup = ReadFile(Format("/proc/{}/cgroup", process), kMostBytes);
  if (!cgroup.ok()) return Answer::kNone;
  const std::string mount_namespace = LinkText(Format("/proc/{}/ns/mnt", process));
  const bool is_own = mount_namespace.empty() || mount_namespace == own_namespace_;
  const std::string mounts = is_own ? own_mounts_ : MountsOf(process);
  found = FindContainer(*cgroup, mounts, {});
  // Only of containers the environment is of interest.
  if (!found) return Answer::kWhole;
  const std::vector<std::string> environment = EnvironmentOf(pid);
  found = FindContainer(*cgroup, mounts, environment);
  return environment.empty() ? Answer::kPartial : Answer::kWhole;
}

}  // namespace xpu
