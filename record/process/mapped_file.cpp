#include "record/process/mapped_file.h"

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/process_status.h"

namespace xpu {

std::vector<std::string> PathsOfMapping(const MappedCode& mapping) {
  std::vector<std::string> paths;
  if (!IsFilePath(mapping.path)) return paths;
  // The mapping itself leads to the file, whatever its path leads to by now, if the recorder may
  // follow it (CAP_CHECKPOINT_RESTORE).
  const uint32_t thread = LivingThread(mapping.pid);
  if (mapping.size_bytes != 0) {
    paths.push_back(Format("/proc/{}/map_files/{:x}-{:x}", thread, mapping.address,
                           mapping.address + mapping.size_bytes));
  }
  paths.push_back(Format("/proc/{}/root{}", thread, mapping.path));
  paths.emplace_back(mapping.path);
  return paths;
}

}  // namespace xpu
