#include "report/view_choice.h"

#include <CLI/CLI.hpp>

#include "format/base/text.h"

namespace xpu {

std::string ViewChoice::Take(ReportOptions& options) const {
  const Choice* made = nullptr;
  for (const Choice& choice : choices_) {
    if (choice.option->count() == 0) continue;
    if (made != nullptr) {
      return Format("{} and {}: one view a run", made->option->get_name(),
                    choice.option->get_name());
    }
    made = &choice;
    options.task = choice.task;
    if (choice.view != nullptr) options.view = choice.view;
  }
  const std::string chosen = made == nullptr ? "" : made->option->get_name();
  const bool is_view = options.task == Task::kView;
  for (const Rule& rule : rules_) {
    if (rule.option->count() == 0 || (is_view && rule.Allows(*options.view))) continue;
    return WhyNot(rule, chosen);
  }
  return {};
}

std::string ViewChoice::WhyNot(const Rule& rule, std::string_view chosen) const {
  // Nearly all take it: the one that does not is named.
  if (rule.trait == &View::takes_filters) {
    return Format("{} does not go with {}", rule.option->get_name(), chosen);
  }
  std::string names;
  for (const Choice& choice : choices_) {
    if (choice.view == nullptr || !rule.Allows(*choice.view)) continue;
    names += (names.empty() ? "" : " and ") + choice.option->get_name();
  }
  return Format("{} is an option of {}", rule.option->get_name(), names);
}

}  // namespace xpu
