// The container that a process runs in, from what the kernel says of it in /proc: the path of its
// control group, its mounts and its environment. No runtime is asked: its socket would need rights,
// and its answers would be those of now.
//
// All of it is text that the process, its image or its runtime chose. What is kept is short and of
// the expected form; the rest is as if it were not there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "format/events.h"

namespace xpu {

struct Container {
  ContainerRuntime runtime = ContainerRuntime::kUnknown;
  std::string id = {};    // 64 hexadecimal digits
  std::string name = {};  // in its pod; otherwise its host name, as its environment has it
  // Empty outside Kubernetes:
  std::string pod_uid = {};
  std::string pod_name = {};
  std::string pod_namespace = {};

  bool operator==(const Container&) const = default;
};

// From the texts of /proc/PID/cgroup and /proc/PID/mountinfo. nullopt: it is in no container that
// these name.
//
// The path of a control group ends there at the root of the recorder's own namespace, so the
// containers of a recorder that itself runs in one may be named by the mounts alone, which hold
// files of the container that its runtime keeps under its id.
std::optional<Container> FindContainer(std::string_view cgroup, std::string_view mounts,
                                       const std::vector<std::string>& environment);

// The containers of processes that run.
class ContainerFinder {
 public:
  ContainerFinder();

  enum class Answer : uint8_t {
    kNone,     // the process cannot be read, as after its end
    kPartial,  // it is in exec and has no environment yet, or it has none at all
    kWhole,
  };
  // `found`: nullopt: it is in none.
  Answer Find(pid_t pid, std::optional<Container>& found) const;

 private:
  // Mounts are the recorder's own: they are read once.
  std::string own_namespace_;  // of mounts
  std::string own_mounts_;
};

}  // namespace xpu
