// C++ and Rust symbol names as the programmer wrote them, by libiberty's demanglers.
//
// libstdc++ 12's abi::__cxa_demangle leaves names as they are whose lambdas have template
// parameters, and those longer than 1024 bytes; it also builds the whole text before it returns.
// LLVM's demangler reads 69 of 333,000 names of Debian's libraries more than this one, and this one
// 108 more than LLVM's (version 14), but LLVM's has no callback that could bound the text. What is
// written here is only the bound: names come from untrusted files, and 200 bytes of C++ or 30 of
// Rust can stand for a text without end, or keep libiberty and libstdc++ at work for hours.
#pragma once

#include <string>
#include <string_view>

namespace xpu {

// "operator delete(void*)@plt" of "_ZdlPv@plt"; without the hashes by which Rust tells builds
// apart; `mangled` itself when it is not the mangled name of anything, when it is longer than
// 16 KiB, or its text longer than 64 KiB.
std::string Demangle(std::string_view mangled);

}  // namespace xpu
