// The interpreters among the files that processes have mapped: which CPython a file is, and where
// that version keeps what it runs. Each file is read once.
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
    kNone,  // the file holds no interpreter
    kKnown,
    kOtherVersion,  // one whose frames we do not know
    kFreeThreaded,  // one without the global lock, whose frames other threads may free
  };
  Kind kind = Kind::kNone;
  uint16_t version = 0;       // major << 8 | minor; 0: older than it says itself (3.11)
  uint64_t link_address = 0;  // of _PyRuntime
  uint64_t code_type = 0;     // the same of PyCode_Type
  xpu_python_layout layout{};
};

// 3.11 and 3.12 by a table, 3.13 and 3.14 by the offsets that they publish in _PyRuntime.
PythonRuntime FindPythonRuntime(const ElfImage& image);

// "Python 3.10", "Python older than 3.11".
std::string NameOf(const PythonRuntime& runtime);

class PythonFiles {
 public:
  struct File {
    PythonRuntime runtime;
    std::vector<ElfSegment> segments;

    // Where its interpreter lies in a process; `bias`: address - link address.
    xpu_python_process InProcess(uint64_t bias) const;
  };

  // Whether it is worth asking Find about a file of that path: every file of a program with a
  // thousand would have to be read. `is_program`: not a library.
  static bool MayHold(std::string_view path, bool is_program);
  // nullptr: it holds none. `is_program`: not a library.
  const File* Find(const MappedFile& file, bool is_program);

 private:
  using Key = std::tuple<std::string, uint64_t, uint64_t>;  // build-id, device, inode
  std::map<Key, File> files_;
};

}  // namespace xpu
