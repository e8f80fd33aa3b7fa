#include "symbolize/demangle.h"

#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include <cxxabi.h>

#include "symbolize/rust_demangle.h"

// libstdc++'s demangler with its output in pieces. abi::__cxa_demangle is the same code but builds
// the whole text first, and back-references let 200 bytes stand for more text than memory holds.
// Only a static libstdc++, which release binaries have, lets us call it.
extern "C" [[gnu::weak]] int __gcclibcxx_demangle_callback(
    const char* mangled, void (*piece)(const char*, size_t, void*), void* context);

namespace xpu {
namespace {

constexpr size_t kMaxMangledBytes = 16 << 10;
constexpr size_t kMaxDemangledBytes = 64 << 10;

struct Output {
  std::string text;
  std::jmp_buf too_long;
};

void AppendPiece(const char* piece, size_t size, void* context) {
  auto* output = static_cast<Output*>(context);
  // The demangler is C, keeps everything on its stack and cannot be told to stop, so it is left.
  if (output->text.size() + size > kMaxDemangledBytes) std::longjmp(output->too_long, 1);
  output->text.append(piece, size);
}

std::string DemangleInPieces(const std::string& mangled) {
  Output output;
  output.text.reserve(kMaxDemangledBytes);  // so that nothing is allocated under the demangler
  if (setjmp(output.too_long) != 0) return mangled;
  if (__gcclibcxx_demangle_callback(mangled.c_str(), AppendPiece, &output) != 0) return mangled;
  return std::string(output.text);
}

std::string DemangleAtOnce(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : mangled;
}

}  // namespace

std::string Demangle(std::string_view mangled) {
  if (mangled.size() > kMaxMangledBytes) return std::string(mangled);
  if (mangled.starts_with("_Z") || mangled.starts_with("_R")) {
    // "_ZdlPv@plt"
    const size_t at = mangled.find('@');
    if (at != std::string_view::npos) {
      return Demangle(mangled.substr(0, at)) + std::string(mangled.substr(at));
    }
    if (std::optional<std::string> rust = DemangleRust(mangled)) return *std::move(rust);
  }
  std::string name(mangled);
  if (!mangled.starts_with("_Z")) return name;
  return __gcclibcxx_demangle_callback != nullptr ? DemangleInPieces(name) : DemangleAtOnce(name);
}

}  // namespace xpu
