#include "record/attach/attach_thread.h"

#include <utility>

#include <sys/eventfd.h>

#include "format/base/check.h"
#include "record/base/background_threads.h"

namespace xpu {

AttachThread::AttachThread() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

AttachThread::~AttachThread() {
  ends_ = true;
  has_work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AttachThread::Request(AttachTarget target) {
  const std::lock_guard lock(mutex_);
  wanted_.push_back(std::move(target));
  // Not a thread of low priority: a thread of the program stands still while this one works.
  if (!thread_.joinable()) thread_ = StartWithoutSignals([this] { Run(); });
  has_work_.notify_all();
}

std::vector<AttachThread::Finished> AttachThread::TakeFinished() {
  uint64_t count = 0;
  if (event_ && ::read(event_.get(), &count, sizeof(count)) < 0) return {};
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    for (AttachTarget& target : wanted_) {
      finished_.push_back({target.pid, Error{ErrorKind::kSystem, "no thread could be started",
                                             "raise the limit of threads (ulimit -u)"}});
    }
    wanted_.clear();
  }
  return std::exchange(finished_, {});
}

void AttachThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [&] { return ends_ || !wanted_.empty(); });
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
