// A transformer-like load: requests through InferencePipeline, layers, attention and feed-forward.
//   --requests N --layers L --threads T --seq S --kernel-us U --event-time
//   --warmup W (requests of each thread that come before the N, and are not timed)
//   --linger-ms M (between the end of the threads and that of the program)
// The names of classes, methods and kernels are those a user's program would have, not this
// project's style, because tests and documents show them in stacks.
//
// --event-time measures the kernels of each request with two events on the stream. A gate kernel
// runs first, so that the host is ahead and the kernels follow each other without gaps: then the
// sum of their durations (without the gate's) and the request's place in "event_ns" agree. That is
// 0 where the host took longer than the gate, as it may beside other work. The gap between two
// kernels is about 1 us, so take U >= 100 for 2 %.
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gpu.h"

__global__ void gate_kernel(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

#ifdef __CUDACC__
#define XPU_WORK(expression)                                                                    \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) { \
    const float x = data[i];                                                                    \
    data[i] = (expression);                                                                     \
  }                                                                                             \
  gpu::SpinFor(spin_ns)
#else
#define XPU_WORK(expression)
#endif

__global__ void embedding_kernel(const int* tokens, float* data, int count,
                                 unsigned long long spin_ns) {
  XPU_WORK(0.5f * x + static_cast<float>(tokens[i] % 997) * 0.001f);
}
__global__ void layer_norm_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x / (1.0f + (x < 0.0f ? -x : x)));
}
__global__ void qkv_projection_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x * 1.01f + 0.01f);
}
__global__ void attention_scores_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x * x * 0.125f);
}
__global__ void softmax_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(1.0f / (1.0f + x * x));
}
__global__ void attention_output_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x * 0.75f);
}
// A template and a namespace, as real kernels have: their names must survive demangling.
template <int kExpansion>
__global__ void matmul_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x * static_cast<float>(kExpansion) * 0.25f);
}
namespace activation {
__global__ void gelu_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x > 0.0f ? x : 0.01f * x);
}
}  // namespace activation
__global__ void logits_kernel(float* data, int count, unsigned long long spin_ns) {
  XPU_WORK(x + 1.0f);
}

namespace {

constexpr int kModelWidth = 64;
// Few blocks, so that the streams of several threads run side by side.
const dim3 kGrid(4);
const dim3 kBlock(128);

#define XPU_FORWARD "InferencePipeline::runRequest;TransformerLayer::forward;"
}  // namespace

// Everything one thread of requests works with.
struct RequestContext {
  cudaStream_t stream = nullptr;
  int* host_tokens = nullptr;
  float* host_logits = nullptr;
  int* tokens = nullptr;
  float* hidden = nullptr;
  int sequence = 0;
  int count = 0;
  unsigned long long spin_ns = 0;
  workload::Tally tally;

  size_t token_bytes() const { return static_cast<size_t>(sequence) * sizeof(int); }
  size_t hidden_bytes() const { return static_cast<size_t>(count) * sizeof(float); }
};

class LayerNorm {
 public:
  XPU_FRAME void forward(RequestContext* context) {
    XPU_LAUNCH(&context->tally, XPU_FORWARD "LayerNorm::forward", layer_norm_kernel, kGrid, kBlock,
               context->stream, context->hidden, context->count, context->spin_ns);
  }
};

class SelfAttention {
 public:
  XPU_FRAME void forward(RequestContext* context) {
    projectQkv(context);
    computeScores(context);
    XPU_LAUNCH(&context->tally, XPU_FORWARD "SelfAttention::forward", attention_output_kernel,
               kGrid, kBlock, context->stream, context->hidden, context->count, context->spin_ns);
  }

 private:
  XPU_FRAME void projectQkv(RequestContext* context) {
    XPU_LAUNCH(&context->tally, XPU_FORWARD "SelfAttention::forward;SelfAttention::projectQkv",
               qkv_projection_kernel, kGrid, kBlock, context->stream, context->hidden,
               context->count, context->spin_ns);
  }
  XPU_FRAME void computeScores(RequestContext* context) {
    XPU_LAUNCH(&context->tally, XPU_FORWARD "SelfAttention::forward;SelfAttention::computeScores",
               attention_scores_kernel, kGrid, kBlock, context->stream, context->hidden,
               context->count, context->spin_ns);
    XPU_LAUNCH(&context->tally, XPU_FORWARD "SelfAttention::forward;SelfAttention::computeScores",
               softmax_kernel, kGrid, kBlock, context->stream, context->hidden, context->count,
               context->spin_ns);
  }
};

