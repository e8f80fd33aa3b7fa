// The interpreters among the files that processes have mapped, each read once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "record/process/mapped_file.h"
#include "record/python/python_runtime.h"

namespace xpu {

class PythonFiles {
 public:
  struct File {
    PythonRuntime runtime;
    std::vector<ElfSegment> segments;

    // Where its interpreter lies in a process; `bias`: address - link address.
    xpu_python_process InProcess(uint64_t bias) const;
  };

  // nullptr: it holds none. `is_program`: not a library.
  const File* Find(const MappedFile& file, bool is_program);

 private:
  using Key = std::tuple<std::string, uint64_t, uint64_t>;  // build-id, device, inode
  std::map<Key, File> files_;
};

}  // namespace xpu
