#include "record/unwind/unwind_expected.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include "record/process/loader.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;
using test::TempDirectory;
using Texts = std::vector<std::string>;

// A file of nothing but what the loader reads.
struct Needing {
  Texts libraries;
  std::string run_path, old_run_path, interpreter;

  std::string Build() const {
    std::string texts(1, '\0');
    std::vector<Elf64_Dyn> dynamic;
    const auto add = [&](int64_t tag, const std::string& text) {
      if (text.empty()) return;
      dynamic.push_back({tag, {texts.size()}});
      texts += text + '\0';
    };
    for (const std::string& library : libraries) add(DT_NEEDED, library);
    add(DT_RUNPATH, run_path);
    add(DT_RPATH, old_run_path);
    const uint64_t texts_at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    dynamic.push_back({DT_STRTAB, {texts_at}});
    dynamic.push_back({DT_STRSZ, {texts.size()}});
    dynamic.push_back({DT_NULL, {0}});
    const uint64_t interpreter_at = texts_at + texts.size();
    const std::string interpreter_text = interpreter + '\0';
    const uint64_t dynamic_at = interpreter_at + interpreter_text.size();
    const uint64_t end = dynamic_at + dynamic.size() * sizeof(Elf64_Dyn);

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    const auto segment = [](uint32_t type, uint64_t offset, uint64_t bytes) {
      Elf64_Phdr program_header{};
      program_header.p_type = type;
      program_header.p_offset = program_header.p_vaddr = offset;
      program_header.p_filesz = program_header.p_memsz = bytes;
      return program_header;
    };
    const Elf64_Phdr segments[3] = {segment(PT_LOAD, 0, end),
                                    segment(PT_DYNAMIC, dynamic_at, end - dynamic_at),
                                    segment(interpreter.empty() ? PT_NULL : PT_INTERP,
                                            interpreter_at, interpreter_text.size())};
    std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
    file.append(reinterpret_cast<const char*>(segments), sizeof(segments));
    file += texts + interpreter_text;
    file.append(reinterpret_cast<const char*>(dynamic.data()), end - dynamic_at);
    return file;
  }
};

class ExpectedFilesTest : public ::testing::Test {
 protected:
  ExpectedFilesTest() { root_ = fs::canonical(directory_.path()); }

  std::string In(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(In(name)).parent_path());
    std::ofstream(In(name), std::ios::binary) << content;
    fs::permissions(In(name), fs::perms::owner_all);
  }
  void Write(const std::string& name, const Needing& needing) { Write(name, needing.Build()); }
  // Without the directory.
  Texts Expected(const std::string& program, const Texts& environment = {}) const {
    Texts names;
    for (const std::string& path : ExpectedFiles(program, environment)) {
      names.push_back(path.starts_with(root_ + "/") ? path.substr(root_.size() + 1) : path);
    }
    return names;
  }

  TempDirectory directory_;
  std::string root_;
};

TEST_F(ExpectedFilesTest, TheClosureInTheOrderOfTheLoader) {
  Write("bin/program", Needing{{"liba.so", "libb.so"}, "$ORIGIN/../lib", "", In("lib/loader.so")});
  Write("lib/loader.so", Needing{});
  Write("lib/liba.so", Needing{{"libc1.so", "libb.so"}, "$ORIGIN", "", ""});
  Write("lib/libb.so", Needing{{"liba.so", "missing.so"}, "${ORIGIN}", "", ""});
  Write("lib/libc1.so", Needing{});
  const Texts all = {"bin/program", "lib/loader.so", "lib/liba.so", "lib/libb.so", "lib/libc1.so"};
  EXPECT_EQ(Expected(In("bin/program")), all);
  // As the shell would find it, and through a link.
  EXPECT_EQ(Expected("program", {"PATH=/nowhere:" + In("bin")}), all);
  fs::create_directory(In("links"));
  fs::create_symlink("../bin/program", In("links/other"));
  EXPECT_EQ(Expected("other", {"PATH=" + In("links")}), all);
}

TEST_F(ExpectedFilesTest, OldRunPathsAreInheritedAndNewOnesAreNot) {
  Write("old", Needing{{"liba.so"}, "", In("lib"), ""});
  Write("new", Needing{{"liba.so"}, In("lib"), "", ""});
  Write("both", Needing{{"liba.so"}, In("lib"), In("other"), ""});
  Write("lib/liba.so", Needing{{"libb.so"}, "", "", ""});
  Write("lib/libb.so", Needing{});
  Write("other/liba.so", Needing{});
  EXPECT_EQ(Expected(In("old")), (Texts{"old", "lib/liba.so", "lib/libb.so"}));
  EXPECT_EQ(Expected(In("new")), (Texts{"new", "lib/liba.so"}));
  EXPECT_EQ(Expected(In("both")), (Texts{"both", "lib/liba.so"}));
  // A library with a DT_RUNPATH does not use those of the program, but what it needs does.
  Write("lib/liba.so", Needing{{"libb.so", "libc1.so"}, In("third"), "", ""});
  Write("third/libc1.so", Needing{{"libb.so"}, "", "", ""});
  EXPECT_EQ(Expected(In("old")), (Texts{"old", "lib/liba.so", "third/libc1.so"}));
}

