// Whose code a function of Python is, by the path of its file.
#pragma once

#include <string>
#include <string_view>

#include "report/stacks/frames.h"

namespace xpu {

// Of a package or the standard library: not what somebody who looks for their own line means.
bool IsInstalledPython(std::string_view path);
// Of the code that carries out an import statement.
bool IsPythonImport(const NamedFrame& frame);
// "torch._dynamo.eval_frame" of ".../site-packages/torch/_dynamo/eval_frame.py".
std::string PythonModuleName(std::string_view path);

}  // namespace xpu
