#include "report/cli/view_choice.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr std::string_view kTables = "--top";

}  // namespace

std::string ViewChoice::Take(ReportOptions& options) const {
  const Choice* made = nullptr;
  for (const Choice& choice : choices_) {
    if (choice.option->count() == 0) continue;
    if (made != nullptr) {
      return Format("{} and {}: only one view can be given", made->option->get_name(),
                    choice.option->get_name());
    }
    made = &choice;
    options.task = choice.task;
  }
  // Options of tables say what is wanted as well as --top does.
  if (made == nullptr) made = ImpliedTables();
  if (made != nullptr) options.view = made->view == nullptr ? options.view : made->view;
  const std::string chosen = made == nullptr ? "" : made->option->get_name();
  const bool is_view = options.task == Task::kView;
  for (const Rule& rule : rules_) {
    if (rule.option->count() == 0 || (is_view && rule.Allows(*options.view))) continue;
    return WhyNot(rule, chosen);
  }
  return {};
}

const ViewChoice::Choice* ViewChoice::ImpliedTables() const {
  const auto top = std::find_if(choices_.begin(), choices_.end(), [](const Choice& choice) {
    return choice.view != nullptr && choice.view->option == kTables;
  });
  const bool is_implied = std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) {
    const bool is_of_tables = rule.trait == &View::shows_tables ||
                              rule.trait == &View::compares_steps || rule.view == kTables;
    return is_of_tables && rule.option->count() > 0;
  });
  return is_implied && top != choices_.end() ? &*top : nullptr;
}

std::string ViewChoice::WhyNot(const Rule& rule, std::string_view chosen) const {
  // Nearly all take it: the one that does not is named.
  if (rule.trait == &View::takes_filters) {
    return Format("{} cannot be combined with {}", rule.option->get_name(), chosen);
  }
  std::vector<std::string> names;
  for (const Choice& choice : choices_) {
    if (choice.view == nullptr || !rule.Allows(*choice.view)) continue;
    names.push_back(choice.option->get_name());
  }
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view separator = i + 1 == names.size() ? " or " : ", ";
    AppendFormat(list, "{}{}", i == 0 ? "" : separator, names[i]);
  }
  return Format("{} needs {}", rule.option->get_name(), list);
}

}  // namespace xpu
