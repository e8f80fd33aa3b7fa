// By what unwind tables are found again: the file's build-id, or where it lies.
#pragma once

#include <string>
#include <string_view>

#include "format/base/text.h"
#include "record/process/mapped_file.h"
#include "record/process/target_file.h"

namespace xpu {

inline std::string KeyOfBuildId(const std::string& build_id) { return "b" + build_id; }

inline std::string KeyOfPlace(const FileIdentity& identity, std::string_view path) {
  return Format("p{}:{}:{}", identity.device, identity.inode, path);
}

inline std::string KeyOf(const MappedFile& file) {
  if (!file.build_id.empty()) return KeyOfBuildId(file.build_id);
  return KeyOfPlace({file.device, file.inode}, file.paths.empty() ? "" : file.paths.back());
}

}  // namespace xpu
