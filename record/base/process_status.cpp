#include "record/base/process_status.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
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

bool AllHaveEnded(int pidfd, int timeout_ms) {
  pollfd process{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&process, 1, timeout_ms) > 0;
}

bool MayDescribe(const ProcessOwner& owner, uid_t file_user) {
  return file_user == 0 || file_user == owner.user.value_or(::geteuid());
}

}  // namespace xpu
