// One rank of a job that uses NCCL, as far as a profiler sees of it: the ranges with payloads by
// which NCCL describes its calls, and kernels with the names that NCCL's have. RANK and WORLD_SIZE
// say which one it is.
//   nccl_stand_in --meet FILE [--steps N] [--late RANK]
//
// The ranks meet before each collective, by a counter in FILE. `--late`: that rank launches the
// all-reduce of each step after all others have, and sleeps a little. A step is an all-reduce, an
// all-gather, and a group of two all-reduces with one kernel. Prints what there is, as one line.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

__global__ void ncclDevKernel_AllReduce_Sum_f32_RING_LL(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

__global__ void ncclDevKernel_AllGather_RING_LL(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

__global__ void compute_kernel(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

namespace {

constexpr uint64_t kCommunicator = 0x5eed0000c0ffee11;
constexpr uint64_t kSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
constexpr uint64_t kInitRank = kSchema, kAllGather = kSchema + 4, kAllReduce = kSchema + 5,
                   kReductions = kSchema + 14;

struct InitRankPayload {
  uint64_t communicator;
  int ranks, rank, device;
};
struct AllGatherPayload {
  uint64_t communicator;
  size_t bytes;
};
struct AllReducePayload {
  uint64_t communicator;
  size_t bytes;
  int reduction;
};

struct Options {
  std::string meet;
  uint64_t steps = 4;
  int late = -1;
  int rank = 0;
  int ranks = 1;
};

// Where the ranks wait for each other.
struct Meeting {
  std::atomic<uint64_t> arrived;
  std::atomic<uint64_t> launched;

  void WaitFor(std::atomic<uint64_t>& count, uint64_t wanted) {
    while (count.load() < wanted) usleep(100);
  }
};

class Nccl {
 public:
  explicit Nccl(const Options& options) {
    domain_ = nvtxDomainCreateA("NCCL");
    RegisterSchemas();
    Push("ncclCommInitRank", 0, nullptr, 0);
    const InitRankPayload payload{kCommunicator, options.ranks, options.rank, 0};
    const nvtxPayloadData_t data{kInitRank, sizeof(payload), &payload};
    nvtxRangePopPayload(domain_, &data, 1);
  }

  // `launch`: of its kernel; nothing in a group.
  template <typename Launch>
  XPU_FRAME void AllReduce(size_t bytes, Launch&& launch) {
    const AllReducePayload payload{kCommunicator, bytes, 0};
    Push("ncclAllReduce", kAllReduce, &payload, sizeof(payload));
    launch();
    Pop();
  }
  template <typename Launch>
  XPU_FRAME void AllGather(size_t bytes, Launch&& launch) {
    const AllGatherPayload payload{kCommunicator, bytes};
    Push("ncclAllGather", kAllGather, &payload, sizeof(payload));
    launch();
    Pop();
  }

 private:
  void RegisterSchemas() {
    const nvtxPayloadEnum_t reductions[] = {{"Sum", 0, 0}, {"Product", 1, 0}};
    nvtxPayloadEnumAttr_t reduction{};
    reduction.fieldMask =
        NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
        NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
    reduction.entries = reductions;
    reduction.numEntries = 2;
    reduction.sizeOfEnum = sizeof(int);
    reduction.schemaId = kReductions;
    nvtxPayloadEnumRegister(domain_, &reduction);
    const char* const communicator = "NCCL communicator ID";
    const nvtxPayloadSchemaEntry_t init[] = {Entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, communicator, 0),
                                             Entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", 8),
                                             Entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", 12),
                                             Entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", 16)};
    Register(kInitRank, init, 4, sizeof(InitRankPayload));
    const nvtxPayloadSchemaEntry_t reduce[] = {
        Entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, communicator, 0),
        Entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", 8),
        Entry(kReductions, "Reduction operation", 16)};
    Register(kAllReduce, reduce, 3, sizeof(AllReducePayload));
    Register(kAllGather, reduce, 2, sizeof(AllGatherPayload));
  }
  static nvtxPayloadSchemaEntry_t Entry(uint64_t type, const char* name, uint64_t offset) {
    nvtxPayloadSchemaEntry_t entry{};
    entry.type = type;
    entry.name = name;
    entry.offset = offset;
    return entry;
  }
  void Register(uint64_t schema, const nvtxPayloadSchemaEntry_t* entries, size_t count,
                size_t size) {
    nvtxPayloadSchemaAttr_t attributes{};
    attributes.fieldMask =
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    attributes.entries = entries;
    attributes.numEntries = count;
    attributes.payloadStaticSize = size;
    attributes.schemaId = schema;
    nvtxPayloadSchemaRegister(domain_, &attributes);
  }
  void Push(const char* name, uint64_t schema, const void* payload, size_t size) {
    const nvtxPayloadData_t data{schema, size, payload};
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    if (schema != 0) {
      attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
      attributes.reserved0 = 1;
      attributes.payload.ullValue = reinterpret_cast<uintptr_t>(&data);
    }
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void Pop() { nvtxDomainRangePop(domain_); }

  nvtxDomainHandle_t domain_ = nullptr;
};

template <typename Kernel>
XPU_FRAME void Launch(Kernel kernel, unsigned long long spin_ns) {
  gpu::PackedArgs arguments(kernel, spin_ns);
  XPU_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1),
                            arguments.pointers(), 0, nullptr));
}

class Job {
 public:
  explicit Job(const Options& options) : options_(options), nccl_(options) {
    const int file = open(options.meet.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Meeting)) != 0) std::exit(1);
    void* memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) std::exit(1);
    meeting_ = static_cast<Meeting*>(memory);
  }

  XPU_FRAME void Step() {
    constexpr unsigned long long kSpinNs = 2'000'000;
    Meet();
    Launch(compute_kernel, kSpinNs / 10);
    XPU_CUDA(cudaDeviceSynchronize());
    const auto ranks = static_cast<uint64_t>(options_.ranks);
    const bool is_late = options_.rank == options_.late;
    if (is_late) WaitAndLoadSlowly(ranks);
    nccl_.AllReduce(size_t{1} << 20,
                    [&] { Launch(ncclDevKernel_AllReduce_Sum_f32_RING_LL, kSpinNs); });
    ++meeting_->launched;
    ++steps_;
    meeting_->WaitFor(meeting_->launched, steps_ * ranks);
    XPU_CUDA(cudaDeviceSynchronize());
    Meet();
    nccl_.AllGather(4096, [&] { Launch(ncclDevKernel_AllGather_RING_LL, kSpinNs); });
    nccl_.AllReduce(1000, [] {});
    nccl_.AllReduce(2000, [] {});
    Launch(ncclDevKernel_AllReduce_Sum_f32_RING_LL, kSpinNs);
    XPU_CUDA(cudaDeviceSynchronize());
  }

 private:
  // After all others have launched.
  XPU_FRAME void WaitAndLoadSlowly(uint64_t ranks) {
    meeting_->WaitFor(meeting_->launched, steps_ * ranks + ranks - 1);
    usleep(20'000);
  }
  void Meet() {
    ++meeting_->arrived;
    meeting_->WaitFor(meeting_->arrived, ++meetings_ * static_cast<uint64_t>(options_.ranks));
  }

  const Options& options_;
  Nccl nccl_;
  Meeting* meeting_ = nullptr;
  uint64_t meetings_ = 0;
  uint64_t steps_ = 0;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  const auto number = [](const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::atoi(value);
  };
  options.rank = number("RANK", 0);
  options.ranks = number("WORLD_SIZE", 1);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--meet" && i + 1 < argc) {
      options.meet = argv[++i];
    } else if (word == "--steps" && i + 1 < argc) {
      options.steps = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--late" && i + 1 < argc) {
      options.late = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: %s --meet FILE [--steps N] [--late RANK]\n", argv[0]);
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  Job job(options);
  for (uint64_t step = 0; step < options.steps; ++step) job.Step();
  workload::JsonLine line;
  line.Add("workload", "nccl_stand_in");
  line.Add("steps", options.steps);
  workload::PrintLine(line.Finish());
  return 0;
}
