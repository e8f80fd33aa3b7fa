// The ranks that launchers set.
#include "record/process/rank.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Environment = std::vector<std::string>;

TEST(FindRank, Torchrun) {
  const auto rank = FindRank({"RANK=11", "LOCAL_RANK=3", "WORLD_SIZE=16", "GROUP_RANK=1",
                              "TORCHELASTIC_RUN_ID=job", "TORCHELASTIC_RESTART_COUNT=2"});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kTorchrun);
  EXPECT_EQ(rank->rank, 11);
  EXPECT_EQ(rank->local_rank, 3);
  EXPECT_EQ(rank->world_size, 16);
  EXPECT_EQ(rank->node_rank, 1);
  EXPECT_EQ(rank->job_id, "job");
  EXPECT_EQ(rank->step_id, "2");
}

TEST(FindRank, TorchrunWithoutARunId) {
  const auto rank = FindRank({"RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none"});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kTorchrun);
  EXPECT_EQ(rank->job_id, "");
}

const Environment kSlurm = {"SLURM_PROCID=5",         "SLURM_LOCALID=1",   "SLURM_NTASKS=8",
                            "SLURM_NODEID=2",         "SLURM_JOB_ID=4711", "SLURM_STEP_ID=0",
                            "SLURMD_NODENAME=node-07"};

TEST(FindRank, Slurm) {
  const auto rank = FindRank(kSlurm);
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kSlurm);
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->world_size, 8);
  EXPECT_EQ(rank->node_rank, 2);
  EXPECT_EQ(rank->node_name, "node-07");
  EXPECT_EQ(rank->job_id, "4711");
  EXPECT_EQ(rank->step_id, "0");
}

TEST(FindRank, TorchrunInAStepOfSlurm) {
  Environment environment = kSlurm;
  for (const char* variable :
       {"RANK=40", "LOCAL_RANK=0", "WORLD_SIZE=64", "GROUP_RANK=5", "TORCHELASTIC_RUN_ID=none"}) {
    environment.emplace_back(variable);
  }
  const auto rank = FindRank(environment);
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kTorchrun);
  EXPECT_EQ(rank->rank, 40);
  EXPECT_EQ(rank->world_size, 64);
  EXPECT_EQ(rank->node_name, "node-07");
  EXPECT_EQ(rank->job_id, "4711");
  EXPECT_EQ(rank->step_id, "0");
}

TEST(FindRank, OpenMpi) {
  const auto rank = FindRank({"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                              "OMPI_COMM_WORLD_SIZE=2", "PMIX_NAMESPACE=1234@1", "PMI_RANK=9"});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kOpenMpi);
  EXPECT_EQ(rank->rank, 1);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->world_size, 2);
  EXPECT_EQ(rank->job_id, "1234@1");
}

TEST(FindRank, Mpich) {
  const auto rank = FindRank({"PMI_RANK=3", "PMI_SIZE=4", "MPI_LOCALRANKID=1"});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kPmi);
  EXPECT_EQ(rank->rank, 3);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->world_size, 4);
  EXPECT_EQ(rank->node_rank, -1);
}

TEST(FindRank, Kubernetes) {
  const auto job = FindRank({"JOB_COMPLETION_INDEX=6", "JOB_NAME=train", "NODE_NAME=gpu-3"});
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->launcher, Launcher::kKubernetes);
  EXPECT_EQ(job->rank, 6);
  EXPECT_EQ(job->world_size, -1);
  EXPECT_EQ(job->node_name, "gpu-3");
  EXPECT_EQ(job->job_id, "train");
}

TEST(FindRank, SetByHand) {
  const auto rank = FindRank({"RANK=0", "WORLD_SIZE=2"});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, Launcher::kUnknown);
  EXPECT_EQ(rank->local_rank, -1);
}

TEST(FindRank, WithoutALauncher) {
  EXPECT_FALSE(FindRank({}).has_value());
  EXPECT_FALSE(FindRank({"RANK=1"}).has_value());  // many programs have such a variable
  EXPECT_FALSE(FindRank({"RANK=one", "WORLD_SIZE=2"}).has_value());
  EXPECT_FALSE(FindRank({"RANK=-1", "WORLD_SIZE=2"}).has_value());
  EXPECT_FALSE(FindRank({"SLURM_PROCID=99999999999", "SLURM_NTASKS=2"}).has_value());
}

TEST(FindRank, LongTextsAreCut) {
  const auto rank = FindRank({"PMI_RANK=0", "PMI_JOBID=" + std::string(10'000, 'x')});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->job_id.size(), 256u);
}

}  // namespace
}  // namespace xpu
