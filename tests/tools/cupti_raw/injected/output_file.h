// The file that this process writes (cupti_raw.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cupti_raw.h"

namespace xpu::cupti_raw {

// Of that clock, in nanoseconds.
uint64_t Now(clockid_t clock);
uint32_t ThreadId();

// A payload under construction.
class Payload {
 public:
  template <typename T>
  void Add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    AddBytes(&value, sizeof(value));
  }
  void AddString(std::string_view text) {
    AddBytes(text.data(), text.size());
    bytes_.push_back(0);
  }
  void AddBytes(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  void Pad() { bytes_.resize((bytes_.size() + 7) & ~size_t{7}); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// The output file. Thread-safe; written through at every flush so that a kill loses little.
class Writer {
 public:
  bool Open(const std::string& path, uint64_t max_bytes);
  // `share_percent` of the size limit is open to this entry: callbacks must leave room for buffers.
  bool Write(EntryType type, Payload payload, uint64_t monotonic_ns, unsigned share_percent);
  void Flush();

 private:
  void Append(const void* data, size_t size);
  void WriteThrough();

  std::mutex mutex_;
  std::vector<uint8_t> pending_;
  uint64_t total_bytes_ = 0;
  uint64_t max_bytes_ = 0;
  int fd_ = -1;
};

}  // namespace xpu::cupti_raw
