// A small decoder-only language model, as plain as it can be without being a toy: RMSNorm, rotary
// positions, attention with a cache of keys and values, SwiGLU. The prompt is worked on at once
// (prefill), then each step makes one token (decode), as launches or as one CUDA graph. With random
// weights it babbles, but its work is that of a model that does not.
//
//   nvcc -std=c++20 -O2 -g -o llm_decode llm_decode.cu
//
// --help says the options, and what is in a file of weights. The kernels are in llm_kernels.h.
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "gpu.h"
#include "llm_counters.h"
#include "llm_kernels.h"
#include "llm_options.h"
#include "llm_reference.h"

// The function that holds LAUNCH is the direct caller of cudaLaunchKernel.
#define LAUNCH(gpu, kernel, grid, block, ...)                                     \
  do {                                                                            \
    XPU_LAUNCH_UNCOUNTED(kernel, grid, block, (gpu)->device.stream, __VA_ARGS__); \
    (gpu)->device.counters->CountLaunch(#kernel);                                 \
  } while (false)

// All work is on one stream.
struct Device {
  explicit Device(Counters* count) : counters(count) {
    XPU_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Device() { XPU_CUDA(cudaStreamDestroy(stream)); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Counters* counters;
  cudaStream_t stream = nullptr;
};

// Memory of the GPU, zero at first.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(const Device& device, size_t count) {
    const size_t bytes = count * sizeof(T);
    XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), bytes));
    device.counters->CountAllocation(bytes);
    XPU_CUDA(cudaMemsetAsync(data_, 0, bytes, device.stream));
    device.counters->CountMemset(bytes);
  }
  ~DeviceArray() { XPU_CUDA(cudaFree(data_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

// What all layers share: the device and the values on their way through the model.
struct Gpu {
  Gpu(const Shape& of, size_t capacity, Counters* counters)
      : shape(of),
        device(counters),
        input(device, 1 + capacity),
        hidden(device, capacity * of.dim),
        normed(device, capacity * of.dim),
        query(device, capacity * of.dim),
        key(device, capacity * of.kv_dim()),
        value(device, capacity * of.kv_dim()),
        mixed(device, capacity * of.dim),
        projected(device, capacity * of.dim),
        gate(device, capacity * of.ffn_dim()),
        up(device, capacity * of.ffn_dim()),
        logits(device, kVocabulary) {}

  const int* position() const { return input.get(); }
  const int* tokens() const { return input.get() + 1; }

  Shape shape;
  Device device;
  DeviceArray<int> input;  // the position of the first token, then the tokens
  DeviceArray<float> hidden, normed, query, key, value, mixed, projected, gate, up, logits;
};

unsigned Blocks(int work, int per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

XPU_FRAME void RmsNorm(Gpu* gpu, const float* in, const float* weights, float* out, int count) {
  FRAME(gpu->device.counters);
  LAUNCH(gpu, rms_norm_kernel, dim3(count), dim3(kBlock), in, weights, out, gpu->shape.dim);
}

XPU_FRAME void MatMul(Gpu* gpu, const float* matrix, const float* in, float* out, int count,
                      int rows, int columns) {
  FRAME(gpu->device.counters);
  if (count == 1) {
    LAUNCH(gpu, matvec_kernel, dim3(Blocks(rows, kBlock / kWarp)), dim3(kBlock), matrix, in, out,
           rows, columns);
  } else {
    LAUNCH(gpu, matmul_kernel, dim3(Blocks(rows, kTile), Blocks(count, kTile)), dim3(kTile, kTile),
           matrix, in, out, count, rows, columns);
  }
}

XPU_FRAME void ResidualAdd(Gpu* gpu, float* data, const float* more, int size) {
  FRAME(gpu->device.counters);
  LAUNCH(gpu, residual_add_kernel, dim3(Blocks(size, kBlock)), dim3(kBlock), data, more, size);
}

class Layer {
 public:
  Layer(Gpu* gpu, const LayerWeights& weights, size_t capacity)
      : gpu_(gpu),
        weights_(weights),
        keys_(gpu->device, capacity * gpu->shape.kv_dim()),
        values_(gpu->device, capacity * gpu->shape.kv_dim()) {}

  XPU_FRAME void Forward(int count) {
    FRAME(gpu_->device.counters);
    RmsNorm(gpu_, gpu_->hidden.get(), weights_.attention_norm, gpu_->normed.get(), count);
    Attention(count);
    RmsNorm(gpu_, gpu_->hidden.get(), weights_.ffn_norm, gpu_->normed.get(), count);
    FeedForward(count);
  }

 private:
  XPU_FRAME void Attention(int count) {
    FRAME(gpu_->device.counters);
    const Shape& shape = gpu_->shape;
    MatMul(gpu_, weights_.query, gpu_->normed.get(), gpu_->query.get(), count, shape.dim,
           shape.dim);
    MatMul(gpu_, weights_.key, gpu_->normed.get(), gpu_->key.get(), count, shape.kv_dim(),
           shape.dim);
    MatMul(gpu_, weights_.value, gpu_->normed.get(), gpu_->value.get(), count, shape.kv_dim(),
           shape.dim);
    RotateAndCache(count);
    LAUNCH(gpu_, attention_kernel, dim3(shape.heads, count), dim3(kBlock), gpu_->query.get(),
           keys_.get(), values_.get(), gpu_->mixed.get(), gpu_->position(), shape.head_dim(),
           shape.heads / shape.kv_heads);
    MatMul(gpu_, weights_.output, gpu_->mixed.get(), gpu_->projected.get(), count, shape.dim,
           shape.dim);
    ResidualAdd(gpu_, gpu_->hidden.get(), gpu_->projected.get(), count * shape.dim);
  }

  XPU_FRAME void RotateAndCache(int count) {
    FRAME(gpu_->device.counters);
    const Shape& shape = gpu_->shape;
    LAUNCH(gpu_, rope_kernel, dim3(count), dim3(kBlock), gpu_->query.get(), gpu_->position(),
           shape.dim, shape.head_dim());
    LAUNCH(gpu_, rope_kernel, dim3(count), dim3(kBlock), gpu_->key.get(), gpu_->position(),
           shape.kv_dim(), shape.head_dim());
    LAUNCH(gpu_, append_cache_kernel, dim3(count), dim3(kBlock), gpu_->key.get(), gpu_->value.get(),
           keys_.get(), values_.get(), gpu_->position(), shape.kv_dim());
  }

  XPU_FRAME void FeedForward(int count) {
    FRAME(gpu_->device.counters);
    const int dim = gpu_->shape.dim, ffn_dim = gpu_->shape.ffn_dim();
    MatMul(gpu_, weights_.gate, gpu_->normed.get(), gpu_->gate.get(), count, ffn_dim, dim);
    MatMul(gpu_, weights_.up, gpu_->normed.get(), gpu_->up.get(), count, ffn_dim, dim);
    LAUNCH(gpu_, silu_multiply_kernel, dim3(Blocks(count * ffn_dim, kBlock)), dim3(kBlock),
           gpu_->gate.get(), gpu_->up.get(), count * ffn_dim);
    MatMul(gpu_, weights_.down, gpu_->gate.get(), gpu_->projected.get(), count, dim, ffn_dim);
    ResidualAdd(gpu_, gpu_->hidden.get(), gpu_->projected.get(), count * dim);
  }

  Gpu* gpu_;
  LayerWeights weights_;
  DeviceArray<float> keys_, values_;
};

class Model {
 public:
  // For texts of at most `capacity` tokens.
  Model(const Shape& shape, const std::vector<float>& weights, size_t capacity, Counters* counters)
      : gpu_(shape, capacity, counters),
        storage_(gpu_.device, weights.size()),
        weights_(shape, storage_.get()) {
    for (const LayerWeights& layer : weights_.layers) layers_.emplace_back(&gpu_, layer, capacity);
    XPU_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host_input_), (1 + capacity) * sizeof(int)));
    XPU_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host_logits_), kVocabulary * sizeof(float)));
    LoadWeights(weights);
  }
  ~Model() {
    XPU_CUDA(cudaFreeHost(host_input_));
    XPU_CUDA(cudaFreeHost(host_logits_));
  }

  // The next `count` tokens and the position of the first.
  XPU_FRAME void SetInput(int position, const int* tokens, int count) {
    host_input_[0] = position;
    std::copy(tokens, tokens + count, host_input_ + 1);
    const size_t bytes = (1 + static_cast<size_t>(count)) * sizeof(int);
    XPU_CUDA(cudaMemcpyAsync(gpu_.input.get(), host_input_, bytes, cudaMemcpyHostToDevice,
                             gpu_.device.stream));
    counters()->CountCopy("HtoD", bytes);
  }

  // From the input to the logits after its last token.
  XPU_FRAME void Forward(int count) {
    FRAME(counters());
    const int dim = gpu_.shape.dim;
    LAUNCH(&gpu_, embedding_kernel, dim3(count), dim3(kBlock), weights_.embedding, gpu_.tokens(),
           gpu_.hidden.get(), dim);
    for (int i = 0; i < gpu_.shape.layers; ++i) {
      const Range range(counters(), "layer " + std::to_string(i), count);
      layers_[i].Forward(count);
    }
    const float* last = gpu_.hidden.get() + static_cast<size_t>(count - 1) * dim;
    RmsNorm(&gpu_, last, weights_.final_norm, gpu_.normed.get(), 1);
    MatMul(&gpu_, weights_.logits, gpu_.normed.get(), gpu_.logits.get(), 1, kVocabulary, dim);
  }

  // Waits for them.
  XPU_FRAME const float* Logits() {
    const size_t bytes = kVocabulary * sizeof(float);
    XPU_CUDA(cudaMemcpyAsync(host_logits_, gpu_.logits.get(), bytes, cudaMemcpyDeviceToHost,
                             gpu_.device.stream));
    counters()->CountCopy("DtoH", bytes);
    XPU_CUDA(cudaStreamSynchronize(gpu_.device.stream));
    return host_logits_;
  }

  cudaStream_t stream() const { return gpu_.device.stream; }
  Counters* counters() const { return gpu_.device.counters; }

 private:
  XPU_FRAME void LoadWeights(const std::vector<float>& weights) {
    const size_t bytes = weights.size() * sizeof(float);
    XPU_CUDA(cudaMemcpyAsync(storage_.get(), weights.data(), bytes, cudaMemcpyHostToDevice,
                             gpu_.device.stream));
    counters()->CountCopy("HtoD", bytes);
  }

  Gpu gpu_;
  DeviceArray<float> storage_;
  Weights weights_;
  std::deque<Layer> layers_;
  int* host_input_ = nullptr;
  float* host_logits_ = nullptr;
};

