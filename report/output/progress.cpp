#include "report/output/progress.h"

#include <system_error>
#include <utility>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "report/output/text.h"

namespace xpu {
namespace {

constexpr std::chrono::milliseconds kPatience(1'000);
constexpr std::chrono::milliseconds kEvery(200);
constexpr size_t kWidth = 79;
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Progress::Progress() : Progress(::isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1, kPatience) {}

Progress::Progress(int fd, std::chrono::milliseconds patience) : fd_(fd) {
  if (fd_ < 0) return;
  try {
    thread_ = std::thread([this, patience] { Run(patience); });
  } catch (const std::system_error&) {
    // At the limit of processes: without a word.
  }
}

void Progress::Begin(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  done_ = all_ = 0;
}

void Progress::Set(uint64_t done, uint64_t all) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  all_ = all;
}

void Progress::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::Run(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  for (auto wait = patience; !changed_.wait_for(lock, wait, [this] { return stopped_; });) {
    Show();
    wait = kEvery;
  }
  if (shown_) (void)WriteAll(fd_, kEraseLine, "stderr").ok();
}

void Progress::Show() {
  if (what_.empty()) return;
  std::string line = "xpu-report: " + what_;
  if (all_ > 0) {
    const double share = static_cast<double>(done_) / static_cast<double>(all_);
    AppendFormat(line, " ({:.0f} %)", 100 * (share < 1 ? share : 1));
  }
  shown_ = true;
  (void)WriteAll(fd_, std::string(kEraseLine) + ToWidth(line, kWidth), "stderr").ok();
}

}  // namespace xpu
