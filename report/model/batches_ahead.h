// Reads a capture in a thread of its own while what was read is put into lists: both take about as
// long, so on two cores loading takes half the time.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "format/reader.h"

namespace xpu {

class BatchesAhead {
 public:
  // `reader` is this object's own until it ends.
  explicit BatchesAhead(CaptureReader& reader);
  BatchesAhead(const BatchesAhead&) = delete;
  BatchesAhead& operator=(const BatchesAhead&) = delete;
  ~BatchesAhead();

  // Returns the same as CaptureReader::Next.
  std::optional<EventBatch> Next();

 private:
  void Read();
  bool Put(std::optional<EventBatch> batch);

  CaptureReader& reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::optional<EventBatch>> batches_;  // the last one: none
  std::exception_ptr failed_;                      // memory ran out: as if it had happened in Next
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace xpu
