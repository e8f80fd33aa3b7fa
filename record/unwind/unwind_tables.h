// The unwind tables of the files that are mapped while recording: taken from the cache on disk, or
// built, on threads of their own, so that neither the program nor the recorder's loop waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/process/mapped_file.h"
#include "symbolize/unwind/unwind_table.h"

namespace xpu {

class UnwindTables {
 public:
  struct Options {
    std::string cache_folder;  // empty: nothing is kept on disk (UnwindCache::DefaultFolder)
    // That build. One more takes from the cache and builds small files, so that these never wait
    // for a large one.
    unsigned threads = 2;
    // Each takes so much longer. For tests.
    std::chrono::milliseconds delay{0};
  };

  using File = MappedFile;

  using Id = uint32_t;  // from 1; the same file gets the same one. 0: there is no room for it
  static constexpr size_t kMaxFiles = size_t{1} << 16;
  static constexpr uint64_t kMaxTableBytes = uint64_t{2} << 30;  // of all tables
  enum class State : uint8_t { kPending, kReady, kFailed };

  explicit UnwindTables(const Options& options);
  UnwindTables(UnwindTables&&) noexcept;
  ~UnwindTables();

  // Asks for the table of a file, returns at once. Small files are served before large ones. A file
  // that failed because no path led to it is tried again when other paths are given: it is pending
  // and then finished once more.
  Id Request(File file);

  State state(Id id) const;
  // Of a table that is ready. Holds until the end.
  UnwindTable table(Id id) const;
  // The link address of the first byte of an executable mapping of the file, for a table that is
  // ready (LinkAddressOfCodeMapping): where the mapping lies tells the bias.
  std::optional<uint64_t> LinkAddressOfMapping(Id id, uint64_t file_offset,
                                               uint64_t size_bytes) const;
  // As the kernel finds the file, for a table that is ready. nullopt: there is
  // none (the vdso), or its code lies at more than one distance from its link addresses.
  struct CodeFile {
    uint64_t device = 0;  // st_dev
    uint64_t inode = 0;
    uint64_t link_delta = 0;  // link address - offset in the file, of all code
  };
  std::optional<CodeFile> CodeFileOf(Id id) const;
  // A table that is ready cannot be used: a failure like others, once for a file.
  void Refuse(Id id, std::string reason);

  // Ready or failed since the last call.
  std::vector<Id> TakeFinished();
  // Readable while TakeFinished has something to give.
  int fd() const;
  // Waits until nothing is pending or CLOCK_MONOTONIC has reached `deadline_ns`. True: nothing is.
  bool WaitUntil(uint64_t deadline_ns);

  struct Failure {
    std::string path;
    std::string reason;
  };
  // Failed since the last call; files without call frame information (plain data, generated code)
  // are failures too, kNotFound ones without a place here.
  std::vector<Failure> TakeFailures();

  struct Counts {
    uint64_t cached = 0;  // taken from the disk
    uint64_t built = 0;
    uint64_t failed = 0;
  };
  Counts counts() const;
  // Why nothing is kept on disk; empty: it is, or no directory was given.
  const std::string& cache_problem() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