// The launches of one decode step as a graph, captured at the first step.
class DecodeGraph {
 public:
  ~DecodeGraph() {
    if (executable_ != nullptr) XPU_CUDA(cudaGraphExecDestroy(executable_));
  }

  XPU_FRAME void Launch(Model* model) {
    FRAME(model->counters());
    if (executable_ == nullptr) Capture(model);
    XPU_CUDA(cudaGraphLaunch(executable_, model->stream()));
    model->counters()->CountGraphLaunch();
  }

 private:
  XPU_FRAME void Capture(Model* model) {
    FRAME(model->counters());
    cudaGraph_t graph = nullptr;
    model->counters()->BeginCapture();
    XPU_CUDA(cudaStreamBeginCapture(model->stream(), cudaStreamCaptureModeThreadLocal));
    model->Forward(1);
    XPU_CUDA(cudaStreamEndCapture(model->stream(), &graph));
    model->counters()->EndCapture();
    XPU_CUDA(cudaGraphInstantiate(&executable_, graph, 0));
    XPU_CUDA(cudaGraphDestroy(graph));
  }

  cudaGraphExec_t executable_ = nullptr;
};

// The whole prompt at once.
XPU_FRAME const float* Prefill(Model* model, const std::vector<int>& prompt) {
  FRAME(model->counters());
  const int count = static_cast<int>(prompt.size());
  const Range range(model->counters(), "prefill", count);
  model->SetInput(0, prompt.data(), count);
  model->Forward(count);
  return model->Logits();
}

