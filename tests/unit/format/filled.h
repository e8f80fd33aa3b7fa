// Events whose every field has a value of its own, and their text: what was written and what was
// read are compared as lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "format/base/text.h"
#include "format/events.h"
#include "format/reader.h"
#include "format/writer.h"

namespace xpu::test {

// Between the bytes at which a file is cut or damaged. Sanitizers, which make this ten times as
// long, see a part of them: coprime with the sizes of fields and with the number of changes that
// take turns.
#ifdef XPU_SANITIZED
constexpr size_t kStep = 31;
#else
constexpr size_t kStep = 1;
#endif

// ---- the values of row `row` --------------------------------------------------------------------

uint64_t NumberOf(std::string_view field, uint32_t row);
std::string TextOf(std::string_view field, uint32_t row);
std::vector<Frame> FramesOf(uint32_t row);
std::string FramesText(std::span<const Frame> frames);

template <typename T>
T ScalarOf(std::string_view field, uint32_t row) {
  const uint64_t number = NumberOf(field, row);
  if constexpr (std::is_same_v<T, bool>) {
    return (number & 1) != 0;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(number % 3);
  } else if constexpr (std::is_same_v<T, InstanceId>) {
    return InstanceId{NumberOf("instance", row % 3)};
  } else {
    return static_cast<T>(number);
  }
}

template <typename Event>
Event Filled(uint32_t row, CaptureWriter& writer) {
  Event event;
  VisitFields(event, [&]<typename T>(std::string_view name, T& field) {
    if constexpr (std::is_same_v<T, StringId>) {
      field = writer.InternString(TextOf(name, row));
    } else if constexpr (std::is_same_v<T, StackId>) {
      field = writer.InternStack(FramesOf(row));
    } else {
      field = ScalarOf<T>(name, row);
    }
  });
  return event;
}

// ---- lines --------------------------------------------------------------------------------------

template <typename T>
std::string ScalarText(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<uint64_t>(value));
  } else if constexpr (std::is_same_v<T, InstanceId>) {
    return Format("{:016x}", value.value);
  } else {
    return std::to_string(value);
  }
}

// "<list> <field>=<value> ..."
template <typename Event>
std::string ExpectedLine(std::string_view list, uint32_t row) {
  std::string line(list);
  Event event;
  VisitFields(event, [&]<typename T>(std::string_view name, T&) {
    AppendFormat(line, " {}=", name);
    if constexpr (std::is_same_v<T, StringId>) {
      line += TextOf(name, row);
    } else if constexpr (std::is_same_v<T, StackId>) {
      line += FramesText(FramesOf(row));
    } else {
      line += ScalarText(ScalarOf<T>(name, row));
    }
  });
  return line;
}

// A reference whose definition was lost reads as "[lost]".
std::string StackText(const CaptureReader& reader, StackId id);

template <typename Event>
std::string LineOf(std::string_view list, const Event& event, const CaptureReader& reader) {
  std::string line(list);
  VisitFields(event, [&]<typename T>(std::string_view name, const T& field) {
    AppendFormat(line, " {}=", name);
    if constexpr (std::is_same_v<T, StringId>) {
      line += reader.String(field);
    } else if constexpr (std::is_same_v<T, StackId>) {
      line += StackText(reader, field);
    } else {
      line += ScalarText(field);
    }
  });
  return line;
}

// ---- captures -----------------------------------------------------------------------------------

// A file in memory. The writer gets a descriptor of its own.
class MemoryFile {
 public:
  MemoryFile();
  UniqueFd Writer() const;
  std::vector<std::byte> Bytes() const;

 private:
  UniqueFd fd_;
};

// One event of each kind for each row of [begin, end).
void WriteRows(CaptureWriter& writer, uint32_t begin, uint32_t end);
// The lines of those rows in the order in which a reader gives them, block by block.
std::vector<std::string> ExpectedRows(uint32_t begin, uint32_t end);

inline const size_t kKinds = [] {  // lists of EventBatch
  size_t count = 0;
  const EventBatch batch;
  VisitLists(batch, [&count](const char*, const auto&) { ++count; });
  return count;
}();

struct FilledFile {
  std::vector<std::byte> bytes;
  std::vector<size_t> ends;  // of the file header, then of each block
};
// `blocks` blocks of `rows` rows each.
FilledFile FilledCapture(uint32_t blocks, uint32_t rows);

struct ReadBack {
  std::vector<std::vector<std::string>> blocks;  // lines
  ReadProblems problems;
};
ReadBack ReadLines(CaptureReader& reader);
// Fails the test when the bytes are not a capture.
CaptureReader MustRead(std::span<const std::byte> bytes);
ReadBack ReadLines(std::span<const std::byte> bytes);

// Repeats what it was given, as far as that is alive.
class Alive : public LiveState {
 public:
  void ForEach(const TakeProcess& take_process, const TakeMapping& take_mapping) override {
    for (auto [event, name] : processes) {
      event.kind = ProcessEventKind::kExisting;
      take_process(event, name);
    }
    for (const auto& mapping : mappings) take_mapping(mapping, "/lib/libx.so", "\x01\x02");
  }

  std::vector<std::pair<ProcessEvent, std::string>> processes;
  std::vector<Mapping> mappings;
};

}  // namespace xpu::test
