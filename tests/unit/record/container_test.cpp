// The containers that the texts of /proc name.
#include "record/process/container.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <unistd.h>

#include "format/base/text.h"

namespace xpu {
namespace {

const std::string kId(64, 'a');
const std::string kOtherId = std::string(32, '0') + std::string(32, 'f');
constexpr char kUid[] = "12345678-9abc-def0-1234-56789abcdef0";

std::optional<Container> InGroup(const std::string& path,
                                 const std::vector<std::string>& environment = {}) {
  return FindContainer("0::" + path + "\n", "", environment);
}

TEST(FindContainer, EachRuntime) {
  struct Case {
    std::string path;
    ContainerRuntime runtime;
  };
  const Case cases[] = {
      {"/docker/" + kId, ContainerRuntime::kDocker},
      {"/system.slice/docker-" + kId + ".scope", ContainerRuntime::kDocker},
      {"/system.slice/nerdctl-" + kId + ".scope", ContainerRuntime::kContainerd},
      {"/machine.slice/libpod-" + kId + ".scope/container", ContainerRuntime::kPodman},
      {"/libpod_parent/libpod-" + kId, ContainerRuntime::kPodman},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope",
       ContainerRuntime::kPodman},
      {"/machine.slice/crio-" + kId + ".scope", ContainerRuntime::kCriO},
      {"/default/" + kId, ContainerRuntime::kUnknown}};
  for (const Case& one : cases) {
    const auto found = InGroup(one.path);
    ASSERT_TRUE(found.has_value()) << one.path;
    EXPECT_EQ(found->id, kId);
    EXPECT_EQ(found->runtime, one.runtime) << one.path;
    EXPECT_EQ(found->pod_uid, "");
  }
}

TEST(FindContainer, Pods) {
  const std::string of_files = Format("/kubepods/burstable/pod{}/{}", kUid, kId);
  std::string of_systemd(kUid);
  std::replace(of_systemd.begin(), of_systemd.end(), '-', '_');
  of_systemd = Format(
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{}"
      ".scope",
      of_systemd, kId);
  for (const std::string& path : {of_files, of_systemd}) {
    const auto found = InGroup(
        path, {"HOSTNAME=trainer-0", "KUBERNETES_SERVICE_HOST=10.0.0.1", "POD_NAMESPACE=ml"});
    ASSERT_TRUE(found.has_value()) << path;
    EXPECT_EQ(found->id, kId);
    EXPECT_EQ(found->pod_uid, kUid);
    EXPECT_EQ(found->pod_name, "trainer-0");
    EXPECT_EQ(found->pod_namespace, "ml");
    EXPECT_EQ(found->name, "");
  }
  EXPECT_EQ(InGroup(of_systemd)->runtime, ContainerRuntime::kContainerd);
  EXPECT_EQ(InGroup(of_files, {"HOSTNAME=a", "POD_NAME=b"})->pod_name, "b");
}

// Of version 1 each hierarchy has a line; a container may use some of them.
TEST(FindContainer, TheFirstGroupThatNamesOne) {
  const auto found = FindContainer(
      Format("12:pids:/\n11:name=systemd:/user.slice\n4:cpu,cpuacct:/docker/{}\n0::/\n", kId), "",
      {"HOSTNAME=" + kId.substr(0, 12)});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->id, kId);
  EXPECT_EQ(found->name, "");  // the beginning of its id is not a name
}

TEST(FindContainer, TheInnermostOne) {
  EXPECT_EQ(InGroup("/docker/" + kOtherId + "/docker/" + kId)->id, kId);
  EXPECT_EQ(InGroup("/docker/" + kId + "/system.slice/sshd.service", {"HOSTNAME=web"})->name,
            "web");
}

