// The files of the unwind cache, and the tables in them as injected programs and the kernel's walk
// use them. The first byte: even, a table after a valid header; odd, the whole file.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "format/base/check.h"
#include "format/base/text.h"
#include "record/unwind/unwind_cache.h"
#include "symbolize/unwind/unwind_table.h"

namespace {

using namespace xpu;

class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "xpu-fuzz-XXXXXX").native();
    XPU_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void Search(const UnwindTable& table) {
  const uint64_t begin = table.header->first_page << kUnwindPageShift;
  for (uint64_t step = 0; step < 512; ++step) {
    static_cast<void>(table.Find(begin + step * 97));
  }
  static_cast<void>(table.Find(begin - 1));
  static_cast<void>(table.Find(UINT64_MAX));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const Directory directory;
  static auto cache = UnwindCache::Open(directory.path());
  XPU_CHECK(cache.ok());
  constexpr std::string_view kBuildId = "\1\2\3\4\5\6\7\10\11\12";
  const std::span<const uint8_t> content(data + 1, size - 1);
  std::vector<uint64_t> words(content.size() / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), content.data(), words.size() * sizeof(uint64_t));
  const uint64_t bytes = words.size() * sizeof(uint64_t);
  UnwindTable table;
  // Not sound tables must not be read past their ends either: each search checks.
  const bool opens = table.Open(words.data(), bytes);
  if (opens) Search(table);
  const bool is_sound = opens && table.header->bytes == bytes && table.IsSound();
  if (data[0] % 2 == 0) {
    XPU_CHECK(cache->Store(kBuildId, std::as_bytes(std::span(words))));
  } else {
    std::ofstream(directory.path() + "/" + ToHex(kBuildId), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
  }
  const auto loaded = cache->Load(kBuildId);
  if (data[0] % 2 == 0) XPU_CHECK(loaded.has_value() == is_sound);
  if (loaded) Search(loaded->view());
  return 0;
}
