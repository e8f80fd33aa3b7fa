#include "symbolize/demangle.h"

#include <csetjmp>
#include <cstddef>

// libstdc++'s demangler with its output in pieces. abi::__cxa_demangle is the same code but builds
// the whole text first, and back-references let 200 bytes stand for more text than memory holds.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled,
                                             void (*piece)(const char*, size_t, void*),
                                             void* context);

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

}  // namespace

std::string Demangle(std::string_view mangled) {
  if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangledBytes) return std::string(mangled);
  const std::string terminated(mangled);
  Output output;
  output.text.reserve(kMaxDemangledBytes);  // so that nothing is allocated under the demangler
  if (setjmp(output.too_long) != 0) return terminated;
  if (__gcclibcxx_demangle_callback(terminated.c_str(), AppendPiece, &output) != 0) {
    return terminated;
  }
  return std::string(output.text);
}

}  // namespace xpu
