// The directory that captures are written to, held open: whatever its path leads to later, files
// are created, renamed and removed where the first look was.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/output_place.h"
#include "format/base/result.h"

namespace xpu {

// Where the directory lets nothing be created or renamed.
inline constexpr char kOtherFileHint[] =
    "name another file with -o, or record from another directory";

// Tells a file from another one that has its name by now.
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
  // `directory`: O_PATH. `prefix`: what messages put before a name, as "captures/".
  OutputDirectory(UniqueFd directory, std::string prefix);

  int fd() const { return directory_.get(); }
  std::string PathOf(const std::string& name) const { return prefix_ + name; }

  // Held by one recorder at a time that looks for earlier files, renames them and creates its own,
  // so that of two that begin together the second sees the first one's file. No longer than a
  // moment is waited for it: whoever may read the directory can keep it.
  UniqueFd TakeTurn() const;

  std::vector<std::string> RegularFiles() const;
  bool HasRegularFile(const std::string& name) const;
  // kBusy: a recorder writes to the file.
  Status CheckNotBeingWritten(const std::string& name) const;

  Result<RenamedFile> Rename(const std::string& from, const std::string& to) const;
  void RemoveFile(const std::string& name) const;
  // Both do nothing where another file has the name by now; the second one also where something has
  // the name from before.
  void Remove(const NamedFile& file) const;
  void RenameBack(const RenamedFile& file) const;

 private:
  bool IsStill(const std::string& name, const FileId& file) const;

  UniqueFd directory_;
  std::string prefix_;
};

using SharedDirectory = std::shared_ptr<const OutputDirectory>;

}  // namespace xpu
