#include "report/model/parts_text.h"

#include "format/base/terminal_text.h"
#include "format/base/text.h"

namespace xpu {

std::string PartsText(const Model& model) {
  const PartsHere& parts = model.parts;
  if (parts.first == 0) return {};
  std::string text = parts.first == parts.last
                         ? Format("part {} of the recording", parts.first)
                         : Format("parts {} to {} of the recording", parts.first, parts.last);
  if (parts.missing > 0) AppendFormat(text, " without {} of them", parts.missing);
  if (parts.first > 1) text += ", which began in earlier ones";
  if (parts.is_continued) {
    AppendFormat(text, "{} goes on in part {}", parts.first > 1 ? " and" : ", which",
                 parts.last + 1);
  }
  return text;
}

std::string PartsNote(const Model& model) {
  const PartsHere& parts = model.parts;
  if (parts.first <= 1 && !parts.is_continued) return {};
  return Format("{}: {}\n", ForOneLine(model.path), PartsText(model));
}

}  // namespace xpu
