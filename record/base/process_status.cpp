#include "record/base/process_status.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>

#include <poll.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/split.h"
#include "format/base/text.h"
#include "record/base/clock.h"

namespace xpu {

uint32_t LivingThread(uint32_t pid) {
  const auto has_ended = [](uint32_t tid) {
    char text[1];
    return ::readlink(Format("/proc/{}/root", tid).c_str(), text, sizeof(text)) < 0 &&
           errno == ENOENT;
  };
  if (!has_ended(pid)) return pid;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(Format("/proc/{}/task", pid), failed), end;
       !failed && at != end; at.increment(failed)) {
    const auto tid = ParseNumber<uint32_t>(at->path().filename().native());
    if (tid && !has_ended(*tid)) return *tid;
  }
  return pid;
}

std::string_view StatusField(std::string_view status, std::string_view name) {
  const std::string line = "\n" + std::string(name) + ":";
  const size_t at = status.find(line);
  if (at == std::string_view::npos) return {};
  std::string_view value = status.substr(at + line.size());
  value = value.substr(0, value.find('\n'));
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  return value;
}

std::vector<std::string_view> StatusWords(std::string_view status, std::string_view name) {
  return Split(StatusField(status, name), " \t");
}

std::string LinkText(const std::string& path) {
  std::array<char, PATH_MAX> text;
  const ssize_t bytes = ::readlink(path.c_str(), text.data(), text.size());
  const bool is_whole = bytes > 0 && static_cast<size_t>(bytes) < text.size();
  return is_whole ? std::string(text.data(), static_cast<size_t>(bytes)) : std::string();
}

std::string ReadComm(const std::string& path) {
  auto text = ReadFile(path);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

bool IsRunnable(pid_t pid) {
  auto text = ReadFile(Format("/proc/{}/stat", pid));
  if (!text.ok()) return false;
  const size_t end_of_name = text->rfind(')');  // names may contain parentheses
  return end_of_name != std::string::npos && text->compare(end_of_name, 4, ") R ") == 0;
}

uint64_t StatusBits(std::string_view status, std::string_view name) {
  constexpr int kHexadecimal = 16;
  const std::string_view field = StatusField(status, name);
  uint64_t bits = 0;
  std::from_chars(field.data(), field.data() + field.size(), bits, kHexadecimal);
  return bits;
}

ProcessStat ParseProcessStat(std::string_view text) {
  // pid (name) state parent ...: the name may contain anything.
  constexpr int kParent = 2;
  constexpr int kStart = 20;
  ProcessStat stat;
  const size_t behind_name = text.rfind(')');
  if (behind_name == std::string_view::npos) return stat;
  text.remove_prefix(behind_name + 1);
  for (int field = 1; field <= kStart && !text.empty(); ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (field == kParent) std::from_chars(word.data(), word.data() + word.size(), stat.parent_pid);
    if (field == kStart) std::from_chars(word.data(), word.data() + word.size(), stat.start_ticks);
  }
  return stat;
}

uint64_t AgeNs(uint64_t ticks) {
  timespec since_boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const uint64_t boot_ns = static_cast<uint64_t>(since_boot.tv_sec) * 1'000'000'000 +
                           static_cast<uint64_t>(since_boot.tv_nsec);
  const auto per_second = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return boot_ns - std::min(boot_ns, ticks * (1'000'000'000 / per_second));
}

ProcessOwner ParseOwner(std::string_view status) {
  ProcessOwner owner;
  constexpr size_t kEffective = 1;  // real, effective, saved, file system
  if (const auto users = StatusWords(status, "Uid"); users.size() > kEffective) {
    owner.user = ParseNumber<uid_t>(users[kEffective]);
  }
  if (const auto pids = StatusWords(status, "NSpid"); !pids.empty()) {
    owner.own_pid = ParseNumber<uint32_t>(pids.back()).value_or(0);
  }
  return owner;
}

std::optional<ProcessOwner> OwnerOf(uint32_t pid) {
  auto status = ReadFile(Format("/proc/{}/status", pid));
  if (!status.ok()) return std::nullopt;
  return ParseOwner(*status);
}

uint64_t BeganUnixNs(uint32_t pid) {
  auto stat = ReadFile(Format("/proc/{}/stat", pid));
  return stat.ok() ? RealtimeNs() - AgeNs(ParseProcessStat(*stat).start_ticks) : 0;
}

bool AllHaveEnded(int pidfd, int timeout_ms) {
  pollfd process{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&process, 1, timeout_ms) > 0;
}

bool MayDescribe(const ProcessOwner& owner, uid_t file_user) {
  return file_user == 0 || file_user == owner.user.value_or(::geteuid());
}

}  // namespace xpu
