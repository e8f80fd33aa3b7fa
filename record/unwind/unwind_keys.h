// The keys of unwind tables: the file's build-id, or its identity and path.
#pragma once

#include <string>
#include <string_view>

#include "format/base/text.h"
#include "record/process/mapped_file.h"
#include "record/process/target_file.h"

namespace xpu {

inline std::string KeyOfBuildId(const std::string& build_id) { return "b" + build_id; }

inline std::string KeyOfIdentity(const FileIdentity& identity, std::string_view path) {
  return Format("p{}:{}:{}", identity.device, identity.inode, path);
}

inline std::string KeyOf(const MappedFile& file) {
  if (!file.build_id.empty()) return KeyOfBuildId(file.build_id);
  return KeyOfIdentity({file.device, file.inode}, file.paths.empty() ? "" : file.paths.back());
}

}  // namespace xpu