// One token; `graph` may be null.
XPU_FRAME const float* DecodeStep(Model* model, DecodeGraph* graph, int position, int token) {
  FRAME(model->counters());
  const Range range(model->counters(), "decode step", position);
  model->SetInput(position, &token, 1);
  if (graph != nullptr) {
    graph->Launch(model);
  } else {
    model->Forward(1);
  }
  return model->Logits();
}

Sampler MakeSampler(const Options& options) {
  return {options.temperature, options.top_k, static_cast<uint64_t>(options.seed)};
}

// What tests/bench/overhead reads.
void PrintTiming(const Options& options, std::chrono::steady_clock::duration duration) {
  workload::JsonLine json;
  json.Add("workload", "llm_decode");
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  workload::AddTiming("token", static_cast<uint64_t>(std::max(0, options.steps - options.timing)),
                      static_cast<uint64_t>(ns), &json);
  std::printf("%s\n", json.Finish().c_str());
}

// The token after the prompt and one for each step.
XPU_FRAME Text Generate(Model* model, const Options& options, bool with_graph) {
  FRAME(model->counters());
  using Clock = std::chrono::steady_clock;
  const std::vector<int> prompt = options.PromptTokens();
  DecodeGraph graph;
  Sampler sampler = MakeSampler(options);
  Text text;
  const auto choose = [&](const float* logits) {
    text.logits.emplace_back(logits, logits + kVocabulary);
    text.tokens.push_back(sampler.Next(logits));
  };
  const Clock::time_point start = Clock::now();
  choose(Prefill(model, prompt));
  const Clock::time_point first = Clock::now();
  Clock::time_point warm = first;
  for (int step = 0; step < options.steps; ++step) {
    const int position = static_cast<int>(prompt.size()) + step;
    choose(DecodeStep(model, with_graph ? &graph : nullptr, position, text.tokens.back()));
    if (step + 1 == options.timing) warm = Clock::now();
  }
  const std::chrono::duration<double, std::milli> prefill = first - start;
  const Clock::time_point end = Clock::now();
  const std::chrono::duration<double, std::milli> decode = end - first;
  std::printf("prefill: %zu tokens, %.3f ms; decode%s: %d steps, %.3f ms\n", prompt.size(),
              prefill.count(), with_graph ? " with a graph" : "", options.steps, decode.count());
  if (options.timing >= 0) PrintTiming(options, end - warm);
  return text;
}

