#include "format/base/open_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "format/base/text.h"

namespace xpu {

Result<RegularFile> OpenRegularFile(UniqueFd place, const std::string& name) {
  RegularFile file;
  if (::fstat(place.get(), &file.info) != 0) return SystemError(Format("{}: fstat", name), errno);
  if (!S_ISREG(file.info.st_mode)) {
    return Error{ErrorKind::kInvalid, Format("{}: not a regular file", name), {}};
  }
  // The same file, whatever its name leads to by now. O_NONBLOCK: not to wait for who has a lease.
  file.fd.reset(::open(Format("/proc/self/fd/{}", place.get()).c_str(),
                       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.fd) return SystemError(Format("{}: open", name), errno);
  return file;
}

Result<RegularFile> OpenRegularFile(const std::string& path, int more_flags, std::string name) {
  if (name.empty()) name = path;
  UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC | more_flags));
  if (!place) return SystemError(Format("{}: open", name), errno);
  return OpenRegularFile(std::move(place), name);
}

}  // namespace xpu
