// A regular expression for names. POSIX's: std::regex needs stack in proportion to the name, and
// names come from captures.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <regex.h>

#include "format/base/result.h"

namespace xpu {

class NamePattern {
 public:
  // Extended syntax. kUsage: it is no regular expression; errors call it `what`.
  static Result<NamePattern> Compile(const std::string& text, std::string_view what);

  // Found anywhere in `name`, up to its first zero byte.
  bool FoundIn(const std::string& name) const;

 private:
  struct Free {
    void operator()(regex_t* pattern) const;
  };
  explicit NamePattern(std::unique_ptr<regex_t, Free> pattern) : pattern_(std::move(pattern)) {}

  std::unique_ptr<regex_t, Free> pattern_;
};

}  // namespace xpu
