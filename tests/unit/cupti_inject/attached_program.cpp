#include "attached_program.h"

#include <set>

void probe_kernel(unsigned long long /*spin_ns*/) {}

namespace xpu::inject {

void InChild(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child process says why";
}

AttachFunction LoadLibrary() {
  void* library = dlopen(XPU_INJECT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<AttachFunction>(dlsym(library, wire::kAttachSymbol));
}

void Launch(uint64_t spin_ns, cudaStream_t stream) {
  unsigned long long argument = spin_ns;
  void* arguments[] = {&argument};
  EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(&probe_kernel), dim3(1), dim3(32),
                             arguments, 0, stream),
            cudaSuccess);
}

size_t CountEntries(const char* directory) {
  DIR* opened = opendir(directory);
  size_t count = 0;
  while (readdir(opened) != nullptr) ++count;
  closedir(opened);
  return count;
}

std::ostream& operator<<(std::ostream& out, const Footprint& footprint) {
  return out << footprint.threads << " threads, " << footprint.descriptors << " descriptors, "
             << footprint.mappings << " mappings of " << footprint.bytes << " bytes";
}

Footprint WaitForThreads(size_t count) {
  while (CountEntries("/proc/self/task") != count) usleep(1000);
  return {};
}

namespace {

// Launches that the program made within the window, each once, with its kernel.
void ExpectExact(const SessionRecords& records,
                 const std::map<uint32_t, std::vector<Launchers::Call>>& calls) {
  EXPECT_EQ(records.state, wire::State::kFinished);
  EXPECT_EQ(records.lost, 0U);
  std::set<uint32_t> launched;
  std::map<uint32_t, std::vector<SessionRecords::Launch>> by_thread;
  for (const SessionRecords::Launch& launch : records.launches) {
    EXPECT_TRUE(launched.insert(launch.correlation_id).second) << launch.correlation_id;
    by_thread[launch.tid].push_back(launch);
  }
  std::set<uint32_t> ran;
  for (const SessionRecords::Kernel& kernel : records.kernels) {
    EXPECT_TRUE(ran.insert(kernel.correlation_id).second) << kernel.correlation_id;
    EXPECT_TRUE(launched.contains(kernel.correlation_id)) << kernel.correlation_id;
  }
  size_t in_window = 0;
  for (const auto& [tid, of_thread] : calls) {
    const std::vector<SessionRecords::Launch>& seen = by_thread[tid];
    size_t at = 0;
    for (const Launchers::Call& call : of_thread) {
      while (at < seen.size() && seen[at].time_ns < call.begin_ns) ++at;
      ASSERT_LT(at, seen.size());
      EXPECT_LE(seen[at].time_ns, call.end_ns);
      EXPECT_TRUE(ran.contains(seen[at].correlation_id));
      ++at;
      ++in_window;
    }
  }
  EXPECT_GT(in_window, 0U);
}

}  // namespace

SessionRecords EndAfterCalls(AttachingRecorder& recorder, Launchers& launchers, uint64_t count) {
  const uint64_t begin_ns = MonotonicNs();
  launchers.WaitForCalls(count);
  const uint64_t end_ns = MonotonicNs();
  SessionRecords records = recorder.End();
  ExpectExact(records, launchers.CallsWithin(begin_ns, end_ns));
  return records;
}

}  // namespace xpu::inject
