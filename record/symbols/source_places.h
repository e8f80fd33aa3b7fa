// Where the source files that a process names are opened: below its root, as its user.
//
// The reader has no capabilities, and root without them may not enter a directory of mode 0700 that
// belongs to another user, nor a home that NFS serves. Most often that is the home of the user who
// called sudo, who may read what is there. So that user reads what a process of root names and root
// itself is refused. Another root is left out: there, the number may be another user's.
//
// A process is looked at when its first code appears. By then it may have become another program,
// of another user, or have given its number to another process: the event that says so may come
// before that or later, and what was taken too late is not used.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "record/sink/event_sink.h"

namespace xpu {

struct SudoCaller {
  uid_t user = 0;
  gid_t group = 0;
};

struct SourcePlace {
  UniqueFd root;
  uid_t user = 0;
  gid_t group = 0;
  std::optional<SudoCaller> caller;  // reads what root is refused; only for processes of root
  std::string directory;             // that relative paths begin at; empty: not known
};

// What one process may open.
class SourceAccess {
 public:
  SourceAccess(std::shared_ptr<const SourcePlace> place, uint64_t taken_ns, uint64_t program_ns)
      : place_(std::move(place)), taken_ns_(taken_ns), program_ns_(program_ns) {}

  const std::shared_ptr<const SourcePlace>& place() const { return place_; }
  uint64_t taken_ns() const { return taken_ns_; }
  // When the program began that this is of, as far as that is known by now; 0: before the
  // recording. What a process named earlier, another program has named. Any thread.
  uint64_t program_ns() const { return program_ns_.load(std::memory_order_relaxed); }
  void SetProgram(uint64_t time_ns) { program_ns_.store(time_ns, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<const SourcePlace> place_;
  const uint64_t taken_ns_;
  std::atomic<uint64_t> program_ns_;
};

// A process that has named a file, and when.
struct SourceNamer {
  std::shared_ptr<const SourceAccess> access;  // nullptr: it had ended
  uint64_t time_ns = 0;

  // Whether the access is that of its program; asked once the events of that time have come.
  bool MayRead() const { return access != nullptr && access->program_ns() <= time_ns; }
};

class SourcePlaces : public EventObserver {
 public:
  // The process, as it is now, which has named something at `time_ns`. Without access if it has
  // ended, or there are too many.
  SourceNamer At(uint32_t pid, uint64_t time_ns) { return {AccessOf(pid), time_ns}; }

  void Observe(const ProcessEvent& event, std::string_view name) override;

 private:
  // Processes that have all of these in common have one place: root (device, inode), mount
  // namespace, user, group, directory. The caller of sudo follows from them.
  using Key = std::tuple<dev_t, ino_t, std::string, uid_t, gid_t, std::string>;

  std::shared_ptr<const SourcePlace> PlaceOf(uint32_t pid);
  std::shared_ptr<const SourceAccess> AccessOf(uint32_t pid);

  struct Program {
    uint64_t begin_ns = 0;
    std::vector<std::shared_ptr<SourceAccess>> taken;
  };

  std::map<Key, std::shared_ptr<const SourcePlace>> places_;
  std::unordered_map<uint32_t, Program> programs_;  // by pid
};

}  // namespace xpu
