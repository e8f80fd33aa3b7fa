// C++ and Rust symbol names as the programmer wrote them.
#pragma once

#include <string>
#include <string_view>

namespace xpu {

// "operator delete(void*)@plt" of "_ZdlPv@plt"; `mangled` itself when it is not the mangled name of
// anything. Mangled names come from untrusted files and a short one can stand for an endless text:
// the result is bounded.
std::string Demangle(std::string_view mangled);

}  // namespace xpu
