// What a program's command line takes, for the completion of shells (man/completion).
#pragma once

#include <string>
#include <vector>

namespace xpu {

struct CommandLineOption {
  std::vector<std::string> names;  // "-o", "--output"; none: it stands for the other words
  // What a value is: "FILE", "DIR", "{gpu,cpu}", "{cycles,page-faults},...". Empty: takes none.
  std::string value;
  bool repeats = false;
};

// `App` is CLI::App, which only the files that parse know.
template <typename App>
std::vector<CommandLineOption> CommandLineOptionsOf(const App& app) {
  std::vector<CommandLineOption> options;
  for (const auto* parsed : app.get_options()) {
    CommandLineOption option;
    for (const std::string& name : parsed->get_snames()) option.names.push_back("-" + name);
    for (const std::string& name : parsed->get_lnames()) option.names.push_back("--" + name);
    if (parsed->get_items_expected_max() > 0) option.value = parsed->get_type_name();
    option.repeats = parsed->get_items_expected_max() > 1;
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace xpu