bool LogitsAreRight(const std::vector<float>& weights, const Options& options, const Text& text) {
  Reference model(options.shape, weights);
  const double largest = LargestDifference(&model, options.PromptTokens(), text);
  constexpr double kAllowed = 1e-3;
  std::printf("check: largest difference to the CPU's logits %.3g, allowed %.3g\n", largest,
              kAllowed);
  return largest <= kAllowed;
}

void PrintText(const Options& options, const Text& text) {
  std::string escaped;
  std::string list;
  for (const int token : text.tokens) {
    char byte[8];
    const bool plain = token >= ' ' && token <= '~' && token != '\\' && token != '"';
    std::snprintf(byte, sizeof(byte), plain ? "%c" : "\\x%02x", token);
    escaped += byte;
    list += " " + std::to_string(token);
  }
  std::printf("prompt: \"%s\"\ntext: \"%s\"\ntokens:%s\n", options.prompt.c_str(), escaped.c_str(),
              list.c_str());
}

// Returns whether all checks that were asked for are passed.
bool GenerateOnGpu(const std::vector<float>& weights, const Options& options) {
  Counters counters;
  Text text;
  bool right = true;
  {
    Model model(options.shape, weights, static_cast<size_t>(options.capacity()), &counters);
    text = Generate(&model, options, options.graph);
    PrintText(options, text);
    if (options.check) {
      const Text other = Generate(&model, options, !options.graph);
      const bool same = other.tokens == text.tokens;
      std::printf("check: tokens with and without a graph are %s\n", same ? "equal" : "different");
      right = LogitsAreRight(weights, options, text) && same;
    }
  }
  if (!options.counts.empty()) {
    const std::string json = counters.Json(text.tokens) + "\n";
    WriteFile(options.counts, json.data(), json.size());
  }
  return right;
}

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  const std::vector<float> weights = MakeWeights(options);
  if (!options.save_weights.empty()) {
    WriteFile(options.save_weights, weights.data(), weights.size() * sizeof(float));
  }
  if (options.cpu) {
    Reference model(options.shape, weights);
    Sampler sampler = MakeSampler(options);
    PrintText(options, GenerateOnCpu(&model, options.PromptTokens(), options.steps, &sampler));
    return 0;
  }
  return GenerateOnGpu(weights, options) ? 0 : 1;
}
