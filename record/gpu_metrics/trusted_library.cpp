#include "record/gpu_metrics/trusted_library.h"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include "cupti_inject/cupti_places.h"
#include "format/base/text.h"

namespace xpu::gpu_metrics {
namespace {

constexpr char kUseToolkit[] =
    "install a CUDA toolkit, or name a libcupti that belongs to root with --cupti-lib";

bool IsTrusted(const struct stat& info) {
  const bool is_owned = info.st_uid == 0 || info.st_uid == ::geteuid();
  const bool is_sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  return is_owned && ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0 || is_sticky);
}

// Without links; empty: there is no such file.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : std::string();
}

std::string InDirectory(const char* pattern, const cupti::LibraryVersion& version) {
  std::string path = pattern;
  if (const size_t number = path.find("%u"); number != std::string::npos) {
    path.replace(number, 2, std::to_string(version.cuda_major));
  }
  return path + "/" + version.file;
}

}  // namespace

Status CheckTrusted(const std::string& path) {
  const std::string real = RealPath(path);
  if (real.empty()) return SystemError(path, errno);
  for (size_t end = real.size(); end != std::string::npos;
       end = end == 0 ? std::string::npos : real.rfind('/', end - 1)) {
    const std::string part = end == 0 ? "/" : real.substr(0, end);
    struct stat info {};
    if (::stat(part.c_str(), &info) != 0) return SystemError(part, errno);
    if (IsTrusted(info)) continue;
    return Error{
        ErrorKind::kPermission,
        Format("{}: not loaded with root's rights, because others can write {}", path, part),
        kUseToolkit};
  }
  return Ok();
}

Result<std::string> FindCupti(const std::string& wanted) {
  if (!wanted.empty()) {
    XPU_RETURN_IF_ERROR(CheckTrusted(wanted));
    return RealPath(wanted);
  }
  std::optional<Error> untrusted;
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    for (const char* directory : cupti::kLibraryDirectories) {
      const std::string path = InDirectory(directory, version);
      if (::access(path.c_str(), R_OK) != 0) continue;
      Status status = CheckTrusted(path);
      if (status.ok()) return RealPath(path);
      if (!untrusted) untrusted = std::move(status).error();
    }
  }
  if (untrusted) return *std::move(untrusted);
  return Error{ErrorKind::kNotFound, "no libcupti of an installed CUDA toolkit was found",
               kUseToolkit};
}

}  // namespace xpu::gpu_metrics
