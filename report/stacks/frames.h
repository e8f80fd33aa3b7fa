// Frames with names, each distinct one once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/base/ids.h"
#include "symbolize/symbolizer.h"

namespace xpu {

// The role of a native function for the Python code above and below it, by the names that CPython
// 3.11 to 3.14 gives those of the interpreter.
enum class PythonRole : uint8_t {
  kNone,
  kLoop,      // runs Python functions: one frame of it for each time that the loop is entered
  kLoopPart,  // called by the loop to go on with its work: a part of the frame of its caller
  kCall,      // only passes calls on
  kStart,     // what the C library starts a program or a thread with
};

// `symbol`: the linkage name; `module`: the name of the file that it is in.
PythonRole PythonRoleOf(std::string_view symbol, std::string_view module);

// "python3.12", "libpython3.12.so.1.0", and of other versions and builds.
bool IsPythonModule(std::string_view module);

using FrameId = Id<struct FrameTag, uint32_t>;

enum class FrameOrigin : uint8_t {
  kUser,     // code of the process
  kKernel,   // code of the operating system
  kApi,      // a CUDA call
  kGpuWork,  // a kernel, memory operation or graph
  kPending,  // instead of the GPU work that no record came of
  kOther,    // a process name, a placeholder
  kPython,   // a function of the program in Python
};

struct NamedFrame {
  FrameOrigin origin = FrameOrigin::kUser;
  bool is_cuda_internal = false;  // of libcuda, libcudart, libcupti or our own library
  bool is_profiler = false;       // of libcupti or our own library, or a BPF program
  bool is_api_entry = false;      // a C function of the CUDA API, wherever it lies
  bool is_inlined = false;        // into the next outer frame
  PythonRole python_role = PythonRole::kNone;
  std::string name;           // kernel frames without their suffix
  std::string module;         // the file's last path part, of Python its path; may be empty
  std::string place = {};     // "+0x12", " app.cpp:123", both, or nothing; of Python ":123"
  ModuleId nameless_in = {};  // the file that could have named it and did not
  std::string source = {};    // the whole path of the file in `place`, of native code

  bool IsNative() const { return origin == FrameOrigin::kUser || origin == FrameOrigin::kKernel; }
  bool IsFunction() const { return IsNative() || origin == FrameOrigin::kPython; }
  // The name as usualy view shows it: "forward(int)+0x12 app.cpp:123 (inlined)", "poll_[k]".
  std::string Label() const;
};

// Details that frames show beside the name of the function.
struct FramePlaces {
  bool lines = false;    // "app.cpp:123"
  bool offsets = false;  // "+0x12" from the function's entry
};

class FrameTable {
 public:
  // Frames are the same when their labels, module and origin are.
  FrameId Intern(const NamedFrame& frame);
  FrameId Intern(std::string_view name, FrameOrigin origin = FrameOrigin::kOther) {
    return Intern({.origin = origin, .name = std::string(name), .module = {}});
  }
  const NamedFrame& operator[](FrameId id) const { return frames_[id.value - 1]; }
  size_t size() const { return frames_.size(); }

 private:
  std::deque<NamedFrame> frames_;  // by id - 1
  std::unordered_map<std::string, FrameId> ids_;
};

// "main;run(int);[GPU_Kernel]scale": frames as --folded writes them, where a semicolon parts two of
// them and is in none. C++ names hold any other separator that could be read.
std::string FoldedText(const FrameTable& frames, std::span<const FrameId> path);

// How many frames of a launch stack are not the user's, at the innermost end. `innermost_first` may
// be empty.
//
// The stack is taken inside our own library, called by libcupti, called by libcuda, maybe called
// by libcudart: none of that is the user's. With a static libcudart its functions lie in the
// program itself, so there the outermost C function of the CUDA API ends the user's part.
size_t CountInternalFrames(std::span<const FrameId> innermost_first, const FrameTable& frames);

}  // namespace xpu
