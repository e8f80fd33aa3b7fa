#include "report/analysis/name_pattern.h"

#include <array>

#include "format/base/text.h"

namespace xpu {

void NamePattern::Free::operator()(regex_t* pattern) const {
  ::regfree(pattern);
  delete pattern;
}

Result<NamePattern> NamePattern::Compile(const std::string& text, std::string_view what) {
  auto pattern = std::make_unique<regex_t>();
  const int failure = ::regcomp(pattern.get(), text.c_str(), REG_EXTENDED | REG_NOSUB | REG_ICASE);
  if (failure != 0) {
    std::array<char, 128> reason{};
    ::regerror(failure, pattern.get(), reason.data(), reason.size());
    return Error{ErrorKind::kUsage,
                 Format("{}: '{}' is no regular expression: {}", what, text, reason.data()),
                 "POSIX extended syntax, as grep -E has it"};
  }
  return NamePattern(std::unique_ptr<regex_t, Free>(pattern.release()));
}

bool NamePattern::FoundIn(const std::string& name) const {
  return ::regexec(pattern_.get(), name.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace xpu
