#include "record/symbols/source_places.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/output_location.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

constexpr size_t kMaxPlaces = 1024;  // each holds a descriptor
constexpr size_t kMaxProcesses = 65536;

bool IsOwnRoot(const struct stat& root) {
  struct stat own {};
  return ::stat("/", &own) == 0 && root.st_dev == own.st_dev && root.st_ino == own.st_ino;
}

// The last of the four ids of "Uid" and "Gid": with which the process opens files.
std::optional<uint32_t> FileSystemId(std::string_view status, std::string_view name) {
  const std::vector<std::string_view> words = StatusWords(status, name);
  return words.size() < 4 ? std::nullopt : ParseNumber<uint32_t>(words[3]);
}

// Neither root nor -1, which setresuid takes as no change, is another user to read as.
std::optional<SudoCaller> CallerOfSudo() {
  constexpr unsigned kUnchanged = ~0U;
  const std::optional<unsigned> user = NumberFromSudo("SUDO_UID");
  const std::optional<unsigned> group = NumberFromSudo("SUDO_GID");
  if (!user || !group || *user == 0 || *user == kUnchanged || *group == kUnchanged) {
    return std::nullopt;
  }
  return SudoCaller{.user = *user, .group = *group};
}

}  // namespace

std::shared_ptr<const SourcePlace> SourcePlaces::PlaceOf(uint32_t pid) {
  const std::string process = Format("/proc/{}/", LivingThread(pid));
  auto place = std::make_shared<SourcePlace>();
  place->root.reset(::open((process + "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat root {};
  auto status = ReadFile(process + "status");
  if (!place->root || ::fstat(place->root.get(), &root) != 0 || !status.ok()) return nullptr;
  const std::optional<uint32_t> user = FileSystemId(*status, "Uid");
  const std::optional<uint32_t> group = FileSystemId(*status, "Gid");
  if (!user || !group) return nullptr;
  place->user = *user;
  place->group = *group;
  // Of another root the kernel does not say it as the process sees it.
  const bool is_own_root = IsOwnRoot(root);
  if (is_own_root) place->directory = LinkText(process + "cwd");
  if (is_own_root && place->user == 0) place->caller = CallerOfSudo();
  const Key key(root.st_dev, root.st_ino, LinkText(process + "ns/mnt"), place->user, place->group,
                place->directory);
  const auto known = places_.find(key);
  if (known != places_.end()) return known->second;
  if (places_.size() >= kMaxPlaces) return nullptr;
  return places_[key] = std::move(place);
}

std::shared_ptr<const SourceAccess> SourcePlaces::AccessOf(uint32_t pid) {
  std::shared_ptr<const SourcePlace> place = PlaceOf(pid);
  if (place == nullptr) return nullptr;
  if (!programs_.contains(pid) && programs_.size() >= kMaxProcesses) return nullptr;
  Program& program = programs_[pid];
  if (program.taken.empty() || program.taken.back()->place() != place) {
    program.taken.push_back(
        std::make_shared<SourceAccess>(std::move(place), MonotonicNs(), program.begin_ns));
  }
  return program.taken.back();
}

void SourcePlaces::Observe(const ProcessEvent& event, std::string_view) {
  if (event.kind == ProcessEventKind::kExit && event.tid == event.pid) {
    programs_.erase(event.pid);
    return;
  }
  const bool is_new = event.kind == ProcessEventKind::kExec ||
                      (event.kind == ProcessEventKind::kFork && event.pid != event.parent_pid);
  if (!is_new || (!programs_.contains(event.pid) && programs_.size() >= kMaxProcesses)) return;
  Program& program = programs_[event.pid];
  program.begin_ns = std::max(program.begin_ns, event.time_ns);
  for (const auto& access : program.taken) {
    if (access->taken_ns() >= event.time_ns) access->SetProgram(program.begin_ns);
  }
  program.taken.clear();
}

}  // namespace xpu
