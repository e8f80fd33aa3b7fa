// Detects other profilers inside the program that request CUPTI while the injected library holds
// it: CUPTI refuses them, and the capture counts the refusals.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

class CuptiWatch {
 public:
  static Result<CuptiWatch> Open();
  CuptiWatch(CuptiWatch&&) noexcept;
  ~CuptiWatch();

  // Watches the libcupti that process `pid` has mapped from `path`, once per file. Call it only
  // after the injected library's own request has been answered, which would be counted otherwise.
  Status Watch(pid_t pid, const std::string& path);
  // The number of times that other profilers in process `pid` were refused.
  uint64_t Refusals(pid_t pid) const;

 private:
  class Impl;
  explicit CuptiWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
