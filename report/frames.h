// Frames with names, each distinct one once.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/base/ids.h"

namespace xpu {

using FrameId = Id<struct FrameTag, uint32_t>;

enum class FrameOrigin : uint8_t {
  kUser,    // code of the process
  kKernel,  // code of the operating system
  kOther,   // a process name, a CUDA call, GPU work, a placeholder
};

struct NamedFrame {
  FrameOrigin origin = FrameOrigin::kUser;
  bool is_cuda_internal = false;  // of libcuda, libcudart, libcupti or our own library
  bool is_api_entry = false;      // a C function of the CUDA API, wherever it lies
  std::string name;               // kernel frames without their suffix
  std::string module;             // the file's last path part, may be empty

  // The name as every view shows it.
  std::string Label() const { return origin == FrameOrigin::kKernel ? name + "_[k]" : name; }
};

class FrameTable {
 public:
  // Frames are the same when name, module and origin are.
  FrameId Intern(const NamedFrame& frame);
  FrameId Intern(std::string_view name) {
    return Intern({.origin = FrameOrigin::kOther, .name = std::string(name), .module = {}});
  }
  const NamedFrame& operator[](FrameId id) const { return frames_[id.value - 1]; }
  size_t size() const { return frames_.size(); }

 private:
  std::deque<NamedFrame> frames_;  // by id - 1
  std::unordered_map<std::string, FrameId> ids_;
};

}  // namespace xpu
