// What a workload knows that it did, to compare a capture with. One per thread, added up at the
// end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "json_line.h"

namespace workload {

class Tally {
 public:
  // `path` is the call path of the launch, outermost first, names joined by ';', up to the direct
  // caller of the CUDA function.
  void CountLaunch(const char* path, const char* kernel, uint64_t count = 1) {
    sites_[{path, kernel}] += count;
  }
  void CountCopy(const char* direction, uint64_t bytes) { Count(&copies_[direction], bytes); }
  void CountMemset(uint64_t bytes) { Count(&memsets_, bytes); }
  void CountSync() { ++syncs_; }

  void Add(const Tally& other) {
    for (const auto& [site, count] : other.sites_) sites_[site] += count;
    for (const auto& [direction, copies] : other.copies_) Merge(&copies_[direction], copies);
    Merge(&memsets_, other.memsets_);
    syncs_ += other.syncs_;
  }

  uint64_t launches() const {
    uint64_t total = 0;
    for (const auto& [site, count] : sites_) total += count;
    return total;
  }

  // "launches", "kernels" {name: n}, "sites" [{path, kernel, launches}], "copies", "memset",
  // "syncs".
  void Write(JsonLine* json) const {
    std::map<std::string, uint64_t> kernels;
    for (const auto& [site, count] : sites_) kernels[site.second] += count;
    json->Add("launches", launches());
    json->BeginObject("kernels");
    for (const auto& [kernel, count] : kernels) json->Add(kernel, count);
    json->EndObject();
    json->BeginArray("sites");
    for (const auto& [site, count] : sites_) {
      json->BeginObject("");
      json->Add("path", site.first);
      json->Add("kernel", site.second);
      json->Add("launches", count);
      json->EndObject();
    }
    json->EndArray();
    json->BeginObject("copies");
    for (const auto& [direction, copies] : copies_) WriteTransfers(direction, copies, json);
    json->EndObject();
    WriteTransfers("memset", memsets_, json);
    json->Add("syncs", syncs_);
  }

 private:
  struct Transfers {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };

  static void Count(Transfers* transfers, uint64_t bytes) {
    ++transfers->count;
    transfers->bytes += bytes;
  }
  static void Merge(Transfers* to, const Transfers& from) {
    to->count += from.count;
    to->bytes += from.bytes;
  }
  static void WriteTransfers(const std::string& key, const Transfers& transfers, JsonLine* json) {
    json->BeginObject(key);
    json->Add("count", transfers.count);
    json->Add("bytes", transfers.bytes);
    json->EndObject();
  }

  std::map<std::pair<std::string, std::string>, uint64_t> sites_;
  std::map<std::string, Transfers> copies_;
  Transfers memsets_;
  uint64_t syncs_ = 0;
};

}  // namespace workload
