// The file that a capture is written to.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/output/output_directory.h"

namespace xpu {

// What is there already is renamed to its name and this.
inline constexpr char kOldSuffix[] = ".old";

// Creates the capture with mode 0600, never through a symbolic link and never over an existing
// file: that one is renamed to `path`.old first. Devices, pipes and "-" (standard output) are
// written as they are, also where a link leads to them (/dev/stdout, /proc/self/fd/3); for the
// reader of a fifo it waits a little. Under sudo the new file is given to the user who called. A
// file is locked (flock) while it is written: another recorder does not take it for an earlier
// capture (kBusy).
class OutputFile {
 public:
  static Result<OutputFile> Open(const std::string& path);
  // The file must not exist yet.
  static Result<OutputFile> CreateNew(SharedDirectory directory, const std::string& name);

  // What messages call it.
  const std::string& name() const { return name_; }
  // The descriptor, once.
  UniqueFd TakeFd() { return std::move(fd_); }

  // The recording did not happen: removes what this created, unless another file has taken its
  // place, and puts the earlier file back.
  void Discard();

  // Of CreateNew.
  const NamedFile& created() const { return *created_; }

 private:
  static Result<OutputFile> OpenStandardOutput();
  Status KeepOld(const std::string& name);
  Status Create(const std::string& name);

  UniqueFd fd_;
  std::string name_;
  SharedDirectory directory_;  // of the next two
  std::optional<NamedFile> created_;
  std::optional<RenamedFile> old_;
};

// The place of a capture. kInvalid: a link leads to a file, or the path is that of a directory.
struct OutputName {
  SharedDirectory directory;
  std::string name;
  OutputPlace place;  // but for the directory
};
Result<OutputName> FindOutput(const std::string& path);

}  // namespace xpu
