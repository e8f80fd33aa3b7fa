// The code of the process to attach to: its mappings, the functions of its C library, and of each
// file that occurs in a stack the unwind table and where functions lie in which a thread must not
// be borrowed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/process/process_maps.h"
#include "record/unwind/unwind_tables.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {

// Addresses in the process.
struct TargetFunctions {
  uint64_t mmap = 0;
  uint64_t munmap = 0;
  uint64_t pthread_create = 0;
  uint64_t pthread_self = 0;
  uint64_t pthread_detach = 0;
  uint64_t dlopen = 0;
  uint64_t dlsym = 0;
  uint64_t dlerror = 0;
  uint64_t restorer = 0;  // "mov $15, %rax; syscall" of the C library
};

class TargetCode {
 public:
  explicit TargetCode(pid_t pid);

  // Reads /proc/PID/maps again.
  Status Refresh();
  const ProcessMapping* Find(uint64_t address) const { return FindMapping(mappings_, address); }

  // kUnsupported: the program is linked statically, or has no GNU C library of 2.34 or newer.
  Result<TargetFunctions> FindFunctions() const;
  // Where the library with this build-id (raw) is mapped already: the address of its symbol; 0: it
  // is not mapped.
  uint64_t FindInLibrary(const std::string& build_id, const char* symbol) const;

  // For WalkStack: what the tables that have been loaded say. Files that are missing are noted.
  CodeKind FindRule(uint64_t address, UnwindRule* rule);
  // Makes or loads the tables of the files that were noted. Takes milliseconds to seconds. False:
  // none were.
  bool LoadMissing();

  // Why a thread with this address in its stack must not be borrowed; nullptr: it may.
  const char* WhyUnsafe(uint64_t address) const;
  // Whether the address is in the C library.
  bool IsInLibc(uint64_t address) const;

 private:
  struct UnsafeRange {
    uint64_t end = 0;  // link address
    const char* why = nullptr;
  };
  struct File {
    UnwindTables::Id table = 0;              // 0: not asked for yet
    std::map<uint64_t, UnsafeRange> unsafe;  // by first link address
  };
  using FileKey = std::pair<uint64_t, uint64_t>;  // device, inode

  static FileKey KeyOf(const ProcessMapping& mapping);
  std::optional<uint64_t> LinkAddress(const ProcessMapping& mapping, uint64_t address) const;
  void Load(const ProcessMapping& mapping);

  pid_t pid_;
  std::vector<ProcessMapping> mappings_;
  UnwindTables tables_;
  std::map<FileKey, File> files_;
  std::vector<uint64_t> missing_;  // addresses
};

}  // namespace xpu
