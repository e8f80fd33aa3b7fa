// Finds the Python interpreters among the files that processes have mapped: which CPython version a
// file is, and where that version keeps its frames. Each file is read once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bpf/python_layout.h"
#include "record/process/mapped_file.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

struct PythonRuntime {
  enum class Kind : uint8_t {
    kNone,  // the file does not contain an interpreter
    kKnown,
    kOtherVersion,  // a version whose frames are not supported
  };
  Kind kind = Kind::kNone;
  uint16_t version = 0;       // major << 8 | minor; 0: older than 3.9
  uint64_t link_address = 0;  // of _PyRuntime
  uint64_t code_type = 0;     // of PyCode_Type
  xpu_python_layout layout{};
};

// Uses a table for 3.9 to 3.12, and the offsets that 3.13 and 3.14 publish in _PyRuntime.
PythonRuntime FindPythonRuntime(const ElfImage& image);

// "Python 3.13", "Python older than 3.9".
std::string NameOf(const PythonRuntime& runtime);

class PythonFiles {
 public:
  struct File {
    PythonRuntime runtime;
    std::vector<ElfSegment> segments;

    // Where the interpreter lies in a process. `bias`: address minus link address.
    xpu_python_process InProcess(uint64_t bias) const;
  };

  // nullptr if the file contains no interpreter. `is_program`: not a library.
  const File* Find(const MappedFile& file, bool is_program);

 private:
  using Key = std::tuple<std::string, uint64_t, uint64_t>;  // build-id, device, inode
  std::map<Key, File> files_;
};

}  // namespace xpu
