// A process that reads one file's debug information, and what it answers.
//
// libdw is 30,000 lines of C that parse files which anybody may have made: the program that is
// recorded, a capture from elsewhere. A crash or a loop in it, a file that is truncated while it is
// mapped, or a pipe instead of a split unit, must cost no more than that file's lines. So
// libdw reads in a child that holds nothing but the open files (reader_confinement.h), has a
// deadline for each answer, and whose answers are checked.
//
// The child is the program itself, started anew: a fork of a process with threads could hold locks
// of theirs and all that was read until then, and would copy the page tables of a recorder. One for
// each file, so that no file's content has a say in what is known of another. It takes
// 4 to 11 ms where starting /bin/true takes 2.4.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/open_file.h"
#include "format/base/result.h"
#include "symbolize/dwarf/debug_source.h"
#include "symbolize/dwarf/reader_messages.h"

namespace xpu::dwarf {

class ReaderProcess final : public DebugSource {
 public:
  // `name`: of the file, for errors. Its descriptors stay the caller's. `alternate`: -1: none.
  static std::unique_ptr<ReaderProcess> Start(const RegularFile& file, int alternate,
                                              std::string name);
  // Reads texts below `root`, the root directory of a process, as that user sees them. Where this
  // process is not root, both have to be its own.
  static std::unique_ptr<ReaderProcess> StartForTexts(int root, uid_t user, gid_t group,
                                                      std::string name);
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;
  ~ReaderProcess() override;

  std::vector<std::vector<SourceFrame>> FramesAt(std::span<const uint64_t> addresses) override;
  std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> addresses) override;
  // Of a regular file of at most kMostTextBytes, without zeros. `path` begins with '/'.
  // kPermission: the user may not read it.
  Result<std::string> TextOf(const std::string& path);
  const std::string& failure() const override { return failure_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  explicit ReaderProcess(std::string name) : name_(std::move(name)) {}
  bool Spawn();
  bool Greet(const RegularFile& file, int alternate);
  bool Greet(ReaderGreeting greeting, std::span<const int> fds);
  // The reply; it stays as long as this. nullptr: there is none.
  const std::string* Ask(ReaderQuestion question, std::span<const uint64_t> addresses);
  bool Send(const void* bytes, size_t size);
  bool Receive(void* bytes, size_t size);
  // False: no event until the answer was due.
  bool Wait(short events);
  // When the present answer has to be there. Later while the child waits for a CPU: it is that of
  // others who keep the machine busy, and no fault of the file's.
  Time Due() const;
  std::chrono::nanoseconds TimeQueued() const;
  void Fail(std::string why);
  // Ends the child; how it ended.
  std::string End();

  std::string name_;
  UniqueFd socket_;
  pid_t child_ = -1;
  std::chrono::milliseconds patience_{};
  Time asked_;
  std::chrono::nanoseconds queued_before_{};
  std::vector<std::unique_ptr<std::string>> replies_;  // whose texts were given out
  std::string failure_;
};

}  // namespace xpu::dwarf
