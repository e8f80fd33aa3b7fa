// Colours for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "report/output/output.h"

namespace xpu {

// Without them the texts stay as they are, so that nothing but a terminal sees an escape.
class Colors {
 public:
  explicit Colors(bool on) : on_(on) {}

  std::string Title(std::string_view text) const { return Paint("1", text); }
  std::string Faint(std::string_view text) const { return Paint("2", text); }
  std::string Good(std::string_view text) const { return Paint("32", text); }
  std::string Warning(std::string_view text) const { return Paint("33", text); }
  std::string Bad(std::string_view text) const { return Paint("31", text); }
  std::string Gpu(std::string_view text) const { return Paint("36", text); }

  bool on() const { return on_; }

 private:
  std::string Paint(std::string_view code, std::string_view text) const;

  bool on_;
};

// On for a terminal, but not when NO_COLOR has a value (no-color.org) or TERM is "dumb".
Colors ColorsOf(const Output& output);

}  // namespace xpu
