#include "report/views/perfetto/block_compressor.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include <zlib.h>

#include "format/base/check.h"

namespace xpu {
namespace {

// More threads would not be busy: one thread makes the blocks.
constexpr size_t kMostThreads = 4;
// So that no thread waits while blocks are made, nor the maker for the slowest of them.
constexpr size_t kBlocksPerThread = 2;

void Compress(std::string_view raw, std::string& packed) {
  // A higher level takes twice the time for a tenth less; fixed codes save no time, and codes
  // without matches take more, for three times the size.
  constexpr int kLevel = 1;
  uLongf size = ::compressBound(static_cast<uLong>(raw.size()));
  if (packed.size() < size) packed.resize(size);
  const int result = ::compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                                 reinterpret_cast<const Bytef*>(raw.data()),
                                 static_cast<uLong>(raw.size()), kLevel);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  XPU_CHECK(result == Z_OK);
  packed.resize(size);
}

size_t ThreadsOfMachine() {
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 2, kMostThreads + 1) - 1;
}

}  // namespace

BlockCompressor::BlockCompressor(Write write, size_t threads) : write_(std::move(write)) {
  Start(threads == 0 ? ThreadsOfMachine() : threads);
}

void BlockCompressor::Start(size_t threads) {
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { Run(); });
  } catch (const std::system_error&) {
    // No more are to be had (ulimit -u, a container's limit); without any, Add compresses.
  }
}

BlockCompressor::~BlockCompressor() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BlockCompressor::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    added_.wait(lock, [this] { return is_stopping_ || next_ < blocks_.size(); });
    if (is_stopping_) return;
    Block& block = blocks_[next_++];
    lock.unlock();
    std::exception_ptr failed;
    try {
      Compress(block.raw, block.packed);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) failed_ = failed;
    block.is_done = true;
    done_.notify_one();
  }
}

void BlockCompressor::Add(std::string_view block) {
  if (threads_.empty()) {
    std::string packed;
    Compress(block, packed);
    return write_(packed);
  }
  WriteUntil(threads_.size() * kBlocksPerThread - 1);
  Block added;
  if (!spare_.empty()) {
    added = std::move(spare_.back());
    spare_.pop_back();
  }
  added.raw.assign(block);
  added.is_done = false;
  {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(added));
  }
  added_.notify_one();
}

void BlockCompressor::WriteUntil(size_t left) {
  std::unique_lock lock(mutex_);
  while (!blocks_.empty()) {
    if (!blocks_.front().is_done) {
      if (blocks_.size() <= left) return;
      done_.wait(lock, [this] { return blocks_.front().is_done; });
    }
    if (failed_) std::rethrow_exception(failed_);
    Block block = std::move(blocks_.front());
    blocks_.pop_front();
    --next_;
    lock.unlock();
    write_(block.packed);
    spare_.push_back(std::move(block));
    lock.lock();
  }
}

void BlockCompressor::Finish() { WriteUntil(0); }

}  // namespace xpu
