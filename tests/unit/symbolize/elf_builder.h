// Small ELF files for tests: one executable segment, a build-id, symbols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

namespace xpu::test {

class ElfBuilder {
 public:
  // The executable segment holds file offsets [kTextOffset, kTextOffset + kTextBytes).
  static constexpr uint64_t kTextOffset = 0x1000;
  static constexpr uint64_t kTextBytes = 0x1000;
  static constexpr uint64_t kTextAddress = 0x401000;  // link address, unlike the offset

  explicit ElfBuilder(std::string_view build_id) : build_id_(build_id) {}

  // `offset` within the text.
  ElfBuilder& Symbol(std::string_view name, uint64_t offset, uint64_t size,
                     int binding = STB_GLOBAL, int type = STT_FUNC);
  ElfBuilder& DynamicSymbol(std::string_view name, uint64_t offset, uint64_t size);
  std::string Build() const;
  void WriteTo(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    Elf64_Sym symbol;
  };
  std::string build_id_;
  std::vector<Entry> symbols_;
  std::vector<Entry> dynamic_symbols_;
};

// `file`, which has no section names, with one more section after everything.
std::string WithSection(std::string file, std::string_view name, const std::string& content);

// A directory that is removed at the end.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace xpu::test
