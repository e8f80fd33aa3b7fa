// The file that a capture is written to.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/output/output_directory.h"

namespace xpu {

// An existing file is renamed to its name with this suffix.
inline constexpr char kOldSuffix[] = ".old";

// Creates the capture with mode 0600, never through a symbolic link and never over an existing
// file, which is first renamed to `path`.old. Devices, pipes and "-" (standard output) are written
// in location, also through a link to them (/dev/stdout, /proc/self/fd/3); the reader of a FIFO is
// waited for briefly. Under sudo the new file belongs to the calling user. The file is locked
// (flock) while it is written, so that another recorder does not treat it as an earlier capture
// (kBusy).
class OutputFile {
 public:
  static Result<OutputFile> Open(const std::string& path);
  // The file must not exist yet.
  static Result<OutputFile> CreateNew(SharedDirectory directory, const std::string& name);

  // The name for messages.
  const std::string& name() const { return name_; }
  // Returns the descriptor, once.
  UniqueFd TakeFd() { return std::move(fd_); }

  // Called if the recording does not happen: removes the created file, unless another file has its
  // name by now, and restores the earlier one.
  void Discard();

  // Only after CreateNew.
  const NamedFile& created() const { return *created_; }

 private:
  static Result<OutputFile> OpenStandardOutput();
  Status KeepOld(const std::string& name);
  Status Create(const std::string& name);

  UniqueFd fd_;
  std::string name_;
  SharedDirectory directory_;  // for created_ and kept_
  std::optional<NamedFile> created_;
  std::optional<RenamedFile> old_;
};

// The directory entry of a capture. kInvalid: a link leads to a file, or the path is a directory.
struct OutputName {
  SharedDirectory directory;
  std::string name;
  OutputLocation location;  // without its directory
};
Result<OutputName> FindOutput(const std::string& path);

// Creates the directory that captures go into, if it does not exist.
Status CreateDirectoryFor(const std::string& path);

}  // namespace xpu
