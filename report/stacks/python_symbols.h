// Which native functions are the Python interpreter's own, by the names that CPython 3.11 to 3.14
// gives them.
#pragma once

#include <cstdint>
#include <string_view>

namespace xpu {

// What a native function does for the Python code above and below it.
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

}  // namespace xpu
