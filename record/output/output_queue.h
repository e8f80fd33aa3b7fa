// Blocks on their way to a disk or a pipe: written by a thread of their own, so that an output that
// takes no bytes for a while stops neither the recorder nor the program.
//
// What waits is bounded. Blocks beyond that are refused (kBusy), and the writer counts their
// events. After a write that failed the blocks after it are given up as well: they refer to what
// the lost one defined. Used by one thread; the other one is inside.
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
    // How long Close waits for an output that takes nothing.
    uint64_t patience_ns = 10'000'000'000;
  };

  // `name` is what errors call it.
  OutputQueue(UniqueFd fd, std::string name, Options options);
  // Without Close: what waits is not written.
  ~OutputQueue() override;

  Status Begin(std::string_view header) override;
  Status Write(std::string_view block, const BlockCounts& counts) override;
  BlockCounts TakeLost() override;
  // There is time now: Write waits for room, as long as the output takes something now and then.
  void WaitForRoom() { waits_ = true; }
  // Waits until all is written, as long as the output takes something now and then.
  Status Close() override;

 private:
  struct Shared;

  static void Run(const std::shared_ptr<Shared>& shared);
  static Status WriteOne(Shared& shared, std::string_view block);
  bool StartThread();
  // False: the output took nothing for too long before it was so.
  bool WaitFor(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_so);

  const Options options_;
  bool waits_ = false;
  bool has_waited_in_vain_ = false;
  // The thread's too: in a write that never returns it outlives this.
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace xpu
