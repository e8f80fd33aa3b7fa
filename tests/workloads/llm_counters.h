// What llm_decode.cu knows that it did, to compare a capture with: launches by call path, copies,
// NVTX ranges. The format is that of --counts in its --help.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define LLM_NVTX 1
#endif

#include "json_line.h"

class Counters {
 public:
  // A function on the call path, while it runs.
  class Frame {
   public:
    Frame(Counters* counters, const char* signature)
        : counters_(counters), length_(counters->path_.size()) {
      std::string name(signature);  // void Layer::Forward(int)
      name.resize(name.find('('));
      name.erase(0, name.find_last_of(" *&") + 1);
      counters->path_ += (length_ == 0 ? "" : ";") + name;
    }
    ~Frame() { counters_->path_.resize(length_); }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Counters* counters_;
    size_t length_;
  };

  // Launches while a graph is captured make its nodes instead of running.
  void BeginCapture() { capturing_ = true; }
  void EndCapture() { capturing_ = false; }

  void CountLaunch(const char* kernel) { ++(capturing_ ? captured_ : launches_)[kernel][path_]; }
  void CountGraphLaunch() { ++graph_launches_[path_]; }
  void CountCopy(const char* direction, size_t bytes) { copies_[direction].Add(bytes); }
  void CountMemset(size_t bytes) { memset_.Add(bytes); }
  void CountAllocation(size_t bytes) { allocated_.Add(bytes); }
  void CountRange(const std::string& name) { ++ranges_[name]; }

  std::string Json(const std::vector<int>& tokens) const {
    workload::JsonLine json;
    WriteSites("launches", launches_, &json);
    WriteSites("captured", captured_, &json);
    json.BeginObject("copies");
    for (const auto& [direction, amount] : copies_) amount.Write(direction, &json);
    json.EndObject();
    memset_.Write("memset", &json);
    allocated_.Write("allocations", &json);
    WriteCounts("graph_launches_from", graph_launches_, &json);
    json.Add("graph_launches", Total(graph_launches_));
    uint64_t nodes = 0;
    for (const auto& [kernel, sites] : captured_) nodes += Total(sites);
    json.Add("kernels_per_graph", nodes);
    WriteCounts("nvtx", ranges_, &json);
    std::string list;
    for (const int token : tokens) list += (list.empty() ? "" : ",") + std::to_string(token);
    json.AddRaw("tokens", "[" + list + "]");
    return json.Finish();
  }

 private:
  using Counts = std::map<std::string, uint64_t>;
  using Sites = std::map<std::string, Counts>;  // by kernel and call path

  struct Amount {
    uint64_t count = 0, bytes = 0;
    void Add(size_t more) { ++count, bytes += more; }
    void Write(const std::string& key, workload::JsonLine* json) const {
      WriteCounts(key, {{"count", count}, {"bytes", bytes}}, json);
    }
  };

  static uint64_t Total(const Counts& counts) {
    uint64_t total = 0;
    for (const auto& [name, count] : counts) total += count;
    return total;
  }
  static void WriteCounts(const std::string& key, const Counts& counts, workload::JsonLine* json) {
    json->BeginObject(key);
    for (const auto& [name, count] : counts) json->Add(name, count);
    json->EndObject();
  }
  static void WriteSites(const std::string& key, const Sites& sites, workload::JsonLine* json) {
    json->BeginObject(key);
    for (const auto& [kernel, paths] : sites) WriteCounts(kernel, paths, json);
    json->EndObject();
  }

  std::string path_;
  bool capturing_ = false;
  Sites launches_, captured_;
  Counts graph_launches_, ranges_;
  std::map<std::string, Amount> copies_;
  Amount memset_, allocated_;
};

// Puts the function that it stands in on the call path.
#define FRAME(counters) const Counters::Frame counted_frame(counters, __PRETTY_FUNCTION__)

// An NVTX range, for as long as it lives.
class Range {
 public:
  Range(Counters* counters, const std::string& name, int payload) {
#ifdef LLM_NVTX
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name.c_str();
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    attributes.payload.iValue = payload;
    nvtxRangePushEx(&attributes);
    counters->CountRange(name);
#else
    static_cast<void>(counters), static_cast<void>(name), static_cast<void>(payload);
#endif
  }
  ~Range() {
#ifdef LLM_NVTX
    nvtxRangePop();
#endif
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};
