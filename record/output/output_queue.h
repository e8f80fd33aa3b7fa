// Writes blocks to a disk or a pipe on a thread of its own, so that an output that accepts nothing
// for a while stops neither the recorder nor the program.
//
// The queue is bounded. Blocks beyond the bound are refused (kBusy), and the writer counts their
// events. After a failed write, the queued blocks are dropped too, because they refer to
// definitions in the lost one. Used by one thread; the other thread is internal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "format/block_output.h"

namespace xpu {

class OutputQueue : public BlockOutput {
 public:
  struct Options {
    uint64_t limit_bytes = uint64_t{64} << 20;
    // How long Close waits for an output that accepts nothing.
    uint64_t patience_ns = 10'000'000'000;
  };

  // `name` is for error messages.
  OutputQueue(UniqueFd fd, std::string name, Options options);
  // Drops what is queued unless Close was called.
  ~OutputQueue() override;

  Status Begin(std::string_view header) override;
  Status Write(std::string_view block, const BlockCounts& counts) override;
  BlockCounts TakeLost() override;
  // From now on Write waits for free space for as long as the output keeps accepting bytes.
  void WaitForRoom() { waits_ = true; }
  // Waits until everything is written, for as long as the output keeps accepting bytes.
  Status Close() override;

 private:
  struct Shared;

  static void Run(const std::shared_ptr<Shared>& shared);
  static Status WriteOne(Shared& shared, std::string_view block);
  bool StartThread();
  // Returns false if the output accepted nothing for too long.
  bool WaitFor(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_so);

  const Options options_;
  bool waits_ = false;
  bool has_waited_in_vain_ = false;
  // Shared with the thread, which may outlive this object in a write that never returns.
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace xpu
