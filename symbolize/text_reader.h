// Reads texts that a process which nobody trusts has named: in a process without rights, below that
// process's root, as its user (dwarf/reader_process.h).
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

namespace dwarf {
class ReaderProcess;
}

class TextReader {
 public:
  // `root`: a descriptor of the root directory; it stays the caller's. Where the caller is not
  // root, both have to be its own.
  TextReader(int root, uid_t user, gid_t group);
  TextReader(TextReader&&) noexcept;
  TextReader& operator=(TextReader&&) noexcept;
  ~TextReader();

  // Of a regular file of at most a mebibyte, without zeros; links are not followed. `path` begins
  // with '/'. kPermission: the user may not read it.
  Result<std::string> Read(const std::string& path);
  // It answers nothing any more.
  bool has_failed() const;

 private:
  std::unique_ptr<dwarf::ReaderProcess> process_;
};

}  // namespace xpu
