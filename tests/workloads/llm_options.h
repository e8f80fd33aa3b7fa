// The command line of llm_decode.cu, and its weights from a seed or a file.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "llm_kernels.h"
#include "llm_reference.h"

inline constexpr const char* kHelp = R"(llm_decode: a small language model on the GPU

  --prompt TEXT        what to continue, byte by byte
  --steps N            tokens to decode, one a step, behind the one that the
                       prompt gives (32)
  --graph              decode with a CUDA graph
  --temperature T      0: the likeliest token (default); otherwise a draw
  --top-k K            draw from the K likeliest only
  --seed N             of random weights and draws (1)
  --layers N (4)  --dim N (256)  --heads N (8)
  --kv-heads N         fewer than heads: these share keys and values
  --weights FILE       instead of random ones: 32-bit floats, the matrices row
                       by row, a row for each output:
                         embedding [256, dim]
                         for each layer: attention norm [dim],
                           query [dim, dim], key [kv, dim], value [kv, dim],
                           output [dim, dim], ffn norm [dim],
                           gate [ffn, dim], up [ffn, dim], down [dim, ffn]
                         final norm [dim], logits [256, dim]
                       kv is kv-heads * dim / heads, ffn is 4 * dim
  --save-weights FILE  writes those in use
  --check              compares logits with the CPU's, and the tokens with and
                       without a graph
  --cpu                the CPU alone, without any CUDA call
  --timing W           prints how long the steps behind the first W took, as
                       a line of JSON
  --counts FILE        what the program did, as JSON: launches, and those that
                       were captured into a graph, by kernel and call path;
                       graph launches, copies, sets, allocations, NVTX ranges
                       where it was built with NVTX, tokens
)";

[[noreturn]] inline void Fail(const std::string& message) {
  std::fprintf(stderr, "llm_decode: %s\n", message.c_str());
  std::exit(2);
}

struct Options {
  Shape shape;
  int steps = 32;
  int top_k = 0;
  int seed = 1;
  int timing = -1;  // steps of warm-up; -1: no timing
  float temperature = 0;
  std::string prompt = "Once upon a time";
  std::string weights, save_weights, counts;
  bool graph = false, check = false, cpu = false;

  std::vector<int> PromptTokens() const {
    std::vector<int> tokens;
    for (const char c : prompt) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  int capacity() const { return static_cast<int>(prompt.size()) + steps; }
};

inline double Number(const std::string& option, const char* text, double lowest) {
  constexpr double kHighest = 1 << 20;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= lowest && value <= kHighest)) {
    Fail(option + " " + text + ": not a number from " + std::to_string(static_cast<int>(lowest)) +
         " to " + std::to_string(static_cast<int>(kHighest)));
  }
  return value;
}

inline void CheckShape(const Options& options) {
  const Shape& shape = options.shape;
  if (shape.dim % shape.heads != 0 || shape.head_dim() % 2 != 0 || shape.head_dim() > kMaxHeadDim) {
    Fail("--dim must be --heads times an even number of at most " + std::to_string(kMaxHeadDim));
  }
  if (shape.heads % shape.kv_heads != 0) Fail("--heads must be a multiple of --kv-heads");
  if (options.prompt.empty()) Fail("--prompt is empty");
  // Blocks of a grid in y, and indices in 32 bits.
  if (options.prompt.size() + options.steps > UINT16_MAX) Fail("the text is too long");
  if (static_cast<int64_t>(options.capacity()) * 4 * shape.dim > INT32_MAX) {
    Fail("--dim is too large for a text of this length");
  }
}

inline Options ParseOptions(int argc, char** argv) {
  Options options;
  Shape& shape = options.shape;
  shape.kv_heads = 0;
  const std::map<std::string, bool*> flags = {
      {"--graph", &options.graph}, {"--check", &options.check}, {"--cpu", &options.cpu}};
  const std::map<std::string, std::string*> texts = {{"--prompt", &options.prompt},
                                                     {"--weights", &options.weights},
                                                     {"--save-weights", &options.save_weights},
                                                     {"--counts", &options.counts}};
  const std::map<std::string, int*> positive = {{"--layers", &shape.layers},
                                                {"--dim", &shape.dim},
                                                {"--heads", &shape.heads},
                                                {"--kv-heads", &shape.kv_heads}};
  const std::map<std::string, int*> numbers = {{"--steps", &options.steps},
                                               {"--top-k", &options.top_k},
                                               {"--seed", &options.seed},
                                               {"--timing", &options.timing}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    if (++i == argc) Fail(name + ": unknown, or its value is missing (--help lists the options)");
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = argv[i];
    } else if (const auto one = positive.find(name); one != positive.end()) {
      *one->second = static_cast<int>(Number(name, argv[i], 1));
    } else if (const auto any = numbers.find(name); any != numbers.end()) {
      *any->second = static_cast<int>(Number(name, argv[i], 0));
    } else if (name == "--temperature") {
      options.temperature = static_cast<float>(Number(name, argv[i], 0));
    } else {
      Fail(name + ": unknown (--help lists the options)");
    }
  }
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  CheckShape(options);
  return options;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

inline File OpenFile(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), std::fclose);
  if (!file) Fail(path + ": " + std::strerror(errno));
  return file;
}

inline void WriteFile(const std::string& path, const void* data, size_t bytes) {
  File file = OpenFile(path, "wb");
  const bool written = std::fwrite(data, 1, bytes, file.get()) == bytes;
  if (std::fclose(file.release()) != 0 || !written) Fail(path + ": " + std::strerror(errno));
}

inline std::vector<float> MakeWeights(const Options& options) {
  if (options.weights.empty()) {
    return RandomWeights(options.shape, static_cast<uint64_t>(options.seed));
  }
  const File file = OpenFile(options.weights, "rb");
  std::vector<float> weights(Weights(options.shape, nullptr).size);
  const size_t read = std::fread(weights.data(), sizeof(float), weights.size(), file.get());
  if (read != weights.size() || std::fgetc(file.get()) != EOF) {
    Fail(options.weights + ": not the " + std::to_string(weights.size() * sizeof(float)) +
         " bytes of a model with these --layers, --dim, --heads and --kv-heads");
  }
  return weights;
}
