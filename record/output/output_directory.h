// The directory that captures are written to, held open, so that files are created, renamed and
// removed there whatever its path leads to later.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/output_location.h"
#include "format/base/result.h"

namespace xpu {

// For directories in which nothing can be created or renamed.
inline constexpr char kOtherFileHint[] =
    "name another file with -o, or record from another directory";

// Identifies a file, since another one may have its name by now.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};
FileId IdOf(const struct stat& info);

struct NamedFile {
  std::string name;
  FileId id;
};

struct RenamedFile {
  std::string before;
  std::string now;
  FileId id;
};

class OutputDirectory {
 public:
  // `directory`: opened with O_PATH. `prefix`: what messages put before names, as "captures/".
  OutputDirectory(UniqueFd directory, std::string prefix);

  int fd() const { return directory_.get(); }
  std::string PathOf(const std::string& name) const { return prefix_ + name; }

  // A lock for recorders that look for earlier files, rename them and create their own, so that the
  // second of two recorders sees the first one's file. It is waited for only briefly, because
  // anyone who may read the directory can hold it.
  UniqueFd TakeTurn() const;

  std::vector<std::string> RegularFiles() const;
  bool HasRegularFile(const std::string& name) const;
  // Returns kBusy if a recorder writes to the file.
  Status CheckNotBeingWritten(const std::string& name) const;

  Result<RenamedFile> Rename(const std::string& from, const std::string& to) const;
  void RemoveFile(const std::string& name) const;
  // Both do nothing if another file has the name by now; RenameBack also does nothing if a file has
  // the original name.
  void Remove(const NamedFile& file) const;
  void RenameBack(const RenamedFile& file) const;

 private:
  bool IsStill(const std::string& name, const FileId& file) const;

  UniqueFd directory_;
  std::string prefix_;
};

using SharedDirectory = std::shared_ptr<const OutputDirectory>;

}  // namespace xpu
