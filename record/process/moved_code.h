// Finds code that programs have moved from its file to anonymous memory, as some do for huge pages
// (node --use-largepages, HHVM, Chrome): the kernel reports code without a file in its place.
//
// It belongs to the file only if its bytes are the file's, because a compiler may put the code that
// it generates where a library was. Then a mapping of the file is written, so that stacks go on
// through it and have names. Code that mremap(2) brings there is not looked at: the kernel does not
// report that, and the place keeps the file.
#pragma once

#include <cstdint>
#include <vector>

#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace xpu {

// Compares memory of a process with a file from `file_offset` on: 256 pages at most, spread evenly.
// In each page 1 byte in 16 may differ, because programs patch nops, breakpoints and relocations;
// pages of other code differ in at least 15 bytes of 16 (node, glibc, PHP).
bool HoldsCodeOf(uint32_t pid, uint64_t start, uint64_t end, const MappedFile& file,
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

  // Compares what is there by now, one range at a time, and writes a mapping of its file.
  void Apply(uint64_t now_ns, EventSink& sink);

 private:
  // Where code of a file was.
  struct Range {
    uint32_t pid = 0;
    uint64_t start = 0;
    CodeMapping file;
    uint64_t due_ns = 0;  // when it is compared
  };

  ProcessTable& processes_;
  std::vector<Range> ranges_;
  uint64_t next_ns_ = 0;  // when the next comparison may begin
};

}  // namespace xpu
