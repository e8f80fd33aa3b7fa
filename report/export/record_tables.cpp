#include "report/export/record_tables.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "format/base/text.h"
#include "format/events.h"

namespace xpu {
namespace {

// What a table shows of bytes that are no text. A small file may refer to large ones from many
// places.
constexpr size_t kMostBytes = Model::kLongestText / 2;

// The parts of symbol slices are up to 512 KiB: as in --dump, their sizes stand for them.
template <typename Event>
constexpr bool kHasSizesOnly = std::is_same_v<Event, SymbolSlice>;

template <typename Event>
class ColumnCollector {
 public:
  explicit ColumnCollector(std::vector<ExportColumn>& columns) : columns_(columns) {}

  void operator()(FieldInfo field, StringId) {
    const bool is_size = kHasSizesOnly<Event> && field.name == std::string_view("bytes");
    columns_.push_back({field.name, is_size ? ColumnType::kInteger : ColumnType::kText});
  }
  void operator()(FieldInfo field, InstanceId) {
    columns_.push_back({field.name, ColumnType::kText});
  }
  template <typename Value>
  void operator()(FieldInfo field, Value) {
    columns_.push_back(
        {field.name, std::is_enum_v<Value> ? ColumnType::kText : ColumnType::kInteger});
  }

 private:
  std::vector<ExportColumn>& columns_;
};

template <typename Event>
class CellWriter {
 public:
  CellWriter(const Model& model, TableSink& sink, uint32_t& most_stack)
      : model_(model), sink_(sink), most_stack_(most_stack) {}

  void operator()(FieldInfo field, StringId value) {
    const std::string_view bytes = model_.Bytes(value);
    if (kHasSizesOnly<Event> && field.name == std::string_view("bytes")) {
      sink_.Unsigned(bytes.size());
    } else if (field.meaning == Meaning::kBytes) {
      sink_.Text(ToHex(bytes.substr(0, kMostBytes)));
    } else {
      sink_.Text(model_.Text(value));
    }
  }
  void operator()(FieldInfo, StackId value) {
    most_stack_ = std::max(most_stack_, value.value);
    sink_.Unsigned(value.value);
  }
  // Text: tools that have no unsigned numbers of 64 bits would mistake it.
  void operator()(FieldInfo, InstanceId value) { sink_.Text(Format("{:016x}", value.value)); }
  void operator()(FieldInfo, bool value) { sink_.Unsigned(value ? 1 : 0); }
  template <typename Value>
  requires std::is_enum_v<Value>
  void operator()(FieldInfo, Value value) {
    const std::string_view name = NameOf(value);
    sink_.Text(name.empty() ? Format("{}", static_cast<unsigned>(value)) : std::string(name));
  }
  template <typename Value>
  requires std::is_integral_v<Value>
  void operator()(FieldInfo, Value value) {
    if constexpr (std::is_signed_v<Value>) {
      sink_.Signed(value);
    } else {
      sink_.Unsigned(value);
    }
  }

 private:
  const Model& model_;
  TableSink& sink_;
  uint32_t& most_stack_;
};

template <typename List>
void WriteTable(const Model& model, const List& list, std::string_view prefix, TableSink& sink,
                uint32_t& most_stack) {
  using Event = std::decay_t<decltype(list[0])>;
  std::vector<ExportColumn> columns;
  Event none;
  VisitFields(none, ColumnCollector<Event>(columns));
  sink.Begin(std::string(prefix) + std::string(kEventName<Event>), columns);
  CellWriter<Event> write(model, sink, most_stack);
  for (const Event& event : list) {
    if (sink.failed()) return;
    VisitFields(event, write);
    sink.EndRow();
  }
  sink.End();
}

std::string_view FrameKindName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kUser:
      return "user";
    case FrameKind::kKernel:
      return "kernel";
    case FrameKind::kPython:
      return "python";
  }
  return "unknown";
}

// Callers have smaller ids than their callees.
void WriteStackNodes(const CaptureTables& tables, uint32_t most_stack, std::string_view prefix,
                     TableSink& sink) {
  constexpr ExportColumn kColumns[] = {
      {"stack", ColumnType::kKey}, {"caller"}, {"kind", ColumnType::kText}, {"address"}};
  sink.Begin(std::string(prefix) + "stack_node", kColumns);
  for (uint32_t i = 1; i <= most_stack && !sink.failed(); ++i) {
    if (tables.IsLost(StackId{i})) continue;
    const StackNode node = tables.Node(StackId{i});
    sink.Unsigned(i);
    sink.Unsigned(node.caller.value);
    sink.Text(FrameKindName(node.frame.kind));
    sink.Unsigned(node.frame.address);
    sink.EndRow();
  }
  sink.End();
}

}  // namespace

void WriteRecordTables(const Analysis& analysis, std::string_view prefix, TableSink& sink) {
  const Model& model = analysis.model;
  uint32_t most_stack = 0;
  VisitLists(model.events, [&](std::string_view, const auto& list) {
    WriteTable(model, list, prefix, sink, most_stack);
  });
  WriteStackNodes(*model.tables, most_stack, prefix, sink);
}

}  // namespace xpu
