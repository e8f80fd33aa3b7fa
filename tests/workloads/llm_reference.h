// The parts of llm_decode.cu that need no GPU: the model's shape and weights, the choice of the
// next token, and the same model in plain C++.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "puppet.h"

constexpr int kVocabulary = 256;  // a token is a byte

struct Shape {
  int layers = 4;
  int dim = 256;
  int heads = 8;
  int kv_heads = 8;  // fewer than heads: several heads share keys and values

  int head_dim() const { return dim / heads; }
  int kv_dim() const { return kv_heads * head_dim(); }
  int ffn_dim() const { return 4 * dim; }
};

struct LayerWeights {
  const float *attention_norm, *query, *key, *value, *output, *ffn_norm, *gate, *up, *down;
};

// The places of all matrices in one array, on the host or on the GPU.
struct Weights {
  const float* embedding;
  std::vector<LayerWeights> layers;
  const float *final_norm, *logits;
  size_t size = 0;  // floats

  Weights(const Shape& shape, const float* first) {
    const auto take = [&](size_t rows, size_t columns) {
      size += rows * columns;
      return first == nullptr ? nullptr : first + size - rows * columns;
    };
    const size_t dim = shape.dim, kv_dim = shape.kv_dim(), ffn_dim = shape.ffn_dim();
    embedding = take(kVocabulary, dim);
    for (int i = 0; i < shape.layers; ++i) {
      layers.push_back({take(1, dim), take(dim, dim), take(kv_dim, dim), take(kv_dim, dim),
                        take(dim, dim), take(1, dim), take(ffn_dim, dim), take(ffn_dim, dim),
                        take(dim, ffn_dim)});
    }
    final_norm = take(1, dim);
    logits = take(kVocabulary, dim);
  }
};

// Uniform, scaled such that values keep their size from layer to layer; norms around 1.
inline std::vector<float> RandomWeights(const Shape& shape, uint64_t seed) {
  std::vector<float> all(Weights(shape, nullptr).size);
  std::mt19937_64 random(seed);
  const float width = std::sqrt(3.0f / static_cast<float>(shape.dim));
  for (float& weight : all) {
    weight = width * (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f);
  }
  const Weights places(shape, all.data());
  const auto raise = [&](const float* norm) {
    for (int i = 0; i < shape.dim; ++i) all[norm - all.data() + i] += 1.0f;
  };
  for (const LayerWeights& layer : places.layers) {
    raise(layer.attention_norm);
    raise(layer.ffn_norm);
  }
  raise(places.final_norm);
  return all;
}

// Greedy at temperature 0, otherwise a draw from the top_k likeliest (0: from all).
class Sampler {
 public:
  Sampler(float temperature, int top_k, uint64_t seed)
      : temperature_(temperature), top_k_(top_k), random_(seed) {}

  XPU_FRAME int Next(const float* logits) {
    std::array<std::pair<float, int>, kVocabulary> order;  // (-logit, token): the likeliest first
    for (int i = 0; i < kVocabulary; ++i) {
      order[i] = {std::isnan(logits[i]) ? HUGE_VALF : -logits[i], i};
    }
    std::sort(order.begin(), order.end());
    if (temperature_ <= 0) return order[0].second;
    const int count = top_k_ > 0 ? std::min(top_k_, kVocabulary) : kVocabulary;
    std::array<double, kVocabulary> up_to;
    double total = 0;
    for (int i = 0; i < count; ++i) {
      total += std::exp((order[0].first - order[i].first) / temperature_);
      up_to[i] = total;
    }
    const double draw = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
    const auto at = std::upper_bound(up_to.begin(), up_to.begin() + count, draw);
    return order[std::min<ptrdiff_t>(at - up_to.begin(), count - 1)].second;
  }

 private:
  float temperature_;
  int top_k_;
  std::mt19937_64 random_;
};

struct Text {
  std::vector<int> tokens;                 // those made, without the prompt
  std::vector<std::vector<float>> logits;  // before each of them; not by GenerateOnCpu
};

// The model on the CPU, one token at a time, as plainly as possible.
class Reference {
 public:
  Reference(const Shape& shape, const std::vector<float>& weights)
      : shape_(shape),
        weights_(shape, weights.data()),
        keys_(shape.layers),
        values_(shape.layers) {}

  // The logits after this token, which follows those of the calls before.
  XPU_FRAME std::vector<float> Forward(int token) {
    const float* row = weights_.embedding + static_cast<size_t>(token) * shape_.dim;
    std::vector<float> x(row, row + shape_.dim);
    for (int i = 0; i < shape_.layers; ++i) {
      Add(Attention(i, Norm(x, weights_.layers[i].attention_norm)), &x);
      Add(FeedForward(weights_.layers[i], Norm(x, weights_.layers[i].ffn_norm)), &x);
    }
    ++position_;
    return Multiply(weights_.logits, Norm(x, weights_.final_norm), kVocabulary);
  }

