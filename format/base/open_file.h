// Opening what another user may have put there.
#pragma once

#include <string>

#include <sys/stat.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// A regular file, for reading.
struct RegularFile {
  UniqueFd fd;
  struct stat info {};
};

// Nothing else is opened: opening a device acts on it, opening a pipe waits for its other end.
// `more_flags`: O_NOFOLLOW. `name`: what errors call it, empty: the path. kInvalid: no regular
// file.
Result<RegularFile> OpenRegularFile(const std::string& path, int more_flags = 0,
                                    std::string name = {});
// The file that `place`, opened with O_PATH, is.
Result<RegularFile> OpenRegularFile(UniqueFd place, const std::string& name);

}  // namespace xpu