class FeedForward {
 public:
  XPU_FRAME void forward(RequestContext* context) {
    XPU_LAUNCH(&context->tally, XPU_FORWARD "FeedForward::forward", matmul_kernel<4>, kGrid, kBlock,
               context->stream, context->hidden, context->count, context->spin_ns);
    XPU_LAUNCH(&context->tally, XPU_FORWARD "FeedForward::forward", activation::gelu_kernel, kGrid,
               kBlock, context->stream, context->hidden, context->count, context->spin_ns);
    XPU_LAUNCH(&context->tally, XPU_FORWARD "FeedForward::forward", matmul_kernel<1>, kGrid, kBlock,
               context->stream, context->hidden, context->count, context->spin_ns);
  }
};

class TransformerLayer {
 public:
  XPU_FRAME void forward(RequestContext* context) {
    attention_norm_.forward(context);
    attention_.forward(context);
    feed_forward_norm_.forward(context);
    feed_forward_.forward(context);
  }

 private:
  LayerNorm attention_norm_;
  SelfAttention attention_;
  LayerNorm feed_forward_norm_;
  FeedForward feed_forward_;
};

class InferencePipeline {
 public:
  InferencePipeline(int layers, int sequence, unsigned long long spin_ns, bool event_time)
      : layers_(static_cast<size_t>(layers)), event_time_(event_time) {
    context_.sequence = sequence;
    context_.count = sequence * kModelWidth;
    context_.spin_ns = spin_ns;
    XPU_CUDA(cudaStreamCreateWithFlags(&context_.stream, cudaStreamNonBlocking));
    XPU_CUDA(
        cudaMallocHost(reinterpret_cast<void**>(&context_.host_tokens), context_.token_bytes()));
    XPU_CUDA(
        cudaMallocHost(reinterpret_cast<void**>(&context_.host_logits), context_.hidden_bytes()));
    XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&context_.tokens), context_.token_bytes()));
    XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&context_.hidden), context_.hidden_bytes()));
    XPU_CUDA(cudaEventCreate(&begin_));
    XPU_CUDA(cudaEventCreate(&end_));
    for (int i = 0; i < sequence; ++i) context_.host_tokens[i] = i * 31;
  }

  XPU_FRAME void runRequest() {
    copyTokensIn();
    if (event_time_) openGate();
    embed();
    for (TransformerLayer& layer : layers_) layer.forward(&context_);
    XPU_LAUNCH(&context_.tally, "InferencePipeline::runRequest", logits_kernel, kGrid, kBlock,
               context_.stream, context_.hidden, context_.count, context_.spin_ns);
    if (event_time_) XPU_CUDA(cudaEventRecord(end_, context_.stream));
    const bool ahead = std::chrono::steady_clock::now() - gate_launched_ < kGate;
    copyLogitsOut();
    if (event_time_) event_ns_.push_back(ahead ? eventNs() : 0);
  }

  void close() {
    XPU_CUDA(cudaEventDestroy(begin_));
    XPU_CUDA(cudaEventDestroy(end_));
    XPU_CUDA(cudaFree(context_.tokens));
    XPU_CUDA(cudaFree(context_.hidden));
    XPU_CUDA(cudaFreeHost(context_.host_tokens));
    XPU_CUDA(cudaFreeHost(context_.host_logits));
    XPU_CUDA(cudaStreamDestroy(context_.stream));
  }

  const workload::Tally& tally() const { return context_.tally; }
  const std::vector<uint64_t>& event_ns() const { return event_ns_; }
  uint64_t gates() const { return gates_; }

 private:
  static constexpr std::chrono::milliseconds kGate{10};

  XPU_FRAME void copyTokensIn() {
    XPU_CUDA(cudaMemsetAsync(context_.hidden, 0, context_.hidden_bytes(), context_.stream));
    context_.tally.CountMemset(context_.hidden_bytes());
    XPU_CUDA(cudaMemcpyAsync(context_.tokens, context_.host_tokens, context_.token_bytes(),
                             cudaMemcpyHostToDevice, context_.stream));
    context_.tally.CountCopy("HtoD", context_.token_bytes());
  }

  XPU_FRAME void openGate() {
    gate_launched_ = std::chrono::steady_clock::now();
    XPU_LAUNCH(&context_.tally, "InferencePipeline::runRequest;InferencePipeline::openGate",
               gate_kernel, dim3(1), dim3(1), context_.stream,
               static_cast<unsigned long long>(std::chrono::nanoseconds(kGate).count()));
    ++gates_;
    XPU_CUDA(cudaEventRecord(begin_, context_.stream));
  }

  XPU_FRAME void embed() {
    XPU_LAUNCH(&context_.tally, "InferencePipeline::runRequest;InferencePipeline::embed",
               embedding_kernel, kGrid, kBlock, context_.stream, context_.tokens, context_.hidden,
               context_.sequence, context_.spin_ns);
  }

  XPU_FRAME void copyLogitsOut() {
    XPU_CUDA(cudaMemcpyAsync(context_.host_logits, context_.hidden, context_.hidden_bytes(),
                             cudaMemcpyDeviceToHost, context_.stream));
    context_.tally.CountCopy("DtoH", context_.hidden_bytes());
    XPU_CUDA(cudaStreamSynchronize(context_.stream));
    context_.tally.CountSync();
  }

  uint64_t eventNs() {
    float milliseconds = 0;
    XPU_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
  }

  RequestContext context_;
  std::vector<TransformerLayer> layers_;
  bool event_time_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::chrono::steady_clock::time_point gate_launched_;
  std::vector<uint64_t> event_ns_;  // of each request
  uint64_t gates_ = 0;
};

