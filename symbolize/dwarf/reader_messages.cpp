#include "symbolize/dwarf/reader_messages.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>

namespace xpu::dwarf {
namespace {

// Both directions have the same functions, so that a record is described once.
class Encoder {
 public:
  template <typename T>
  void Number(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // Each text once, then its number.
  void Text(const std::string_view& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, numbers_.size());
    Number(static_cast<uint32_t>(found->second));
    if (!is_new) return;
    Number(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  template <typename T, typename Item>
  void List(const std::vector<T>& items, Item item) {
    Number(static_cast<uint32_t>(items.size()));
    for (const T& each : items) item(*this, each);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::unordered_map<std::string_view, size_t> numbers_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  void Number(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::string_view bytes = Take(sizeof(value));
    if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
  }
  void Text(std::string_view& text) {
    const uint32_t number = ReadCount();
    if (number == texts_.size() && !failed_) texts_.push_back(Take(ReadCount()));
    if (number >= texts_.size()) failed_ = true;
    text = failed_ ? std::string_view() : texts_[number];
  }
  // Each item takes a byte at least, so nothing is allocated that was not sent.
  template <typename T, typename Item>
  void List(std::vector<T>& items, Item item) {
    const uint32_t count = ReadCount();
    for (uint32_t i = 0; i < count && !failed_; ++i) item(*this, items.emplace_back());
  }
  bool good() const { return !failed_ && left_.empty(); }

 private:
  uint32_t ReadCount() {
    uint32_t count = 0;
    Number(count);
    return count;
  }
  std::string_view Take(size_t size) {
    if (size > left_.size()) {
      failed_ = true;
      left_ = {};
    }
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view left_;
  std::vector<std::string_view> texts_;
  bool failed_ = false;
};

constexpr auto kCodeFrame = [](auto& code, auto& frame) {
  code.Text(frame.function);
  code.Text(frame.file);
  code.Number(frame.line);
  uint8_t is_inlined = frame.is_inlined ? 1 : 0;
  code.Number(is_inlined);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(frame)>>) {
    frame.is_inlined = is_inlined != 0;
  }
};
constexpr auto kCodeFrames = [](auto& code, auto& frames) { code.List(frames, kCodeFrame); };
constexpr auto kCodeRange = [](auto& code, auto& range) {
  code.Number(range.begin);
  code.Number(range.end);
};
constexpr auto kCodeInline = [](auto& code, auto& call) {
  code.Text(call.function);
  code.Text(call.call_file);
  code.Number(call.call_line);
  code.Number(call.parent);
  code.List(call.ranges, kCodeRange);
};
constexpr auto kCodeRow = [](auto& code, auto& row) {
  code.Number(row.link_address);
  code.Text(row.file);
  code.Number(row.line);
  uint8_t is_gap = row.is_gap ? 1 : 0;
  code.Number(is_gap);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(row)>>) row.is_gap = is_gap != 0;
};
constexpr auto kCodeFunction = [](auto& code, auto& function) {
  code.Text(function.name);
  code.List(function.ranges, kCodeRange);
  code.List(function.inlined, kCodeInline);
  code.List(function.rows, kCodeRow);
};

bool IsSound(const std::vector<AddressRange>& ranges) {
  uint64_t last = 0;
  for (const AddressRange& range : ranges) {
    if (range.begin >= range.end || range.begin < last) return false;
    last = range.begin;
  }
  return true;
}

bool IsSound(const SourceFunction& function) {
  if (function.ranges.empty() || !IsSound(function.ranges)) return false;
  std::vector<uint32_t> depths;
  for (const SourceInline& call : function.inlined) {
    const bool is_outermost = call.parent == RangeMap::kNone;
    if (!is_outermost && call.parent >= depths.size()) return false;
    depths.push_back(is_outermost ? 1 : depths[call.parent] + 1);
    if (depths.back() > kDeepestInline || !IsSound(call.ranges)) return false;
  }
  uint64_t last = 0;
  auto range = function.ranges.begin();
  for (const SourceRow& row : function.rows) {
    while (range != function.ranges.end() && row.link_address >= range->end) ++range;
    if (range == function.ranges.end() || row.link_address < std::max(last, range->begin)) {
      return false;
    }
    last = row.link_address;
  }
  return true;
}

}  // namespace

std::string Encode(const FrameLists& frames) {
  Encoder code;
  code.List(frames, kCodeFrames);
  return code.Take();
}

std::string Encode(const std::vector<SourceFunction>& functions) {
  Encoder code;
  code.List(functions, kCodeFunction);
  return code.Take();
}

std::optional<FrameLists> DecodeFrames(std::string_view bytes, size_t count) {
  Decoder code(bytes);
  FrameLists frames;
  code.List(frames, kCodeFrames);
  if (!code.good() || frames.size() != count) return std::nullopt;
  return frames;
}

std::optional<std::vector<SourceFunction>> DecodeFunctions(std::string_view bytes) {
  Decoder code(bytes);
  std::vector<SourceFunction> functions;
  code.List(functions, kCodeFunction);
  if (!code.good()) return std::nullopt;
  for (const SourceFunction& function : functions) {
    if (!IsSound(function)) return std::nullopt;
  }
  return functions;
}

}  // namespace xpu::dwarf
