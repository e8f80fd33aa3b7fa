#include "report/model/batches_ahead.h"

#include <system_error>
#include <utility>

namespace xpu {
namespace {

// More would take more memory, some MB each, and no less time.
constexpr size_t kMostAhead = 2;

}  // namespace

BatchesAhead::BatchesAhead(CaptureReader& reader) : reader_(reader) {
  try {
    thread_ = std::thread([this] { Read(); });
  } catch (const std::system_error&) {
    // No thread is to be had (ulimit -u, a container's limit): Next reads.
  }
}

BatchesAhead::~BatchesAhead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchesAhead::Read() {
  try {
    bool has_more = true;
    while (has_more) {
      std::optional<EventBatch> batch = reader_.Next();
      has_more = batch.has_value();
      if (!Put(std::move(batch))) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = std::current_exception();
  }
  changed_.notify_all();
}

// False: nobody wants it.
bool BatchesAhead::Put(std::optional<EventBatch> batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || batches_.size() < kMostAhead; });
  if (stopped_) return false;
  batches_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

std::optional<EventBatch> BatchesAhead::Next() {
  if (!thread_.joinable()) return reader_.Next();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failed_ || !batches_.empty(); });
  if (batches_.empty()) std::rethrow_exception(failed_);
  std::optional<EventBatch> batch = std::move(batches_.front());
  if (batch) batches_.pop_front();  // the end stays
  changed_.notify_all();
  return batch;
}

}  // namespace xpu
