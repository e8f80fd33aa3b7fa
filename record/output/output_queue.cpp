#include "record/output/output_queue.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/background_threads.h"
#include "record/base/size_text.h"

namespace xpu {
namespace {

// Small pieces show whether an output is slow or does not accept anything.
constexpr size_t kPieceBytes = size_t{64} << 10;

}  // namespace

struct OutputQueue::Shared {
  struct Block {
    std::string bytes;
    BlockCounts counts;
  };

  std::string name;
  UniqueFd fd;  // belongs to the thread once it runs
  std::atomic<uint64_t> taken_bytes = 0;
  std::atomic<bool> given_up = false;  // nobody waits for the rest

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Block> blocks;  // the first one is being written
  uint64_t waiting_bytes = 0;
  bool ends = false;           // no more blocks will come
  bool has_ended = false;      // of the thread
  BlockCounts lost;            // not yet reported
  std::optional<Error> error;  // of a lost block; not yet reported

  // Called with the mutex held.
  void GiveUpBlocks() {
    for (const Block& block : blocks) lost += block.counts;
    blocks.clear();
    waiting_bytes = 0;
  }
};

OutputQueue::OutputQueue(UniqueFd fd, std::string name, Options options)
    : options_(options), shared_(std::make_shared<Shared>()) {
  shared_->name = std::move(name);
  shared_->fd = std::move(fd);
}

OutputQueue::~OutputQueue() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->given_up = true;
    shared_->ends = true;
  }
  shared_->changed.notify_all();
  thread_.detach();
}

Status OutputQueue::Begin(std::string_view header) {
  return WriteAll(shared_->fd.get(), header, shared_->name);
}

Status OutputQueue::WriteOne(Shared& shared, std::string_view block) {
  while (!block.empty() && !shared.given_up) {
    const std::string_view piece = block.substr(0, kPieceBytes);
    XPU_RETURN_IF_ERROR(WriteAll(shared.fd.get(), piece, shared.name));
    shared.taken_bytes += piece.size();
    block.remove_prefix(piece.size());
  }
  return Ok();
}

void OutputQueue::Run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->ends || !shared->blocks.empty(); });
    if (shared->given_up || shared->blocks.empty()) break;
    // Adding elements to a deque does not move this one.
    const std::string& bytes = shared->blocks.front().bytes;
    lock.unlock();
    Status written = WriteOne(*shared, bytes);
    lock.lock();
    if (shared->given_up) break;
    if (written.ok()) {
      shared->waiting_bytes -= shared->blocks.front().bytes.size();
      shared->blocks.pop_front();
    } else {
      shared->error = std::move(written).error();
      shared->GiveUpBlocks();
    }
    shared->changed.notify_all();
  }
  // No other thread uses it any more. Closing may block too.
  const int fd = shared->fd.release();
  lock.unlock();
  const int close_errno = ::close(fd) == 0 ? 0 : errno;
  lock.lock();
  if (close_errno != 0 && !shared->error) {
    shared->error = SystemError(shared->name + ": close", close_errno, WriteHint(close_errno));
  }
  shared->has_ended = true;
  shared->changed.notify_all();
}

bool OutputQueue::StartThread() {
  if (thread_.joinable()) return true;
  // Without a thread the blocks are written here.
  thread_ = StartWithoutSignals([shared = shared_] { Run(shared); });
  return thread_.joinable();
}

Status OutputQueue::Write(std::string_view block, const BlockCounts& counts) {
  if (!StartThread()) return WriteAll(shared_->fd.get(), block, shared_->name);
  {
    std::unique_lock lock(shared_->mutex);
    const auto has_room = [&] {
      return shared_->error || shared_->waiting_bytes == 0 ||
             shared_->waiting_bytes + block.size() <= options_.limit_bytes;
    };
    // Waits in vain only once.
    if (waits_ && !has_room()) waits_ = WaitFor(lock, has_room);
    if (shared_->error) return *std::exchange(shared_->error, std::nullopt);
    if (const uint64_t waiting_bytes = shared_->waiting_bytes; !has_room()) {
      return Error{ErrorKind::kBusy,
                   Format("{}: too slow: {} are waiting to be written", shared_->name,
                          SizeText(waiting_bytes)),
                   {}};
    }
    shared_->waiting_bytes += block.size();
    shared_->blocks.push_back({std::string(block), counts});
  }
  shared_->changed.notify_all();
  return Ok();
}

BlockCounts OutputQueue::TakeLost() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->lost, BlockCounts());
}

bool OutputQueue::WaitFor(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_so) {
  constexpr auto kStep = std::chrono::milliseconds(50);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto patience = std::chrono::nanoseconds(has_waited_in_vain_ ? 0 : options_.patience_ns);
  uint64_t taken_bytes = shared_->taken_bytes;
  auto give_up = now() + patience;
  while (!shared_->changed.wait_for(lock, kStep, is_so)) {
    if (const uint64_t by_now = shared_->taken_bytes; by_now != taken_bytes) {
      taken_bytes = by_now;
      give_up = now() + patience;
    }
    if (now() >= give_up) {
      has_waited_in_vain_ = true;
      return false;
    }
  }
  return true;
}

Status OutputQueue::Close() {
  if (!thread_.joinable()) {
    const int fd = shared_->fd.release();
    if (fd >= 0 && ::close(fd) != 0) {
      return SystemError(shared_->name + ": close", errno, WriteHint(errno));
    }
    return Ok();
  }
  std::unique_lock lock(shared_->mutex);
  shared_->ends = true;
  shared_->changed.notify_all();
  if (WaitFor(lock, [this] { return shared_->has_ended; })) {
    lock.unlock();
    thread_.join();
    if (shared_->error) return *std::exchange(shared_->error, std::nullopt);
    return Ok();
  }
  shared_->given_up = true;
  const uint64_t missing_bytes = shared_->waiting_bytes;
  for (const Shared::Block& block : shared_->blocks) shared_->lost += block.counts;
  thread_.detach();
  return Error{ErrorKind::kSystem,
               Format("{}: accepted no data for {} s: its last {} are missing", shared_->name,
                      options_.patience_ns / 1'000'000'000, SizeText(missing_bytes)),
               "check its reader; what it has received so far can be read"};
}

}  // namespace xpu
