#include "record/attach/attach_threads.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/text.h"
#include "record/base/background_threads.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// Inside a user namespace one user has many numbers: there, the user who made the namespace, or the
// outermost of several.
uint32_t UserOf(pid_t pid) {
  UniqueFd inner(
      ::open(Format("/proc/{}/ns/user", LivingThread(pid)).c_str(), O_RDONLY | O_CLOEXEC));
  std::optional<uint32_t> owner;
  while (inner && !IsOwnUserNamespace(Format("/proc/self/fd/{}", inner.get()))) {
    uid_t of_namespace = 0;
    if (::ioctl(inner.get(), NS_GET_OWNER_UID, &of_namespace) == 0) owner = of_namespace;
    inner = UniqueFd(::ioctl(inner.get(), NS_GET_PARENT));
  }
  if (owner) return *owner;
  auto status = ReadFile(Format("/proc/{}/status", pid));
  const std::string_view users = status.ok() ? StatusField(*status, "Uid") : "";
  return ParseNumber<uint32_t>(users.substr(0, users.find('\t'))).value_or(0);
}

std::string CgroupOf(pid_t pid) {
  auto cgroup = ReadFile(Format("/proc/{}/cgroup", pid));
  return cgroup.ok() ? *std::move(cgroup) : "";
}

}  // namespace

AttachThreads::AttachThreads() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void AttachThreads::Join() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void AttachThreads::End() {
  Join();
  uint64_t next_ns = 0;
  while (auto turn = attaches_.Begin(UINT64_MAX, &next_ns)) {
    AttachJob& job = turn->job;
    Error error{ErrorKind::kBusy, "it waited for its turn", "try again"};
    if (job.attaching) error = job.attaching->GiveUp();
    error.message = "the recording ended before: " + error.message;
    Finish(job.target.pid, std::move(error));
    job.attaching.reset();
    attaches_.End(*std::move(turn));
  }
}

void AttachThreads::Request(AttachTarget target) {
  const uint32_t user = UserOf(target.pid);
  const std::string cgroup = CgroupOf(target.pid);
  const std::lock_guard lock(mutex_);
  if (++new_jobs_ > idle_ && threads_.size() < AttachTurns::kMost) {
    // Not one of low priority: a thread of the program stands still while it works.
    std::thread started = StartWithoutSignals([this] { Run(); });
    if (started.joinable()) threads_.push_back(std::move(started));
  }
  if (threads_.empty()) {
    return Finish(target.pid, Error{ErrorKind::kSystem, "no thread could be started",
                                    "raise the limit of threads (ulimit -u)"});
  }
  attaches_.Add(user, cgroup, {std::move(target), nullptr});
  has_work_.notify_one();
}

std::vector<AttachThreads::Finished> AttachThreads::TakeFinished() {
  uint64_t count = 0;
  if (event_ && ::read(event_.get(), &count, sizeof(count)) < 0) return {};
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void AttachThreads::Finish(pid_t pid, Result<Attached> result) {
  finished_.push_back({pid, std::move(result)});
  const uint64_t one = 1;
  // Its counter cannot overflow.
  XPU_CHECK(!event_ || ::write(event_.get(), &one, sizeof(one)) == sizeof(one));
}

// False: none may have one before *next_ns.
bool AttachThreads::TakeTurn(std::unique_lock<std::mutex>& lock, uint64_t* next_ns) {
  auto turn = attaches_.Begin(MonotonicNs(), next_ns);
  if (!turn) return false;
  AttachJob& job = turn->job;
  if (!job.attaching) --new_jobs_;
  lock.unlock();
  if (!job.attaching) job.attaching = std::make_unique<Attaching>(job.target);
  auto result = job.attaching->Continue();
  if (result) job.attaching.reset();
  lock.lock();
  if (result) Finish(job.target.pid, *std::move(result));
  attaches_.End(*std::move(turn));
  has_work_.notify_one();
  return true;
}

void AttachThreads::Run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    uint64_t next_ns = 0;
    if (TakeTurn(lock, &next_ns)) continue;
    ++idle_;
    const uint64_t now_ns = MonotonicNs();
    if (next_ns == UINT64_MAX) {
      has_work_.wait(lock);
    } else if (next_ns > now_ns) {
      has_work_.wait_for(lock, std::chrono::nanoseconds(next_ns - now_ns));
    }
    --idle_;
  }
}

}  // namespace xpu
