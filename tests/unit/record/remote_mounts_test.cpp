#include "record/base/remote_mounts.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

constexpr std::string_view kMounts =
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    "22 21 0:5 / /proc rw - proc proc rw\n"
    "30 21 0:40 / /data rw - nfs4 server:/data rw\n"
    "31 30 8:2 / /data/local rw - xfs /dev/sdb1 rw\n"
    "32 21 0:41 / /mnt/a\\040b rw,nosuid shared:7 master:2 - fuse.sshfs host: rw\n"
    "short line\n"
    "33 21 8:3 / /data/local rw - ext4 /dev/sdc1 rw\n";

std::string TypeAt(std::string_view path) {
  const std::vector<Mount> mounts = ParseMounts(kMounts);
  const Mount* mount = FindMount(mounts, path);
  return mount == nullptr ? "none" : mount->type;
}

TEST(RemoteMounts, APathBelongsToTheDeepestAndLatestMount) {
  EXPECT_EQ(TypeAt("/usr/lib/libm.so.6"), "ext4");
  EXPECT_EQ(TypeAt("/data"), "nfs4");
  EXPECT_EQ(TypeAt("/data/x"), "nfs4");
  EXPECT_EQ(TypeAt("/database"), "ext4");
  EXPECT_EQ(TypeAt("/data/local/x"), "ext4");
  EXPECT_EQ(TypeAt("/mnt/a b/c"), "fuse.sshfs");
  EXPECT_EQ(TypeAt("anon_inode:[perf_event]"), "none");
}

TEST(RemoteMounts, FileSystemsWithAServerAreRemote) {
  for (const std::string_view type :
       {"nfs", "nfs4", "cifs", "fuse", "fuse.sshfs", "9p", "lustre"}) {
    EXPECT_TRUE(IsRemoteType(type)) << type;
  }
  for (const std::string_view type : {"ext4", "fusectl", "overlay", "tmpfs", "btrfs", "proc"}) {
    EXPECT_FALSE(IsRemoteType(type)) << type;
  }
}

TEST(RemoteMounts, LocalFilesAndDescriptorsAreNotTested) {
  EXPECT_TRUE(CheckMountAnswers("/proc/self/exe").ok());
  EXPECT_TRUE(CheckMountAnswers("/proc/self/fd/0").ok());
  EXPECT_TRUE(CheckMountAnswers("no/such/file").ok());
}

}  // namespace
}  // namespace xpu
