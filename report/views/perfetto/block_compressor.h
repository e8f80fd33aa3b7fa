// Compresses the blocks of a trace on threads of its own, while the next ones are made: zlib takes
// as long as all that is written into them.
//
// Blocks leave in the order in which they came, through the thread that adds them: so the output
// has one user, and its errors are found where they always were. No more than a few blocks exist at
// once, so that a slow disk or a slow thread holds up the writer.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace xpu {

class BlockCompressor {
 public:
  using Write = std::function<void(std::string_view)>;

  // `write` gets each block in zlib's format. `threads`: 0 for what the machine has.
  explicit BlockCompressor(Write write, size_t threads = 0);
  BlockCompressor(const BlockCompressor&) = delete;
  BlockCompressor& operator=(const BlockCompressor&) = delete;
  // Drops what Finish did not write.
  ~BlockCompressor();

  void Add(std::string_view block);
  // Writes all that were added.
  void Finish();

 private:
  struct Block {
    std::string raw;
    std::string packed;
    bool is_done = false;
  };

  void Start(size_t threads);
  void Run();
  // Writes the first blocks as far as they are done, and waits until at most `left` remain.
  void WriteUntil(size_t left);

  const Write write_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable done_;
  std::deque<Block> blocks_;   // in order; threads hold on to theirs while others come and go
  size_t next_ = 0;            // of blocks_, for the next thread
  std::vector<Block> spare_;   // their memory is used again
  std::exception_ptr failed_;  // memory ran out: as if it had happened in Add
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace xpu
