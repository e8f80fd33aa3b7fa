#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "format/base/text.h"
#include "format/events.h"
#include "report/export/export_tables.h"

namespace xpu {
namespace {

// Most bytes of a binary value that a table shows. A small file may refer to large ones from many
// places.
constexpr size_t kMostBytes = Model::kLongestText / 2;

// The parts of symbol slices are up to 512 KiB: as in --dump, their sizes stand for them.
template <typename Event>
constexpr bool kHasSizesOnly = std::is_same_v<Event, SymbolSlice>;

// The stacks that the rows refer to, and all near them. Between the ids of several captures that
// are shown as one are gaps of billions, which nobody can go through.
class StackIds {
 public:
  void Add(StackId id) { used_[id.value / kBlock] = true; }

  // Callers have smaller ids than their callees.
  void AddCallers(const CaptureTables& tables) {
    for (uint32_t block = kBlocks; block-- > 0;) {
      VisitBlock(block, [&](StackId id) {
        if (!tables.IsLost(id)) Add(tables.Node(id).caller);
      });
    }
  }

  // In order.
  template <typename Function>
  void Visit(Function function) const {
    for (uint32_t block = 0; block < kBlocks; ++block) VisitBlock(block, function);
  }

 private:
  static constexpr uint32_t kBlock = 1 << 16;
  static constexpr uint32_t kBlocks = UINT32_MAX / kBlock + 1;

  template <typename Function>
  void VisitBlock(uint32_t block, Function function) const {
    if (!used_[block]) return;
    for (uint32_t i = 0; i < kBlock; ++i) {
      if (const StackId id{block * kBlock + i}) function(id);
    }
  }

  std::vector<bool> used_ = std::vector<bool>(kBlocks);
};

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
  CellWriter(const Model& model, TableSink& sink, StackIds& stacks)
      : model_(model), sink_(sink), stacks_(stacks) {}

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
    stacks_.Add(value);
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
  StackIds& stacks_;
};

template <typename List>
void WriteTable(const Model& model, const List& list, std::string_view prefix, TableSink& sink,
                StackIds& stacks) {
  using Event = std::decay_t<decltype(list[0])>;
  std::vector<ExportColumn> columns;
  Event none;
  VisitFields(none, ColumnCollector<Event>(columns));
  sink.Begin(std::string(prefix) + std::string(kEventName<Event>), columns);
  CellWriter<Event> write(model, sink, stacks);
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

void WriteStackNodes(const CaptureTables& tables, StackIds& stacks, std::string_view prefix,
                     TableSink& sink) {
  constexpr ExportColumn kColumns[] = {
      {"stack", ColumnType::kKey}, {"caller"}, {"kind", ColumnType::kText}, {"address"}};
  sink.Begin(std::string(prefix) + "stack_node", kColumns);
  stacks.AddCallers(tables);
  stacks.Visit([&](StackId id) {
    if (sink.failed() || tables.IsLost(id)) return;
    const StackNode node = tables.Node(id);
    sink.Unsigned(id.value);
    sink.Unsigned(node.caller.value);
    sink.Text(FrameKindName(node.frame.kind));
    sink.Unsigned(node.frame.address);
    sink.EndRow();
  });
  sink.End();
}

}  // namespace

void WriteRecordTables(const Analysis& analysis, std::string_view prefix, TableSink& sink) {
  const Model& model = analysis.model;
  StackIds stacks;
  VisitLists(model.events, [&](std::string_view, const auto& list) {
    WriteTable(model, list, prefix, sink, stacks);
  });
  WriteStackNodes(*model.tables, stacks, prefix, sink);
}

}  // namespace xpu
