#include "format/block_output.h"

#include <cerrno>

#include <unistd.h>

#include "format/base/file.h"

namespace xpu {

Status FdOutput::Begin(std::string_view header) { return WriteAll(fd_.get(), header, name_); }

Status FdOutput::Write(std::string_view block, const BlockCounts&) {
  return WriteAll(fd_.get(), block, name_);
}

Status FdOutput::Close() {
  const int fd = fd_.release();
  if (fd >= 0 && ::close(fd) != 0) return SystemError(name_ + ": close", errno);
  return Ok();
}

}  // namespace xpu