XPU_FRAME void ServeRequests(InferencePipeline* pipeline, uint64_t warmup, uint64_t requests,
                             uint64_t* timed_ns) {
  uint64_t begin = 0;
  for (uint64_t i = 0; i < warmup + requests; ++i) {
    if (i == warmup) begin = workload::ClockNs(CLOCK_MONOTONIC);
    pipeline->runRequest();
  }
  *timed_ns = requests == 0 ? 0 : workload::ClockNs(CLOCK_MONOTONIC) - begin;
}

int main(int argc, char** argv) {
  const uint64_t requests = workload::OptionNumber(argc, argv, "--requests", 10);
  const uint64_t warmup = workload::OptionNumber(argc, argv, "--warmup", 0);
  const uint64_t layers = workload::OptionNumber(argc, argv, "--layers", 4);
  const uint64_t threads = workload::OptionNumber(argc, argv, "--threads", 1);
  const uint64_t sequence = workload::OptionNumber(argc, argv, "--seq", 128);
  const uint64_t kernel_us = workload::OptionNumber(argc, argv, "--kernel-us", 50);
  const uint64_t linger_ms = workload::OptionNumber(argc, argv, "--linger-ms", 0);
  const bool event_time = workload::Flag(argc, argv, "--event-time");

  std::vector<std::unique_ptr<InferencePipeline>> pipelines;
  for (uint64_t i = 0; i < threads; ++i) {
    pipelines.push_back(std::make_unique<InferencePipeline>(
        static_cast<int>(layers), static_cast<int>(sequence), kernel_us * 1000, event_time));
  }
  std::vector<uint64_t> timed_ns(threads);
  if (threads == 1) {
    ServeRequests(pipelines[0].get(), warmup, requests, timed_ns.data());
  } else {
    std::vector<std::thread> workers;
    for (uint64_t i = 0; i < threads; ++i) {
      workers.emplace_back(ServeRequests, pipelines[i].get(), warmup, requests, &timed_ns[i]);
    }
    for (std::thread& worker : workers) worker.join();
  }
  usleep(static_cast<useconds_t>(linger_ms * 1000));

  workload::Tally tally;
  std::string event_ns;
  uint64_t gates = 0;
  for (const auto& pipeline : pipelines) {
    pipeline->close();
    tally.Add(pipeline->tally());
    for (uint64_t ns : pipeline->event_ns()) {
      event_ns += (event_ns.empty() ? "" : ",") + std::to_string(ns);
    }
    gates += pipeline->gates();
  }
  workload::JsonLine json;
  json.Add("workload", "transformer");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("requests", (warmup + requests) * threads);
  json.Add("threads", threads);
  workload::AddTiming("request", requests * threads,
                      std::accumulate(timed_ns.begin(), timed_ns.end(), uint64_t{0}), &json);
  tally.Write(&json);
  if (event_time) {
    json.AddRaw("event_ns", "[" + event_ns + "]");
    json.Add("event_kernels", tally.launches() - gates);
  }
  workload::PrintLine(json.Finish());
  return 0;
}
