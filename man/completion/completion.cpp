#include "man/completion/completion.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <map>
#include <utility>

#include "format/base/text.h"

namespace xpu {
namespace {

// Calls `visit` with the options named in `text`: "--kprobe FUNC[+OFF], --kretprobe FUNC".
template <typename Visit>
void ForEachOptionIn(std::string_view text, Visit visit) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-';
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = static_cast<size_t>(
        std::find_if_not(text.begin() + at, text.end(), is_part) - text.begin());
    if (end > at + 1 && text[at] == '-') visit(std::string(text.substr(at, end - at)));
    at = std::max(end, at) + 1;
  }
}

// Option -> what its line of --help says after two spaces.
std::map<std::string, std::string> LinesByOption(std::string_view help) {
  std::map<std::string, std::string> lines;
  while (!help.empty()) {
    std::string_view line = help.substr(0, help.find('\n'));
    help.remove_prefix(std::min(help.size(), line.size() + 1));
    if (!line.starts_with("  -")) continue;
    line.remove_prefix(2);
    const size_t gap = std::min(line.find("  "), line.size());
    const size_t about = std::min(line.find_first_not_of(' ', gap), line.size());
    ForEachOptionIn(line.substr(0, gap), [&](const std::string& option) {
      lines.emplace(option, std::string(line.substr(about)));
    });
  }
  return lines;
}

// Of "TEXT:{gpu,cpu}" or "{cycles,page-faults},...".
void TakeChoices(CompletedOption& completed) {
  const std::string& value = completed.option.value;
  const size_t begin = value.find('{');
  const size_t end = value.find('}');
  if (begin == std::string::npos || end == std::string::npos) return;
  completed.is_list = value.substr(end + 1) == ",...";
  std::string_view names = std::string_view(value).substr(begin + 1, end - begin - 1);
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    completed.choices.emplace_back(name);
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
}

}  // namespace

Result<CompletedProgram> DescribeProgram(std::string_view name,
                                         std::vector<CommandLineOption> options,
                                         std::string_view help) {
  CompletedProgram program{.name = std::string(name)};
  std::map<std::string, std::string> lines = LinesByOption(help);
  for (CommandLineOption& option : options) {
    CompletedOption completed{.option = std::move(option)};
    for (const std::string& word : completed.option.names) {
      auto line = lines.extract(word);
      if (line.empty()) {
        return Error{ErrorKind::kInvalid, Format("{} {}: not in --help", name, word), {}};
      }
      completed.about = line.mapped();
    }
    TakeChoices(completed);
    program.options.push_back(std::move(completed));
  }
  if (!lines.empty()) {
    return Error{ErrorKind::kInvalid,
                 Format("{} {}: in --help, but no option", name, lines.begin()->first),
                 {}};
  }
  return program;
}

int WriteCompletion(int argc, char** argv, const Result<CompletedProgram>& program) {
  if (!program.ok()) {
    std::fprintf(stderr, "%s\n", program.error().ToString().c_str());
    return 1;
  }
  if (argc != 3) return 2;
  const std::string text = std::string_view(argv[1]) == "zsh" ? ZshCompletion(program.value())
                                                              : BashCompletion(program.value());
  std::ofstream file(argv[2], std::ios::binary);
  file << text << std::flush;
  return file ? 0 : 1;
}

}  // namespace xpu
