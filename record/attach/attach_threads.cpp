#include "record/attach/attach_threads.h"

#include <utility>

#include <sys/eventfd.h>

#include "format/base/check.h"
#include "record/base/background_threads.h"

namespace xpu {

AttachThreads::AttachThreads() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

AttachThreads::~AttachThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void AttachThreads::Request(AttachTarget target) {
  const std::lock_guard lock(mutex_);
  wanted_.push_back(std::move(target));
  if (wanted_.size() > idle_ && threads_.size() < kMost) {
    // Not one of low priority: a thread of the program stands still while it works.
    std::thread started = StartWithoutSignals([this] { Run(); });
    if (started.joinable()) threads_.push_back(std::move(started));
  }
  has_work_.notify_one();
}

std::vector<AttachThreads::Finished> AttachThreads::TakeFinished() {
  uint64_t count = 0;
  const bool has_news = !event_ || ::read(event_.get(), &count, sizeof(count)) >= 0;
  const std::lock_guard lock(mutex_);
  if (!has_news && !threads_.empty()) return {};
  if (threads_.empty()) {
    for (AttachTarget& target : wanted_) {
      Result<Attached> failed = Error{ErrorKind::kSystem, "no thread could be started",
                                      "raise the limit of threads (ulimit -u)"};
      finished_.push_back({target.pid, std::move(failed)});
    }
    wanted_.clear();
  }
  return std::exchange(finished_, {});
}

void AttachThreads::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    has_work_.wait(lock, [&] { return ends_ || !wanted_.empty(); });
    --idle_;
    if (ends_) return;
    const AttachTarget target = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    Finished finished{target.pid, Attach(target, [this] { return ends_.load(); })};
    lock.lock();
    finished_.push_back(std::move(finished));
    const uint64_t one = 1;
    // Its counter cannot overflow.
    XPU_CHECK(!event_ || ::write(event_.get(), &one, sizeof(one)) == sizeof(one));
  }
}

}  // namespace xpu
