#include "record/process/process_owner.h"

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/text.h"
#include "record/base/process_status.h"

namespace xpu {
ProcessOwner ParseOwner(std::string_view status) {
  ProcessOwner owner;
  constexpr size_t kEffective = 1;  // real, effective, saved, of the file system
  if (const auto users = StatusWords(status, "Uid"); users.size() > kEffective) {
    owner.user = ParseNumber<uid_t>(users[kEffective]);
  }
  if (const auto pids = StatusWords(status, "NSpid"); !pids.empty()) {
    owner.own_pid = ParseNumber<uint32_t>(pids.back()).value_or(0);
  }
  return owner;
}

std::optional<ProcessOwner> OwnerOf(uint32_t pid) {
  auto status = ReadFile(Format("/proc/{}/status", pid));
  if (!status.ok()) return std::nullopt;
  return ParseOwner(*status);
}

bool MayTellOf(const ProcessOwner& owner, uid_t file_user) {
  return file_user == 0 || file_user == owner.user.value_or(::geteuid());
}

}  // namespace xpu
