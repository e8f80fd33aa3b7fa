#include "report/output/colors.h"

#include <cstdlib>

#include "format/base/text.h"

namespace xpu {

Colors ColorsOf(const Output& output) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool can = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return Colors(output.is_terminal() && can && !refused);
}

std::string Colors::Paint(std::string_view code, std::string_view text) const {
  return on_ ? Format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace xpu