 private:
  using Vector = std::vector<float>;

  static void Add(const Vector& more, Vector* x) {
    for (size_t i = 0; i < x->size(); ++i) (*x)[i] += more[i];
  }

  static Vector Norm(const Vector& x, const float* weights) {
    float squares = 0;
    for (const float value : x) squares += value * value;
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(x.size()) + 1e-5f);
    Vector out(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * weights[i];
    return out;
  }

  static Vector Multiply(const float* matrix, const Vector& x, int rows) {
    Vector out(rows);
    for (float& value : out) {
      for (size_t i = 0; i < x.size(); ++i) value += matrix[i] * x[i];
      matrix += x.size();
    }
    return out;
  }

  void Rotate(Vector* x) const {
    const int head_dim = shape_.head_dim();
    for (size_t i = 0; i < x->size(); i += 2) {
      const float part = static_cast<float>(i % head_dim) / static_cast<float>(head_dim);
      const float angle = static_cast<float>(position_) * std::pow(10000.0f, -part);
      const float a = (*x)[i], b = (*x)[i + 1];
      (*x)[i] = a * std::cos(angle) - b * std::sin(angle);
      (*x)[i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  }

  Vector Attention(int layer, const Vector& x) {
    const LayerWeights& weights = weights_.layers[layer];
    Vector query = Multiply(weights.query, x, shape_.dim);
    Vector key = Multiply(weights.key, x, shape_.kv_dim());
    const Vector value = Multiply(weights.value, x, shape_.kv_dim());
    Rotate(&query);
    Rotate(&key);
    keys_[layer].insert(keys_[layer].end(), key.begin(), key.end());
    values_[layer].insert(values_[layer].end(), value.begin(), value.end());
    Vector out(shape_.dim);
    for (int head = 0; head < shape_.heads; ++head) AttendHead(layer, head, query, &out);
    return Multiply(weights.output, out, shape_.dim);
  }

  void AttendHead(int layer, int head, const Vector& query, Vector* out) const {
    const int head_dim = shape_.head_dim();
    const size_t kv_head = head / (shape_.heads / shape_.kv_heads) * head_dim;
    const size_t own = static_cast<size_t>(head) * head_dim;
    Vector weights(position_ + 1);
    for (int k = 0; k <= position_; ++k) {
      const float* key = &keys_[layer][static_cast<size_t>(k) * shape_.kv_dim() + kv_head];
      for (int i = 0; i < head_dim; ++i) weights[k] += query[own + i] * key[i];
      weights[k] /= std::sqrt(static_cast<float>(head_dim));
    }
    const float highest = *std::max_element(weights.begin(), weights.end());
    float total = 0;
    for (float& weight : weights) total += weight = std::exp(weight - highest);
    for (int k = 0; k <= position_; ++k) {
      const float* value = &values_[layer][static_cast<size_t>(k) * shape_.kv_dim() + kv_head];
      for (int i = 0; i < head_dim; ++i) (*out)[own + i] += weights[k] / total * value[i];
    }
  }

  Vector FeedForward(const LayerWeights& weights, const Vector& x) const {
    Vector gate = Multiply(weights.gate, x, shape_.ffn_dim());
    const Vector up = Multiply(weights.up, x, shape_.ffn_dim());
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0f + std::exp(-gate[i]));
    return Multiply(weights.down, gate, shape_.dim);
  }

  Shape shape_;
  Weights weights_;
  std::vector<Vector> keys_, values_;  // by layer, of all tokens so far
  int position_ = 0;
};

// The token after the prompt and one for each step.
inline Text GenerateOnCpu(Reference* model, const std::vector<int>& prompt, int steps,
                          Sampler* sampler) {
  Text text;
  std::vector<float> logits;
  for (const int token : prompt) logits = model->Forward(token);
  text.tokens.push_back(sampler->Next(logits.data()));
  for (int step = 0; step < steps; ++step) {
    logits = model->Forward(text.tokens.back());
    text.tokens.push_back(sampler->Next(logits.data()));
  }
  return text;
}

// Of the text's logits to the CPU's. The CPU is given the text's tokens: where two are nearly as
// likely, it might choose the other.
inline double LargestDifference(Reference* model, const std::vector<int>& prompt,
                                const Text& text) {
  std::vector<float> logits;
  for (const int token : prompt) logits = model->Forward(token);
  double largest = 0;
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    for (int k = 0; k < kVocabulary; ++k) {
      const double difference = std::fabs(text.logits[i][k] - logits[k]);
      largest = std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
    }
    logits = model->Forward(text.tokens[i]);
  }
  return largest;
}
