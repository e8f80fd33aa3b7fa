// Finds code that programs have moved from its file to anonymous memory, as some do for huge pages
// (node --use-largepages, HHVM, Chrome): the kernel reports code without a file in its place.
//
// It belongs to the file only if its bytes are the file's, because a compiler may put the code that
// it generates where a library was. Then a mapping of the file is written, so that stacks go on
// through it and have names. Code that mremap(2) brings there is not looked at: the kernel does not
// report that, and the place keeps the file.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

enum class CodeOrigin : uint8_t {
  kFile,     // all of it is the file's
  kOther,    // none of it, or the process has ended
  kUnclear,  // only some pages are the file's, or the file cannot be found
};

// Compares memory of a process with a file from `file_offset` on: 256 pages at most, spread evenly.
// Breakpoints, relocations and other code in place of nops do not count as differences.
CodeOrigin CompareWithFile(uint32_t pid, uint64_t start, uint64_t end, const MappedFile& file,
                           uint64_t file_offset);

class MovedCode : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this object.
  explicit MovedCode(ProcessTable& processes) : processes_(processes) {
    processes.AddListener(this);
  }

  void OnReplace(uint32_t pid, uint64_t start, const CodeMapping& file) override;
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnExec(uint32_t pid) override { OnEnd(pid); }
  void OnEnd(uint32_t pid) override;

  // Compares what is there by now, one range at a time, and writes a mapping of its file, or of
  // memory again where the code was changed. Writable memory is compared once a second.
  void Apply(uint64_t now_ns, EventSink& sink);

 private:
  // Where code of a file was.
  struct Range {
    uint32_t pid = 0;
    uint64_t start = 0;
    CodeMapping file;
    CodeMapping memory = {};  // what is there now
    bool is_writable = false;
    bool holds_file = false;  // as of the last comparison
    bool was_file = false;    // as of any
    bool is_counted = false;
    uint64_t due_ns = std::numeric_limits<uint64_t>::max();  // when it is compared
  };

  ProcessTable& processes_;
  std::vector<Range> ranges_;
  bool is_writing_ = false;
  uint64_t next_ns_ = 0;  // when the next comparison may begin
};

}  // namespace xpu
