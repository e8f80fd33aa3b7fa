// Two actors, alpha and beta, launch differently named kernels through differently named call
// paths, strictly in turn: whoever mixes up threads or processes is found out.
//   --mode=threads|fork|exec --launches N (per actor)
// fork: two children forked before any CUDA call. exec: they also exec this program again.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>

#include "gpu.h"

__global__ void alpha_kernel(int* turn_count) {
#ifdef __CUDACC__
  *turn_count += 1;
#endif
}

__global__ void beta_kernel(int* turn_count) {
#ifdef __CUDACC__
  *turn_count += 1;
#endif
}

struct Actor {
  bool is_alpha = false;
  uint64_t launches = 0;
  int my_turn_fd = -1;     // a byte to read here is permission for one launch
  int other_turn_fd = -1;  // where the permission goes afterwards
  uint64_t tid = 0;
  int* turn_count = nullptr;
  cudaStream_t stream = nullptr;
  workload::Tally tally;
};

XPU_FRAME void AlphaStep(Actor* actor) {
  XPU_LAUNCH(&actor->tally, "AlphaPath;AlphaStep", alpha_kernel, dim3(1), dim3(1), actor->stream,
             actor->turn_count);
}

XPU_FRAME void AlphaPath(Actor* actor) { AlphaStep(actor); }

XPU_FRAME void BetaStep(Actor* actor) {
  XPU_LAUNCH(&actor->tally, "BetaPath;BetaDetour;BetaStep", beta_kernel, dim3(1), dim3(1),
             actor->stream, actor->turn_count);
}

XPU_FRAME void BetaDetour(Actor* actor) { BetaStep(actor); }

XPU_FRAME void BetaPath(Actor* actor) { BetaDetour(actor); }

void WaitForTurn(const Actor& actor) {
  char token = 0;
  if (read(actor.my_turn_fd, &token, 1) != 1) std::exit(1);
}

void PassTurn(const Actor& actor) {
  // Nobody reads after the last turn: an error then is no error.
  const char token = 't';
  [[maybe_unused]] const ssize_t written = write(actor.other_turn_fd, &token, 1);
}

XPU_FRAME void RunActor(Actor* actor) {
  actor->tid = workload::ThreadId();
  XPU_CUDA(cudaStreamCreateWithFlags(&actor->stream, cudaStreamNonBlocking));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&actor->turn_count), sizeof(int)));
  XPU_CUDA(cudaMemsetAsync(actor->turn_count, 0, sizeof(int), actor->stream));
  actor->tally.CountMemset(sizeof(int));
  for (uint64_t i = 0; i < actor->launches; ++i) {
    WaitForTurn(*actor);
    if (actor->is_alpha) {
      AlphaPath(actor);
    } else {
      BetaPath(actor);
    }
    PassTurn(*actor);
  }
  XPU_CUDA(cudaStreamSynchronize(actor->stream));
  actor->tally.CountSync();
  XPU_CUDA(cudaFree(actor->turn_count));
  XPU_CUDA(cudaStreamDestroy(actor->stream));
}

std::string ActorJson(const Actor& actor) {
  workload::JsonLine json;
  json.Add("actor", actor.is_alpha ? "alpha" : "beta");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("tid", actor.tid);
  actor.tally.Write(&json);
  return json.Finish();
}

// A child: acts, then reports to the parent through `report_fd`.
int RunChild(Actor* actor, int report_fd) {
  RunActor(actor);
  const std::string json = ActorJson(*actor);
  return write(report_fd, json.data(), json.size()) == static_cast<ssize_t>(json.size()) ? 0 : 1;
}

[[noreturn]] void ExecChild(const Actor& actor, int report_fd) {
  const std::string options[] = {
      std::string("--actor=") + (actor.is_alpha ? "alpha" : "beta"),
      "--launches=" + std::to_string(actor.launches),
      "--my-turn-fd=" + std::to_string(actor.my_turn_fd),
      "--other-turn-fd=" + std::to_string(actor.other_turn_fd),
      "--report-fd=" + std::to_string(report_fd),
  };
  std::vector<char*> argv;
  std::string name = "two_kernels";
  argv.push_back(name.data());
  for (const std::string& option : options) argv.push_back(const_cast<char*>(option.c_str()));
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

std::string ReadAll(int fd) {
  std::string text;
  char chunk[4096];
  ssize_t size = 0;
  while ((size = read(fd, chunk, sizeof(chunk))) > 0) text.append(chunk, static_cast<size_t>(size));
  return text;
}

std::string RunThreads(Actor* alpha, Actor* beta) {
  std::thread alpha_thread(RunActor, alpha);
  std::thread beta_thread(RunActor, beta);
  alpha_thread.join();
  beta_thread.join();
  return "[" + ActorJson(*alpha) + "," + ActorJson(*beta) + "]";
}

std::string RunProcesses(Actor* alpha, Actor* beta, bool exec, bool* all_good) {
  std::string json;
  int report[2][2];
  pid_t children[2];
  Actor* const actors[2] = {alpha, beta};
  for (int i = 0; i < 2; ++i) {
    if (pipe(report[i]) != 0) std::exit(1);
    children[i] = fork();
    if (children[i] < 0) std::exit(1);
    if (children[i] == 0) {
      if (exec) ExecChild(*actors[i], report[i][1]);
      std::exit(RunChild(actors[i], report[i][1]));
    }
    close(report[i][1]);
  }
  for (int i = 0; i < 2; ++i) {
    json += (i == 0 ? "[" : ",") + ReadAll(report[i][0]);
    int status = 0;
    waitpid(children[i], &status, 0);
    *all_good = *all_good && status == 0;
  }
  return json + "]";
}

int main(int argc, char** argv) {
  Actor alpha;
  alpha.is_alpha = true;
  alpha.launches = workload::OptionNumber(argc, argv, "--launches", 100);
  if (const char* name = workload::Option(argc, argv, "--actor")) {
    alpha.is_alpha = std::strcmp(name, "alpha") == 0;
    alpha.my_turn_fd = static_cast<int>(workload::OptionNumber(argc, argv, "--my-turn-fd", 0));
    alpha.other_turn_fd =
        static_cast<int>(workload::OptionNumber(argc, argv, "--other-turn-fd", 0));
    return RunChild(&alpha, static_cast<int>(workload::OptionNumber(argc, argv, "--report-fd", 1)));
  }
  int alpha_turn[2];
  int beta_turn[2];
  if (pipe(alpha_turn) != 0 || pipe(beta_turn) != 0) return 1;
  Actor beta;
  beta.launches = alpha.launches;
  alpha.my_turn_fd = alpha_turn[0];
  alpha.other_turn_fd = beta_turn[1];
  beta.my_turn_fd = beta_turn[0];
  beta.other_turn_fd = alpha_turn[1];
  PassTurn(beta);

  const std::string mode = workload::OptionString(argc, argv, "--mode", "threads");
  bool all_good = true;
  const std::string actors = mode == "threads"
                                 ? RunThreads(&alpha, &beta)
                                 : RunProcesses(&alpha, &beta, mode == "exec", &all_good);
  workload::JsonLine json;
  json.Add("workload", "two_kernels");
  json.Add("mode", mode);
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.AddRaw("actors", actors);
  workload::PrintLine(json.Finish());
  return all_good ? 0 : 1;
}
