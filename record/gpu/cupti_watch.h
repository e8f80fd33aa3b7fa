// Other profilers inside the program that ask for CUPTI while we hold it: they get nothing, and the
// capture says so.
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

  // Watches the libcupti that process `pid` has mapped under `path`, once per file. Our own request
  // must have been answered before.
  Status Watch(pid_t pid, const std::string& path);
  // How often other profilers in process `pid` were refused.
  uint64_t Refusals(pid_t pid) const;

 private:
  class Impl;
  explicit CuptiWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
