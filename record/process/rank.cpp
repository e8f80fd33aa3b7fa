#include "record/process/rank.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/environment.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

constexpr int32_t kNone = -1;
constexpr int32_t kMostRanks = 10'000'000;
constexpr size_t kLongestId = 256;  // a program may set what it likes

// The variables of one launcher; "" where it has none.
struct Variables {
  Launcher launcher;
  const char* sign;  // only this launcher sets it
  const char* rank;
  const char* local_rank;
  const char* world_size;
  const char* node_rank;
  const char* node_name;
  const char* job_id;
  const char* step_id;
};

// A launcher that runs inside another one comes first: torchrun in a step of Slurm, mpirun in a
// pod. mpirun and srun both set the variables of PMI.
constexpr std::array<Variables, 6> kLaunchers = {{
    {Launcher::kTorchrun, "TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK",
     "", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
    {Launcher::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "", "", "PMIX_NAMESPACE", ""},
    {Launcher::kUnknown, "WORLD_SIZE", "RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "", "", ""},
    {Launcher::kSlurm, "SLURM_PROCID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS",
     "SLURM_NODEID", "SLURMD_NODENAME", "SLURM_JOB_ID", "SLURM_STEP_ID"},
    {Launcher::kPmi, "PMI_RANK", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "", "", "PMI_JOBID",
     ""},
    {Launcher::kKubernetes, "JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX", "", "", "", "NODE_NAME",
     "JOB_NAME", ""},
}};

class Environment {
 public:
  explicit Environment(const std::vector<std::string>& variables) : variables_(variables) {}

  std::string Text(std::string_view name) const {
    if (name.empty()) return {};
    return FindVariable(variables_, std::string(name)).value_or("").substr(0, kLongestId);
  }
  int32_t Number(std::string_view name) const {
    const std::string text = Text(name);
    int32_t number = kNone;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole && number >= 0 && number <= kMostRanks ? number : kNone;
  }

 private:
  const std::vector<std::string>& variables_;
};

}  // namespace

std::optional<Rank> FindRank(const std::vector<std::string>& environment) {
  const Environment of(environment);
  for (const Variables& names : kLaunchers) {
    const int32_t number = of.Number(names.rank);
    if (number == kNone || of.Text(names.sign).empty()) continue;
    Rank rank{.launcher = names.launcher,
              .rank = number,
              .local_rank = of.Number(names.local_rank),
              .world_size = of.Number(names.world_size),
              .node_rank = of.Number(names.node_rank),
              .node_name = of.Text(names.node_name),
              .job_id = of.Text(names.job_id),
              .step_id = of.Text(names.step_id)};
    if (rank.launcher == Launcher::kTorchrun && rank.job_id == "none") rank.job_id.clear();
    // The batch system knows more than who started the process.
    if (rank.node_name.empty()) rank.node_name = of.Text("SLURMD_NODENAME");
    if (rank.node_name.empty()) rank.node_name = of.Text("NODE_NAME");
    if (const std::string job = of.Text("SLURM_JOB_ID"); !job.empty()) {
      rank.job_id = job;
      rank.step_id = of.Text("SLURM_STEP_ID");
    }
    return rank;
  }
  return std::nullopt;
}

std::vector<std::string> EnvironmentOf(pid_t pid) {
  constexpr size_t kMostBytes = size_t{4} << 20;
  Result<std::string> text = ReadFile(Format("/proc/{}/environ", LivingThread(pid)), kMostBytes);
  std::vector<std::string> variables;
  if (!text.ok()) return variables;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    variables.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return variables;
}

void WriteRank(const std::optional<Rank>& rank, InstanceId instance, uint32_t pid,
               EventSink& sink) {
  if (!rank) return;
  RankInfo info;
  info.time_ns = MonotonicNs();
  info.instance = instance;
  info.pid = pid;
  info.launcher = rank->launcher;
  info.rank = rank->rank;
  info.local_rank = rank->local_rank;
  info.world_size = rank->world_size;
  info.node_rank = rank->node_rank;
  info.node_name = sink.Intern(rank->node_name);
  info.job_id = sink.Intern(rank->job_id);
  info.step_id = sink.Intern(rank->step_id);
  sink.Write(info);
}

}  // namespace xpu
