#include "record/target/not_started.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/environment.h"

namespace xpu {
namespace {

constexpr mode_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;

std::string HintForPermission(const std::string& path, const FileRights& rights,
                              std::string_view who) {
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::absolute(path, failed);
  if (const auto directory = ClosedDirectory(file, rights)) {
    return Format("{} may not enter {}", who, *directory);
  }
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  if (S_ISDIR(info.st_mode)) return "it is a directory";
  if ((info.st_mode & kAnyExecute) == 0)
    return Format("it is not executable; if it is a program: chmod +x {}", path);
  if (!Allows(info, rights, S_IXOTH)) {
    return Format("{} may not execute it: its mode is {:o}", who, info.st_mode & 07777);
  }
  return "its file system is mounted noexec, its interpreter (after #!) may not be executed, or a "
         "security module forbids it";
}

}  // namespace

std::string HintForExec(const std::string& program, const std::string& path, int error_number,
                        const FileRights& rights, std::string_view who) {
  const bool is_path = program.find('/') != std::string::npos;
  if (error_number == EACCES) {
    // The search in PATH continues after a file that may not be executed, and returns this error at
    // its end.
    return path.empty() ? "the files with this name in PATH may not be executed"
                        : HintForPermission(path, rights, who);
  }
  if (error_number != ENOENT) return {};
  const bool is_command_line = program.find(' ') != std::string::npos;
  if (is_command_line && ::access(program.c_str(), F_OK) != 0) {
    return "give the program and its arguments as separate words, without quotes around them; "
           "for shell syntax: sh -c 'COMMAND'";
  }
  if (!is_path) return "it is not in PATH";
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0
             ? "the file exists, but not its interpreter (after #!, or the dynamic loader)"
             : "";
}

Error NotStarted(const ExecFailure& failure, const std::string& program, const TargetUser* user) {
  const int error_number = failure.error_number;
  if (failure.user_step != nullptr) {
    return SystemError(Format("--user {}: {}", user->name, failure.user_step), error_number,
                       failure.user_hint);
  }
  const char* directories = std::getenv("PATH");
  const std::string path =
      FindProgram(program, directories == nullptr ? "/bin:/usr/bin" : directories);
  std::string hint;
  if (user != nullptr) {
    const FileRights rights{.user = user->uid, .groups = user->groups};
    hint = HintForExec(program, path, error_number, rights, "user " + user->name);
  } else {
    const auto status = ReadFile("/proc/self/status");
    hint = HintForExec(program, path, error_number,
                       ParseFileRights(status.ok() ? status.value() : ""), "this user");
  }
  return SystemError(Format("{}: exec", program), error_number, std::move(hint));
}

}  // namespace xpu
