// Owns the unwind tables of all files that are mapped while recording. They are loaded from the
// cache on disk or built, on threads of their own, so that neither the program nor the recorder's
// loop waits.
//
// The same file gets one table, whichever paths and processes lead to it; a table is verified
// before it is published, and stays valid until the end. A general unwinding library was rejected:
// inside a program it opens descriptors and takes the loader's lock, and BPF programs could not use
// it.
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
    std::string cache_directory;  // empty: without a cache on disk (UnwindCache::DefaultDirectory)
    // Threads that build. One more thread loads from the cache and builds small files, so that
    // these never wait for a large one.
    unsigned threads = 2;
    // Delays each table. For tests.
    std::chrono::milliseconds delay{0};
  };

  using File = MappedFile;

  using Id = uint32_t;  // from 1; the same file always gets the same id. 0: too many files
  static constexpr size_t kMaxFiles = size_t{1} << 16;
  static constexpr uint64_t kMaxTableBytes = uint64_t{2} << 30;  // for all tables
  enum class State : uint8_t { kPending, kReady, kFailed };

  explicit UnwindTables(const Options& options);
  UnwindTables(UnwindTables&&) noexcept;
  ~UnwindTables();

  // Requests the table of a file and returns at once. Small files are served first. A file that
  // failed because no path led to it is tried again when other paths are given: it becomes pending
  // and then finishes once more.
  Id Request(File file);

  State state(Id id) const;
  // A table that is ready; valid until this object is destroyed.
  UnwindTable table(Id id) const;
  // For a table that is ready: the link address of the first byte of an executable mapping of the
  // file (LinkAddressOfCodeMapping), from which the bias of the mapping follows.
  std::optional<uint64_t> LinkAddressOfMapping(Id id, uint64_t file_offset,
                                               uint64_t size_bytes) const;
  // For a table that is ready: how the kernel identifies the file. nullopt if it does not (the
  // vdso), or if the distance between code and link addresses varies.
  struct CodeFile {
    uint64_t device = 0;  // st_dev
    uint64_t inode = 0;
    uint64_t link_delta = 0;  // link address minus offset in the file, for all code
  };
  std::optional<CodeFile> CodeFileOf(Id id) const;
  // Turns a ready table into a failure, reported once per file.
  void Refuse(Id id, std::string reason);

  // Tables that became ready or failed since the last call.
  std::vector<Id> TakeFinished();
  // Readable while TakeFinished has results.
  int fd() const;
  // Waits until nothing is pending or CLOCK_MONOTONIC has reached `deadline_ns`. Returns true if
  // nothing is pending.
  bool WaitUntil(uint64_t deadline_ns);
  // Waits until each requested file has been found or has failed, or CLOCK_MONOTONIC has reached
  // `deadline_ns`. Tables may still be built.
  void WaitForLookups(uint64_t deadline_ns);

  struct Failure {
    std::string path;
    std::string reason;
  };
  // Failures since the last call. Files without call frame information (plain data, generated code)
  // fail too, with kNotFound, but are not reported here.
  std::vector<Failure> TakeFailures();

  struct Counts {
    uint64_t cached = 0;  // loaded from disk
    uint64_t built = 0;
    uint64_t failed = 0;
  };
  Counts counts() const;
  // Why there is no cache on disk; empty if there is one, or no directory was given.
  const std::string& cache_problem() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
