// A program that "uses CUDA": loads the library named by CUDA_INJECTION64_PATH as the driver does,
// then lets the stub of libcupti announce launches.
//
//   inject_program MODE CALLS
//   MODE  run     return from main
//         _exit   leave without exit handlers
//         slow    a call every 20 ms
//         wait    write a line, wait for one on standard input, then return
//         fork    a child makes as many calls and exits; then the parent makes its own
//         threads four threads make the calls
//         graph   makes, instantiates and updates a graph
//         twice   InitializeInjection is called twice, the library closed before the calls
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_inject/cupti_abi.h"
#include "stub_cupti.h"

namespace {

const StubCupti* g_stub = nullptr;

void Launch(uint32_t correlation_id) {
  using xpu::cupti::kDomainDriver;
  using xpu::cupti::kDomainRuntime;
  g_stub->call(kDomainRuntime, kStubMalloc, 0, correlation_id + 1'000'000, 0);
  g_stub->call(kDomainRuntime, kStubMalloc, 1, correlation_id + 1'000'000, 0);
  g_stub->call(kDomainRuntime, kStubLaunchKernel, 0, correlation_id, 0);
  g_stub->call(kDomainDriver, kStubCuLaunchKernel, 0, correlation_id, 0);
  g_stub->add_kernel(correlation_id, "_Z6kernelv", correlation_id, correlation_id + 10);
  g_stub->call(kDomainDriver, kStubCuLaunchKernel, 1, correlation_id, 0);
  g_stub->call(kDomainRuntime, kStubLaunchKernel, 1, correlation_id, 7);
}

// A launch that is captured into graph 1, a node with a child graph that is begun before and ended
// after it; then graph 1 becomes the executable graph 2, into which a node of graph 3 is moved.
void MakeGraph() {
  using namespace xpu::cupti;  // NOLINT(google-build-using-namespace)
  const auto node = [](uint64_t graph, uint64_t index) { return graph << 32 | index; };
  g_stub->call(kDomainRuntime, kStubLaunchKernel, kSiteEnter, 1, 0);
  g_stub->graph_node(kResourceNodeCreateStarting, node(1, 0), 0, 4);
  g_stub->graph_node(kResourceNodeCreateStarting, node(9, 0), 0, 1);
  g_stub->graph_node(kResourceNodeCreated, node(9, 0), 99, 0);
  g_stub->graph_node(kResourceNodeCreated, node(1, 0), 99, 0);
  g_stub->call(kDomainRuntime, kStubLaunchKernel, kSiteExit, 1, 0);

  g_stub->call(kDomainRuntime, kStubInstantiate, kSiteEnter, 2, 0);
  g_stub->graph_node(kResourceNodeCreateStarting, node(2, 0), 0, 4);
  g_stub->graph_node(kResourceNodeCreated, node(2, 0), 0, 0);
  g_stub->graph_node(kResourceNodeCloned, node(2, 0), node(1, 0), 0);
  g_stub->graph_node(kResourceNodeCreateStarting, node(3, 0), 0, 1);
  g_stub->graph_node(kResourceNodeCreated, node(3, 0), 0, 0);
  g_stub->graph_node(kResourceNodeCloned, node(3, 0), node(9, 0), 0);
  g_stub->graph_node(kResourceNodeCloned, node(3, 1), node(9, 1), 0);
  g_stub->move_node(node(3, 0), node(2, 1));
  g_stub->move_node(node(3, 1), node(2, 7));
  g_stub->graph_node(kResourceNodeDestroyStarting, node(3, 1), 0, 0);
  g_stub->graph_exec_created(2);
  g_stub->graph_exec_created(2);
  g_stub->call(kDomainRuntime, kStubInstantiate, kSiteExit, 2, 0);

  g_stub->graph_node(kResourceNodeSetParameters, node(2, 0), node(1, 0), 0);
  g_stub->update_graph(2, 5, 3, 0);
  g_stub->update_graph(2, 6, 4, 910);  // failed
}

void LaunchMany(uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count && g_stub != nullptr; ++i) Launch(first + i);
}

bool Is(const char* mode, const char* name) { return std::strcmp(mode, name) == 0; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* mode = argv[1];
  const auto calls = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));

  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize() != 1) return 4;
  if (Is(mode, "twice") && initialize() != 1) return 4;
  if (Is(mode, "twice")) dlclose(library);

  // The stub is there when the library has loaded it.
  if (void* stub = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD)) {
    g_stub = reinterpret_cast<const StubCupti* (*)()>(dlsym(stub, "StubControl"))();
    g_stub->create_context();
  }
  if (Is(mode, "fork")) {
    const pid_t child = fork();
    LaunchMany(child == 0 ? 1'000 : 1, calls);
    if (child == 0) return 0;
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 5;
  }
  if (Is(mode, "threads")) {
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([=] { LaunchMany(1 + t * 100'000, calls); });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  }
  if (Is(mode, "graph")) {
    MakeGraph();
    return 0;
  }
  if (Is(mode, "slow")) {
    for (uint32_t i = 1; i <= calls; ++i) {
      LaunchMany(i, 1);
      usleep(20'000);
    }
    return 0;
  }
  LaunchMany(1, calls);
  if (Is(mode, "wait")) {
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
  }
  if (Is(mode, "_exit")) _exit(0);
  return 0;
}
