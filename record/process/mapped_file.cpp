#include "record/process/mapped_file.h"

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {

std::vector<std::string> PathsOfMapping(const MappedCode& mapping) {
  std::vector<std::string> paths;
  if (!IsFilePath(mapping.path)) return paths;
  // The mapping itself leads to the file, whatever its path leads to by now, if the recorder may
  // follow it (CAP_CHECKPOINT_RESTORE).
  if (mapping.size_bytes != 0) {
    paths.push_back(Format("/proc/{}/map_files/{:x}-{:x}", mapping.pid, mapping.address,
                           mapping.address + mapping.size_bytes));
  }
  paths.push_back(Format("/proc/{}/root{}", mapping.pid, mapping.path));
  paths.emplace_back(mapping.path);
  return paths;
}

}  // namespace xpu
