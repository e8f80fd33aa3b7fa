// make_hostile_texts CAPTURE OUTPUT SUFFIX KEPT: writes a capture again with SUFFIX, where \xNN is
// a byte, after each of its texts but KEPT.
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/events.h"
#include "format/reader.h"
#include "format/writer.h"

namespace {

using namespace xpu;

std::string Unescaped(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("\\x")) {
      bytes += static_cast<char>(std::stoi(std::string(text.substr(at + 2, 2)), nullptr, 16));
      at += 3;
    } else {
      bytes += text[at];
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  auto reader = CaptureReader::Open(argv[1]);
  UniqueFd fd(::open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  XPU_CHECK(reader.ok() && fd);
  auto writer = CaptureWriter::Create(std::move(fd), argv[2]);
  XPU_CHECK(writer.ok());
  const std::string suffix = Unescaped(argv[3]);
  const auto make_hostile = [&](FieldInfo field, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, StringId>) {
      if (!value) return;
      std::string text(reader->String(value));
      const bool is_text = field.meaning != Meaning::kBytes && text != argv[4];
      value = writer->InternString(is_text ? text + suffix : text);
    } else if constexpr (std::is_same_v<Value, StackId>) {
      if (value) value = writer->InternStack(reader->Stack(value));
    }
  };
  while (auto batch = reader->Next()) {
    VisitLists(*batch, [&](const char*, const auto& list) {
      for (auto event : list) {
        VisitFields(event, make_hostile);
        XPU_CHECK(writer->Write(event).ok());
      }
    });
  }
  XPU_CHECK(writer->Close().ok());
  return 0;
}
