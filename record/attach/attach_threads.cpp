#include "record/attach/attach_threads.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/text.h"
#include "record/base/background_threads.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

ino_t InodeOf(const UniqueFd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 ? info.st_ino : 0;
}

// Inside a user namespace one user has many numbers: there, the user who made the namespace, or the
// outermost of several.
uint32_t UserOf(pid_t pid) {
  const UniqueFd own(::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
  UniqueFd inner(
      ::open(Format("/proc/{}/ns/user", LivingThread(pid)).c_str(), O_RDONLY | O_CLOEXEC));
  uid_t owner = 0;
  bool has_owner = false;
  while (inner && InodeOf(inner) != InodeOf(own)) {
    has_owner = ::ioctl(inner.get(), NS_GET_OWNER_UID, &owner) == 0;
    inner = UniqueFd(::ioctl(inner.get(), NS_GET_PARENT));
  }
  if (has_owner) return owner;
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
  for (auto& [number, user] : users_) {
    for (auto& [name, cgroup] : user.cgroups) {
      for (auto& [due_ns, job] : std::exchange(cgroup.waiting, {})) {
        Error error{ErrorKind::kBusy, "it waited for its turn", "try again"};
        if (job.attaching) error = job.attaching->GiveUp();
        error.message = "the recording ended before: " + error.message;
        Finish(job.target.pid, std::move(error));
      }
    }
  }
}

void AttachThreads::Request(AttachTarget target) {
  const uint32_t user = UserOf(target.pid);
  const std::string cgroup = CgroupOf(target.pid);
  const std::lock_guard lock(mutex_);
  if (++new_jobs_ > idle_ && threads_.size() < kMost) {
    // Not one of low priority: a thread of the program stands still while it works.
    std::thread started = StartWithoutSignals([this] { Run(); });
    if (started.joinable()) threads_.push_back(std::move(started));
  }
  if (threads_.empty()) {
    return Finish(target.pid, Error{ErrorKind::kSystem, "no thread could be started",
                                    "raise the limit of threads (ulimit -u)"});
  }
  users_[user].cgroups[cgroup].waiting.emplace(0, Job{std::move(target), nullptr});
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
  const uint64_t now_ns = MonotonicNs();
  User* user = nullptr;
  Cgroup* cgroup = nullptr;
  *next_ns = UINT64_MAX;
  for (auto& [number, of_user] : users_) {
    for (auto& [name, of_cgroup] : of_user.cgroups) {
      if (of_cgroup.waiting.empty()) continue;
      const uint64_t due_ns = of_cgroup.waiting.begin()->first;
      if (due_ns > now_ns) {
        *next_ns = std::min(*next_ns, due_ns);
        continue;
      }
      // Whoever ends a turn looks again.
      if (of_user.at_work >= kMost - at_work_ || of_cgroup.at_work >= kMost / 2 - of_user.at_work) {
        continue;
      }
      const bool is_better =
          user == nullptr || of_user < *user || (user == &of_user && of_cgroup < *cgroup);
      if (!is_better) continue;
      user = &of_user;
      cgroup = &of_cgroup;
    }
  }
  if (user == nullptr) return false;
  Job job = std::move(cgroup->waiting.extract(cgroup->waiting.begin()).mapped());
  if (!job.attaching) --new_jobs_;
  user->last_served = cgroup->last_served = ++turns_;
  for (size_t* count : {&at_work_, &user->at_work, &cgroup->at_work}) ++*count;
  lock.unlock();
  if (!job.attaching) job.attaching = std::make_unique<Attaching>(job.target);
  auto result = job.attaching->Continue();
  lock.lock();
  for (size_t* count : {&at_work_, &user->at_work, &cgroup->at_work}) --*count;
  if (result) {
    Finish(job.target.pid, *std::move(result));
  } else {
    const uint64_t due_ns = job.attaching->due_ns();
    cgroup->waiting.emplace(due_ns, std::move(job));
  }
  std::erase_if(user->cgroups, [](const auto& entry) {
    return entry.second.waiting.empty() && entry.second.at_work == 0;
  });
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