// A recorder in a container of its own sees no more of a path than what lies below its own group.
TEST(FindContainer, ByItsMounts) {
  const auto docker = FindContainer("0::/\n",
                                    Format("600 500 0:50 / / rw - overlay overlay rw\n"
                                           "601 600 8:1 /var/lib/docker/containers/{}/resolv.conf "
                                           "/etc/resolv.conf rw - ext4 /dev/sda rw\n"
                                           "602 600 8:1 /var/lib/docker/containers/{}/hostname "
                                           "/etc/hostname rw - ext4 /dev/sda rw\n",
                                           kId, kId),
                                    {});
  ASSERT_TRUE(docker.has_value());
  EXPECT_EQ(docker->id, kId);
  EXPECT_EQ(docker->runtime, ContainerRuntime::kDocker);
  const auto podman = FindContainer(
      "0::/\n",
      Format("602 600 8:1 /containers/storage/overlay-containers/{}/userdata/hostname "
             "/etc/hostname rw - "
             "ext4 /dev/sda rw\n",
             kId),
      {});
  ASSERT_TRUE(podman.has_value());
  EXPECT_EQ(podman->runtime, ContainerRuntime::kPodman);
  const auto pod = FindContainer(Format("0::/kubepods/pod{}/{}\n", kUid, kId),
                                 Format("9 8 8:1 /var/lib/kubelet/pods/{}/containers/main/8a1b "
                                        "/dev/termination-log rw - ext4 x rw\n",
                                        kUid),
                                 {});
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(pod->name, "main");
}

TEST(FindContainer, OthersAreNone) {
  for (const std::string& path :
       {std::string("/"), std::string("/user.slice/user-0.slice/session-1.scope"),
        "/docker/" + kId.substr(1), "/docker/" + kId + "b", "/docker/" + std::string(64, 'A'),
        "/docker/x" + kId, "/machine.slice/libpod-conmon-" + kId + ".scope",
        "/kubepods/" + kId.substr(1) + "g"}) {
    EXPECT_FALSE(InGroup(path).has_value()) << path;
  }
  EXPECT_FALSE(FindContainer("", "", {}).has_value());
  // The host of the containers has their files, not as its own host name.
  EXPECT_FALSE(FindContainer("0::/\n",
                             Format("1 2 8:1 /var/lib/docker/containers/{}/mounts/shm "
                                    "/var/lib/docker/x rw - ext4 x rw\n",
                                    kId),
                             {})
                   .has_value());
}

// A program may set its variables, and a runtime its groups, to anything.
TEST(FindContainer, OfHostileTextsNothingIsKept) {
  const std::vector<std::string> environment = {"HOSTNAME=a\nb\x1b[31m",
                                                "POD_NAME=" + std::string(100'000, 'p'),
                                                "POD_NAMESPACE=a/../b", "KUBERNETES_SERVICE_HOST="};
  const auto found = InGroup("/docker/" + kId, environment);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "");
  EXPECT_EQ(found->pod_name, "");
  EXPECT_EQ(found->pod_namespace, "");
  EXPECT_EQ(InGroup("/kubepods/pod../" + kId)->pod_uid, "");
  EXPECT_EQ(InGroup("/kubepods/pod" + std::string(36, '-') + "/" + kId)->pod_uid, "");
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "/" + kId.substr(1);
  EXPECT_FALSE(InGroup(deep).has_value());
  EXPECT_FALSE(FindContainer(std::string(1'000'000, ':'), std::string(1'000'000, ' '), {}));
  std::string lines;
  for (int i = 0; i < 10'000; ++i) lines += "1 2 8:1\n";
  lines += "1 2 8:1 /containers/" + kId + "/hostname /etc/hostname\n";
  EXPECT_FALSE(FindContainer("", lines, {}));  // more mounts than a container has
}

TEST(ContainerFinder, AProcessThatEndedIsNotInOne) {
  std::optional<Container> found;
  EXPECT_EQ(ContainerFinder().Find(::getpid(), found), ContainerFinder::Answer::kWhole);
  EXPECT_EQ(ContainerFinder().Find(0x7fffffff, found), ContainerFinder::Answer::kNone);
}

}  // namespace
}  // namespace xpu
