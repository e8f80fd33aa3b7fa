// The tables of real files against what binutils reads from them: every address of every function.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "format/base/text.h"
#include "symbolize/unwind/known_code.h"
#include "symbolize/unwind/unwind_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

// A line of `readelf --debug-dump=frames-interp`: LOC, then columns by name.
struct OracleRow {
  uint64_t address = 0;
  std::map<std::string, std::string> columns;
};

struct OracleFunction {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::vector<OracleRow> rows;
};

// A register in a column has a second name after it: "r2 (rcx)".
std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    if (word[0] != '(') words.push_back(word);
  }
  return words;
}

// "cie=" or "pc=" of an FDE's line.
std::string FieldOf(const std::vector<std::string>& words, const std::string& name) {
  for (const std::string& word : words) {
    if (word.rfind(name, 0) == 0) return word.substr(name.size());
  }
  return {};
}

class OracleParser {
 public:
  void Line(const std::string& line) {
    const std::vector<std::string> words = Words(line);
    if (words.empty()) return;
    if (line.rfind("Contents of the ", 0) == 0) {
      active_ = line.find(" .eh_frame ") != std::string::npos;
    }
    if (!active_) return;
    if (words.size() > 3 && words[3] == "CIE") {
      current_ = &cies_[words[0]];
    } else if (words.size() > 3 && words[3] == "FDE") {
      BeginFunction(words);
    } else if (words[0] == "LOC") {
      names_ = words;
    } else if (words[0].size() == 16 && words.size() == names_.size() && current_ != nullptr) {
      OracleRow row{.address = std::stoull(words[0], nullptr, 16), .columns = {}};
      for (size_t i = 1; i < words.size(); ++i) row.columns[names_[i]] = words[i];
      current_->push_back(row);
    }
  }

  // By address; of functions that begin together the first.
  std::vector<OracleFunction> Take() {
    std::vector<OracleFunction> functions;
    for (const auto& function : functions_) functions.push_back(*function);
    std::stable_sort(
        functions.begin(), functions.end(),
        [](const OracleFunction& a, const OracleFunction& b) { return a.begin < b.begin; });
    functions.erase(std::unique(functions.begin(), functions.end(),
                                [](const OracleFunction& a, const OracleFunction& b) {
                                  return a.begin == b.begin;
                                }),
                    functions.end());
    for (OracleFunction& function : functions) {
      // readelf prints a function without instructions as its CIE.
      if (function.rows.empty()) function.rows = initial_[function.begin];
      function.rows.front().address = function.begin;
    }
    return functions;
  }

 private:
  void BeginFunction(const std::vector<std::string>& words) {
    const std::string range = FieldOf(words, "pc=");
    auto function = std::make_unique<OracleFunction>();
    function->begin = std::stoull(range, nullptr, 16);
    function->end = std::stoull(range.substr(range.find("..") + 2), nullptr, 16);
    initial_[function->begin] = cies_[FieldOf(words, "cie=")];
    functions_.push_back(std::move(function));
    current_ = &functions_.back()->rows;
  }

  bool active_ = false;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<OracleRow>> cies_;
  std::map<uint64_t, std::vector<OracleRow>> initial_;
  std::vector<std::unique_ptr<OracleFunction>> functions_;
  std::vector<OracleRow>* current_ = nullptr;
};

std::vector<OracleFunction> Oracle(const std::string& path) {
  const std::string command =
      "LC_ALL=C readelf --wide --debug-dump=frames-interp '" + path + "' 2>/dev/null";
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return {};
  OracleParser parser;
  char* line = nullptr;
  size_t size = 0;
  while (::getline(&line, &size, out) > 0) parser.Line(line);
  std::free(line);
  ::pclose(out);
  return parser.Take();
}