TEST_F(ExpectedFilesTest, TheVariablesOfTheLoader) {
  Write("old", Needing{{"liba.so"}, "", In("lib"), ""});
  Write("new", Needing{{"liba.so"}, In("lib"), "", ""});
  Write("lib/liba.so", Needing{});
  Write("other/liba.so", Needing{});
  Write("preload.so", Needing{{"liba.so"}, "", "", ""});
  const std::string path = "LD_LIBRARY_PATH=/nowhere:" + In("other");
  EXPECT_EQ(Expected(In("old"), {path}), (Texts{"old", "lib/liba.so"}));
  EXPECT_EQ(Expected(In("new"), {path}), (Texts{"new", "other/liba.so"}));
  EXPECT_EQ(Expected(In("new"), {path, "LD_PRELOAD=/no.so " + In("preload.so")}),
            (Texts{"new", "preload.so", "other/liba.so"}));
}

TEST_F(ExpectedFilesTest, FilesThatAreNotLibrariesAreSkipped) {
  Write("program",
        Needing{{"liba.so"}, In("a") + ":" + In("b") + ":" + In("c") + ":" + In("d"), "", ""});
  Write("a/liba.so", "/* GNU ld script */ INPUT(x)");
  fs::create_directories(In("b/liba.so"));
  fs::create_directories(In("c"));
  fs::create_symlink("liba.so", In("c/liba.so"));  // of itself
  Write("d/liba.so", Needing{});
  EXPECT_EQ(Expected(In("program")), (Texts{"program", "d/liba.so"}));
  EXPECT_EQ(Expected(In("a/liba.so")), Texts{});
  EXPECT_EQ(Expected(In("c/liba.so")), Texts{});
  EXPECT_EQ(Expected(In("no such program")), Texts{});
  EXPECT_EQ(Expected(""), Texts{});
}

TEST_F(ExpectedFilesTest, Scripts) {
  Write("python", Needing{{"liba.so"}, In("lib"), "", ""});
  Write("env", Needing{});
  Write("lib/liba.so", Needing{});
  Write("direct", "#! " + In("python") + " -u\nprint()\n");
  Write("by_env", "#!" + In("env") + " -S A=1 python -u\n");
  Write("endless", "#!" + In("endless"));
  const Texts python = {"python", "lib/liba.so"};
  EXPECT_EQ(Expected(In("direct")), python);
  EXPECT_EQ(Expected("direct", {"PATH=" + root_}), python);
  EXPECT_EQ(Expected("by_env", {"PATH=" + root_}), (Texts{"env", "python", "lib/liba.so"}));
  EXPECT_EQ(Expected(In("endless")), Texts{});
}

TEST_F(ExpectedFilesTest, AtMost512) {
  Needing many;
  many.run_path = root_;
  for (int i = 0; i < 600; ++i) {
    many.libraries.push_back("lib" + std::to_string(i) + ".so");
    Write(many.libraries.back(), Needing{});
  }
  Write("program", many);
  EXPECT_EQ(Expected(In("program")).size(), 512U);
}

int AddPath(dl_phdr_info* info, size_t, void* paths) {
  std::error_code failed;
  const fs::path real = fs::canonical(info->dlpi_name, failed);
  if (!failed) static_cast<Texts*>(paths)->push_back(real);
  return 0;
}

// The loader is the judge: this program and what is mapped for it.
TEST(ExpectedFiles, OfThisProgram) {
  Texts mapped = {fs::canonical("/proc/self/exe")};
  ::dl_iterate_phdr(AddPath, &mapped);
  Texts environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  Texts expected = ExpectedFiles(mapped.front(), environment);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(expected.front(), mapped.front());
  std::sort(mapped.begin(), mapped.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(expected, mapped);
}

TEST(LoaderCache, NamesAndPaths) {
  constexpr char kTexts[] = "liba.so.1\0/lib/liba.so.1\0libb.so\0/old/libb.so\0/v3/liba.so.1";
  struct Entry {
    int32_t flags;
    uint32_t name, path, unused;
    uint64_t hwcap;
  };
  const uint32_t texts_at = 48 + 4 * sizeof(Entry);
  const auto at = [&](std::string_view text) {
    const std::string_view texts(kTexts, sizeof(kTexts));
    return texts_at + static_cast<uint32_t>(texts.find(std::string(text) + '\0'));
  };
  const Entry entries[] = {
      {0x0303, at("liba.so.1"), at("/v3/liba.so.1"), 0, 1},  // for some processors
      {0x0803, at("libb.so"), at("/old/libb.so"), 0, 0},     // x32
      {0x0303, at("liba.so.1"), at("/lib/liba.so.1"), 0, 0},
      {0x0303, 0xffffffff, at("/lib/liba.so.1"), 0, 0},
  };
  std::string cache = "glibc-ld.so.cache1.1";
  const uint32_t numbers[7] = {4, sizeof(kTexts), 2, 0, 0, 0, 0};
  cache.append(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  cache.append(reinterpret_cast<const char*>(entries), sizeof(entries));
  cache.append(kTexts, sizeof(kTexts));

  // The older format in front of it has a table of its own.
  for (const std::string& front : {std::string(), std::string("ld.so-1.7.0\0old table", 21)}) {
    const std::string whole = front + cache;
    const auto libraries = LibrariesOfLoaderCache(whole);
    ASSERT_EQ(libraries.size(), 1U);
    EXPECT_EQ(libraries.at("liba.so.1"), "/lib/liba.so.1");
  }
  for (size_t length = 0; length < cache.size(); ++length) {
    EXPECT_LE(LibrariesOfLoaderCache(std::string_view(cache).substr(0, length)).size(), 1U);
  }
}

}  // namespace
}  // namespace xpu
