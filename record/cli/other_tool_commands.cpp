#include "record/cli/other_tool_commands.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "format/base/quote.h"
#include "format/base/text.h"
#include "record/base/environment.h"

namespace xpu {
namespace {

bool IsOfPerf(std::string_view verb) { return verb == "record" || verb == "stat"; }
bool IsOfNsys(std::string_view verb) { return verb == "profile" || verb == "start"; }

// True if the option of another tool takes its value from the next word.
bool TakesValueThere(std::string_view verb, std::string_view option) {
  constexpr std::array<std::string_view, 4> kOfPerf = {"-t", "-m", "-C", "-u"};
  if (IsOfPerf(verb)) return std::find(kOfPerf.begin(), kOfPerf.end(), option) != kOfPerf.end();
  return !option.starts_with("--");
}

// Keeps the options of xpu-record and drops others.
std::string CommandWithoutSubcommand(const std::vector<std::string>& words,
                                     std::span<const CommandLineOption> known) {
  std::string command = "xpu-record";
  size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "--") {
    const std::string& word = words[at++];
    const std::string name = word.substr(0, word.find('='));
    const auto ours = std::find_if(known.begin(), known.end(), [&](const auto& option) {
      return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
    });
    const bool is_ours = ours != known.end();
    const bool takes_value = is_ours ? !ours->value.empty() : TakesValueThere(words.front(), name);
    if (is_ours) AppendFormat(command, " {}", QuoteForShell(word));
    if (!takes_value || name != word || at == words.size()) continue;
    if (is_ours) AppendFormat(command, " {}", QuoteForShell(words[at]));
    ++at;
  }
  if (at < words.size() && words[at] == "--") ++at;
  return Format("{} -- {}", command, QuoteForShell(std::span(words).subspan(at)));
}

}  // namespace

std::optional<Error> CheckOtherToolCommand(const std::vector<std::string>& words,
                                           std::span<const CommandLineOption> known) {
  if (words.size() < 2 || !(IsOfPerf(words.front()) || IsOfNsys(words.front()))) return {};
  const char* path = std::getenv("PATH");
  if (!FindProgram(words.front(), path == nullptr ? "" : path).empty()) return {};
  return Error{ErrorKind::kUsage, Format("{}: no such program", words.front()),
               "xpu-record has no subcommands: " + CommandWithoutSubcommand(words, known)};
}

}  // namespace xpu
