// What interpreters and their programs give: texts, line tables and stacks as they are sent, and
// the file of the interpreter. The first byte chooses which one the rest is.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/check.h"
#include "record/python/python_files.h"
#include "record/python/python_stacks.h"
#include "record/sink/python_codes.h"
#include "report/stacks/python_frames.h"
#include "symbolize/elf/elf_image.h"

namespace {

using namespace xpu;

void ReadLines(std::string_view table) {
  const PythonLines lines(table);
  for (uint32_t offset = 0; offset < 1024; offset += 2) static_cast<void>(lines.At(offset));
  static_cast<void>(lines.At(UINT32_MAX));
}

void ReadRuntime(std::span<const std::byte> bytes) {
  const auto image = ElfImage::Parse(bytes, "fuzz");
  if (!image.ok()) return;
  const PythonRuntime runtime = FindPythonRuntime(image.value());
  NameOf(runtime);
  if (runtime.kind != PythonRuntime::Kind::kKnown) return;
  // What the BPF program and the injected library rely on.
  XPU_CHECK(runtime.layout.code_path >= XPU_PYTHON_BEFORE_PATH);
  XPU_CHECK(runtime.layout.code_path <= XPU_PYTHON_CODE_BYTES - 8);
  XPU_CHECK(runtime.layout.frame_code < XPU_PYTHON_FRAME_BYTES);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto copy = std::make_unique<std::byte[]>(size - 1);
  std::memcpy(copy.get(), data + 1, size - 1);
  const std::span<const std::byte> bytes(copy.get(), size - 1);
  switch (data[0] % 4) {
    case 0:
      ReadLines({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      break;
    case 1:
      for (uint32_t kind = 0; kind < 6; ++kind) PythonText(bytes, kind);
      break;
    case 2: {
      std::vector<__u64> words(bytes.size() / sizeof(__u64));
      if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(__u64));
      PythonFramesOf(words);
      break;
    }
    default:
      ReadRuntime(bytes);
      break;
  }
  return 0;
}
