// Which view a command line chooses, and which of its options go with that view.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/cli/report_options.h"
#include "report/views/view.h"

namespace CLI {
class Option;
}

namespace xpu {

class ViewChoice {
 public:
  // Adds a choice; one of all may be given.
  void Add(CLI::Option* option, const View& view) { choices_.push_back({option, &view}); }
  void Add(CLI::Option* option, Task instead_of_view) {
    choices_.push_back({option, nullptr, instead_of_view});
  }

  // The option goes only with views that have the trait, or with the one called `view`.
  void Only(bool View::*trait, CLI::Option* option) { rules_.push_back({option, trait}); }
  void Only(std::string_view view, CLI::Option* option) {
    rules_.push_back({option, nullptr, view});
  }

  // Sets options.task and options.view by the parsed command line. Returns what is wrong with it;
  // empty: nothing.
  std::string Take(ReportOptions& options) const;

 private:
  struct Choice {
    CLI::Option* option = nullptr;
    const View* view = nullptr;
    Task task = Task::kView;
  };
  struct Rule {
    CLI::Option* option = nullptr;
    bool View::*trait = nullptr;
    std::string_view view = {};

    bool Allows(const View& chosen) const {
      return trait != nullptr ? chosen.*trait : chosen.option == view;
    }
  };
  // --top, when no view is named and an option of tables is; nullptr otherwise.
  const Choice* ImpliedTables() const;
  std::string WhyNot(const Rule& rule, std::string_view chosen) const;

  std::vector<Choice> choices_;
  std::vector<Rule> rules_;
};

}  // namespace xpu
