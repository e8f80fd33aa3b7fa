// The file that a capture is written to.
#pragma once

#include <string>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// Where the folder lets nothing be created or renamed.
inline constexpr char kOtherFileHint[] = "name another file with -o, or record from another folder";

// What is there already is renamed to its name with this behind.
inline constexpr char kOldSuffix[] = ".old";

// Creates the capture with mode 0600, never through a symbolic link and never over an existing
// file: that one is renamed to `path`.old first. Devices, pipes and "-" (standard output) are
// written as they are; for the reader of a fifo it waits a little. Under sudo the new file is given
// to the user who called. A file is locked (flock) while it is written: another recorder does not
// take it for an earlier capture (kBusy).
class OutputFile {
 public:
  static Result<OutputFile> Open(const std::string& path);
  // Where there is no file yet.
  static Result<OutputFile> CreateNew(const std::string& path);

  // What messages call it.
  const std::string& name() const { return name_; }
  // The descriptor, once.
  UniqueFd TakeFd() { return std::move(fd_); }

  // The recording did not happen: removes what Open created and puts the earlier file back.
  void Discard();

 private:
  UniqueFd fd_;
  std::string name_;
  std::string created_path_;  // empty: nothing was created
  bool kept_old_ = false;
};

// kBusy: a recorder writes to the file.
Status CheckNotBeingWritten(const std::string& path);

}  // namespace xpu
