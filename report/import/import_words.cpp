#include "report/import/import_words.h"

#include <algorithm>

namespace xpu {
namespace {

// By value >> 16, but for the compiler, whose value is 1.
constexpr std::array<std::string_view, 9> kOverheadKinds = {"DRIVER_COMPILER",
                                                            "CUPTI_BUFFER_FLUSH",
                                                            "CUPTI_INSTRUMENTATION",
                                                            "CUPTI_RESOURCE",
                                                            "RUNTIME_TRIGGERED_MODULE_LOADING",
                                                            "LAZY_FUNCTION_LOADING",
                                                            "COMMAND_BUFFER_FULL",
                                                            "ACTIVITY_BUFFER_REQUEST",
                                                            "UVM_ACTIVITY_INIT"};
constexpr std::array<std::string_view, 4> kOldOverheadKinds = {"COMPILER", "BUFFER_FLUSH",
                                                               "INSTRUMENTATION", "RESOURCE"};
constexpr std::array<std::string_view, 6> kObjectKinds = {"UNKNOWN", "PROCESS", "THREAD",
                                                          "DEVICE",  "CONTEXT", "STREAM"};

// "<null>", "(null)", "<default domain>": how the printers write what is not there.
std::string_view TextOrNothing(std::string_view text) {
  return text == "<null>" || text == "(null)" || text == "<default domain>" ? std::string_view()
                                                                            : text;
}

}  // namespace

uint32_t IndexIn(std::span<const std::string_view> words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? 0 : static_cast<uint32_t>(found - words.begin());
}

uint32_t OverheadKindOf(std::string_view word) {
  for (const std::span<const std::string_view> kinds :
       {std::span<const std::string_view>(kOverheadKinds),
        std::span<const std::string_view>(kOldOverheadKinds)}) {
    const auto found = std::find(kinds.begin(), kinds.end(), word);
    if (found == kinds.end()) continue;
    return std::max(1u, static_cast<uint32_t>(found - kinds.begin()) << 16);
  }
  return 0;
}

uint32_t ObjectKindIn(std::string_view fields) {
  uint32_t kind = 0;
  size_t first = std::string_view::npos;
  for (uint32_t i = 1; i < kObjectKinds.size(); ++i) {
    const size_t at = fields.find(kObjectKinds[i]);
    if (at >= first) continue;
    first = at;
    kind = i;
  }
  return kind;
}

MarkerTexts MarkerTextsOf(std::string_view fields) {
  constexpr std::string_view kDomain = ", domain ";
  constexpr std::string_view kName = ", name ";
  MarkerTexts texts;
  size_t domain = fields.find(kDomain);
  const size_t name = fields.find(kName);
  if (name == std::string_view::npos) return texts;
  if (domain < name) {
    texts.domain = fields.substr(domain + kDomain.size(), name - domain - kDomain.size());
    texts.name = fields.substr(name + kName.size());
  } else {
    domain = std::min(fields.rfind(kDomain), fields.size());
    texts.name = fields.substr(name + kName.size(), domain - name - kName.size());
    if (domain < fields.size()) texts.domain = fields.substr(domain + kDomain.size());
  }
  texts.name = TextOrNothing(texts.name);
  texts.domain = TextOrNothing(texts.domain);
  return texts;
}

NvtxPayload PayloadTypeOf(uint64_t bits, std::string_view printed) {
  if (bits == 0) return NvtxPayload::kNone;
  const size_t slash = printed.find('/');
  const std::string_view number =
      slash == std::string_view::npos ? std::string_view() : printed.substr(slash + 1);
  if (number.find("nan") != std::string_view::npos) return NvtxPayload::kInt64;
  const bool is_zero = number.find_first_not_of("-0.") == std::string_view::npos;
  return is_zero ? NvtxPayload::kUint64 : NvtxPayload::kDouble;
}

}  // namespace xpu