// "r10+0", "rbx+16", "rsp-8": -1 when the name is no general register's.
int DwarfNumber(const std::string& place) {
  static constexpr const char* kNames[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                           "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  const std::string name = place.substr(0, place.find_first_of("+-"));
  const auto* const found = std::ranges::find(kNames, name);
  return found == std::end(kNames) ? -1 : static_cast<int>(found - std::begin(kNames));
}

// Whether `rule` has the CFA of a column like "rsp+16".
bool IsCfa(const UnwindRule& rule, const std::string& cfa) {
  const int number = DwarfNumber(cfa);
  const int offset = std::stoi(cfa.substr(cfa.find_first_of("+-")));
  if (number == 7) return rule.cfa == UnwindCfa::kRsp && rule.cfa_offset == offset;
  if (number == 6) return rule.cfa == UnwindCfa::kRbp && rule.cfa_offset == offset;
  return rule.cfa == UnwindCfa::kRegister && rule.DerefAddend() == number &&
         rule.DerefOffset() == offset;
}

// "" when `rule` is what the columns say; else what they say.
std::string Difference(const OracleRow& row, const UnwindRule& rule) {
  const auto column = [&](const char* name) {
    const auto found = row.columns.find(name);
    return found == row.columns.end() ? std::string("u") : found->second;
  };
  const std::string cfa = column("CFA"), rbp = column("rbp"), ra = column("ra");
  const std::string all = "CFA " + cfa + " rbp " + rbp + " ra " + ra;
  const auto expect = [&](bool good) { return good ? std::string() : all; };
  if (ra == "u") return expect(rule.cfa == UnwindCfa::kEnd);
  const bool is_unsupported = rule.cfa == UnwindCfa::kUnsupported;
  if (ra == "exp") return expect(rule.cfa == UnwindCfa::kSignal || is_unsupported);
  const bool is_in_vfork = ra == "r5" && cfa == "rsp+0";  // in rdi
  if (ra != "c-8" && !is_in_vfork) return expect(is_unsupported);
  if (cfa == "exp") {
    return expect(is_unsupported || rule.cfa == UnwindCfa::kPlt || rule.cfa == UnwindCfa::kAtRsp ||
                  rule.cfa == UnwindCfa::kAtRbp);
  }
  if (rbp == "exp" && is_unsupported) return {};
  if (!IsCfa(rule, cfa)) return all;
  if (rbp == "exp") {
    return expect(rule.rbp == UnwindRbp::kAtRbp || rule.rbp == UnwindRbp::kAtCfa);
  }
  if (rbp == "u" || rbp == "s") return expect(rule.rbp == UnwindRbp::kSame);
  return expect(rbp[0] == 'c' && rule.rbp == UnwindRbp::kAtCfa &&
                rule.rbp_offset == std::stoi(rbp.substr(1)));
}

std::string Text(const UnwindRule& rule) {
  return Format("cfa {} {} rbp {} {}", static_cast<int>(rule.cfa), rule.cfa_offset,
                static_cast<int>(rule.rbp), rule.rbp_offset);
}

void CompareWithReadelf(const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << path << " is not on this machine";
  if (std::system("readelf --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no readelf";
  const std::vector<OracleFunction> functions = Oracle(path);
  ASSERT_FALSE(functions.empty());
  const auto file = ElfFile::Open(path);
  ASSERT_TRUE(file.ok());
  UnwindStats stats;
  const auto built = BuildUnwindTable(file.value().image(), &stats);
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_EQ(stats.entries, functions.size());
  EXPECT_EQ(stats.invalid, 0u);
  const UnwindTable table = built.value().view();
  ASSERT_TRUE(table.IsSound());
  std::vector<LinkRange> gaps;
  size_t differences = 0;
  for (size_t i = 0; i < functions.size() && differences < 20; ++i) {
    const OracleFunction& function = functions[i];
    const bool is_last = i + 1 == functions.size();
    const uint64_t end = is_last ? function.end : std::min(function.end, functions[i + 1].begin);
    size_t row = 0;
    std::optional<std::pair<size_t, UnwindRule>> same;  // what the address before had
    for (uint64_t at = function.begin; at < end; ++at) {
      while (row + 1 < function.rows.size() && function.rows[row + 1].address <= at) ++row;
      const UnwindRule rule = table.Find(at);
      if (same == std::pair(row, rule)) continue;
      const std::string difference = Difference(function.rows[row], rule);
      if (difference.empty()) {
        same.emplace(row, rule);
        continue;
      }
      ADD_FAILURE() << Format("{}+{:#x}: {}, not {}", path, at, Text(table.Find(at)), difference);
      if (++differences == 20) break;
    }
    const uint64_t next = is_last ? UINT64_MAX : functions[i + 1].begin;
    if (next > end) gaps.push_back({end, next});
  }
  // Code that is known without an entry (known_code_test.cpp) may begin in what seems alignment.
  constexpr uint64_t kMaxAlignmentBytes = 15;
  const std::vector<KnownCode> known = FindKnownCode(file.value().image(), gaps);
  for (const LinkRange& gap : gaps) {
    const bool begins_known = std::ranges::any_of(known, [&](const KnownCode& code) {
      return code.range.begin - gap.begin <= kMaxAlignmentBytes;
    });
    if (gap.end - gap.begin <= kMaxAlignmentBytes || begins_known) continue;
    EXPECT_EQ(table.Find(gap.begin).cfa, UnwindCfa::kNone) << Format("{}+{:#x}", path, gap.begin);
  }
}

class UnwindOracle : public testing::TestWithParam<const char*> {};

// Resolved here: /proc/self of readelf is another one.
TEST_P(UnwindOracle, EveryAddressIsAsReadelfReadsIt) {
  std::error_code error;
  const auto path = std::filesystem::canonical(GetParam(), error);
  CompareWithReadelf(error ? GetParam() : path.string());
}

INSTANTIATE_TEST_SUITE_P(, UnwindOracle,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6",
                                         "/lib64/ld-linux-x86-64.so.2",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/bin/bash",
                                         "/proc/self/exe"),
                         [](const auto& named) {
                           std::string name;
                           for (const char c : std::string(named.param)) {
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           }
                           return name;
                         });

// The kernel's library, which only memory holds.
class UnwindVdso : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const begin = reinterpret_cast<const char*>(::getauxval(AT_SYSINFO_EHDR));
    if (begin == nullptr) GTEST_SKIP() << "no vdso";
    const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(begin);
    bytes_.assign(begin, header->e_shoff + size_t{header->e_shnum} * header->e_shentsize);
  }
  UnwindTableBytes Build() const {
    const auto image = ElfImage::Parse(std::as_bytes(std::span(bytes_)), "[vdso]");
    return BuildUnwindTable(image.value()).value();
  }

  std::string bytes_;
};

TEST_F(UnwindVdso, EveryAddressIsAsReadelfReadsIt) {
  const test::TempDirectory directory;
  std::ofstream(directory / "vdso", std::ios::binary) << bytes_;
  CompareWithReadelf(directory / "vdso");
}

TEST_F(UnwindVdso, SectionHeadersAreNotNeeded) {
  const UnwindTableBytes with = Build();
  std::memset(bytes_.data() + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
  const UnwindTableBytes without = Build();
  EXPECT_TRUE(std::ranges::equal(with.bytes(), without.bytes()));
}

}  // namespace
}  // namespace xpu
