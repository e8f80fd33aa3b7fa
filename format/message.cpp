#include "format/message.h"

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>

#include "format/base/check.h"
#include "format/capture.capnp.h"
#include "format/column.h"
#include "format/events.h"
#include "format/field_columns.h"
#include "format/schema_of.h"

namespace xpu {
namespace {

// ---- encoding ----------------------------------------------------------------------------------

// Columns are addressed by their place: the order of VisitFields is that of the schema (tested).
void EncodeColumns(const std::vector<GatheredColumn>& gathered, capnp::AnyStruct::Builder target) {
  auto columns = target.getPointerSection();
  XPU_CHECK(columns.size() == gathered.size());
  // To count from a column of equal values is what `base` is for: then there is none before.
  std::span<const uint64_t> before;
  for (unsigned i = 0; i < columns.size(); ++i) {
    const auto& [first, values] = gathered[i];
    if (!values.empty()) {
      EncodeColumn(values, before, columns[i].initAs<schema::Column>());
    } else if (first != 0) {
      columns[i].initAs<schema::Column>().setBase(first);
    }
    before = values;
  }
}

template <typename Event>
void EncodeList(const std::vector<Event>& list, InstancePlaces& instances,
                typename SchemaOf<Event>::Builder target) {
  target.setRows(static_cast<uint32_t>(list.size()));
  EncodeColumns(GatherColumns(FieldPlaces<Event>(), reinterpret_cast<const std::byte*>(list.data()),
                              list.size(), sizeof(Event), instances),
                kj::mv(target));
}

void EncodeStrings(const BlockContent& content, schema::Strings::Builder strings) {
  std::vector<uint64_t> sizes(content.string_sizes.begin(), content.string_sizes.end());
  strings.setCount(static_cast<uint32_t>(sizes.size()));
  strings.setFirstId(content.first_string);
  if (!IsZeroColumn(sizes)) EncodeColumn(sizes, {}, strings.initLengths());
  strings.setBytes(
      capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(content.string_bytes.data()),
                          content.string_bytes.size()));
}

void EncodeStacks(const BlockContent& content, schema::Stacks::Builder stacks) {
  const size_t count = content.stack_nodes.size();
  std::vector<uint64_t> distances(count);
  std::vector<uint64_t> kinds(count);
  std::vector<uint64_t> addresses(count);
  for (size_t i = 0; i < count; ++i) {
    const StackNode& node = content.stack_nodes[i];
    const auto own = content.first_stack + static_cast<uint32_t>(i);
    distances[i] = node.caller ? own - node.caller.value : 0;
    kinds[i] = static_cast<uint64_t>(node.frame.kind);
    addresses[i] = node.frame.address;
  }
  stacks.setCount(static_cast<uint32_t>(count));
  stacks.setFirstId(content.first_stack);
  if (!IsZeroColumn(distances)) EncodeColumn(distances, {}, stacks.initCallerDistance());
  if (!IsZeroColumn(kinds)) EncodeColumn(kinds, distances, stacks.initFrameKind());
  if (!IsZeroColumn(addresses)) EncodeColumn(addresses, kinds, stacks.initAddress());
}

}  // namespace

size_t CountEvents(const EventBatch& events) {
  size_t count = 0;
  VisitLists(events, [&count](const char*, const auto& list) { count += list.size(); });
  return count;
}

std::vector<uint64_t> EncodeMessage(const BlockContent& content) {
  constexpr unsigned kFirstSegmentWords = 64 << 10;
  capnp::MallocMessageBuilder message(kFirstSegmentWords);
  auto block = message.initRoot<schema::Block>();
  if (!content.string_sizes.empty()) EncodeStrings(content, block.initStrings());
  if (!content.stack_nodes.empty()) EncodeStacks(content, block.initStacks());

  block.setRestated(content.events.restated);
  InstancePlaces instances;
  auto lists = capnp::AnyStruct::Builder(block.initEvents()).getPointerSection();
  unsigned place = 0;
  VisitLists(content.events, [&]<typename Event>(const char*, const std::vector<Event>& list) {
    if (!list.empty()) EncodeList(list, instances, lists[place].initAs<SchemaOf<Event>>());
    ++place;
  });
  const auto& used = instances.instances();
  auto target = block.initInstances(static_cast<unsigned>(used.size()));
  for (unsigned i = 0; i < target.size(); ++i) target.set(i, used[i].value);

  std::vector<uint64_t> words(capnp::computeSerializedSizeInWords(message));
  kj::ArrayOutputStream out(
      kj::arrayPtr(reinterpret_cast<kj::byte*>(words.data()), words.size() * sizeof(uint64_t)));
  capnp::writeMessage(out, message);
  return words;
}

// ---- decoding ----------------------------------------------------------------------------------

namespace {

// Thrown by this file for what Cap'n Proto accepts and a writer never makes; caught below.
struct BadMessage {};

void Require(bool condition) {
  if (!condition) throw BadMessage{};
}

std::vector<uint64_t> DecodeNumbers(schema::Column::Reader column, uint32_t count) {
  std::vector<uint64_t> values(count);
  Require(DecodeColumn(column, {}, values));
  return values;
}

void DecodeStrings(schema::Strings::Reader strings, BlockContent& content) {
  const uint32_t count = strings.getCount();
  Require(count <= kMaxDefinitionsPerBlock);
  content.first_string = strings.getFirstId();
  const auto bytes = strings.getBytes();
  size_t rest = bytes.size();
  for (uint64_t size : DecodeNumbers(strings.getLengths(), count)) {
    Require(size <= rest);
    rest -= size;
    content.string_sizes.push_back(static_cast<uint32_t>(size));
  }
  Require(rest == 0);
  content.string_bytes.assign(bytes.asChars().begin(), bytes.size());
}

void DecodeStacks(schema::Stacks::Reader stacks, BlockContent& content) {
  const uint32_t count = stacks.getCount();
  Require(count <= kMaxDefinitionsPerBlock);
  content.first_stack = stacks.getFirstId();
  std::vector<uint64_t> distances(count);
  std::vector<uint64_t> kinds(count);
  std::vector<uint64_t> addresses(count);
  Require(DecodeColumn(stacks.getCallerDistance(), {}, distances));
  Require(DecodeColumn(stacks.getFrameKind(), distances, kinds));
  Require(DecodeColumn(stacks.getAddress(), kinds, addresses));
  content.stack_nodes.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    // Only ids below its own can be named, so callers never form a cycle.
    const uint64_t own = uint64_t{content.first_stack} + i;
    StackNode& node = content.stack_nodes[i];
    if (distances[i] >= own) {
      node.caller = kLostStack;
    } else if (distances[i] != 0) {
      node.caller.value = static_cast<uint32_t>(own - distances[i]);
    }
    node.frame = Frame{static_cast<FrameKind>(kinds[i]), addresses[i]};
  }
}

// The columns of a list. Those of one value stay that.
class DecodedColumns {
 public:
  // A file of an older version has fewer columns than there are fields, one of a newer version
  // more. Those that are left out are 0.
  DecodedColumns(capnp::AnyStruct::Reader source, size_t fields, uint32_t rows)
      : rows_(rows),
        memory_(std::make_unique_for_overwrite<uint64_t[]>(fields * rows)),
        free_(memory_.get(), fields * rows),
        columns_(fields) {
    const auto columns = source.getPointerSection();
    for (unsigned i = 0; i < std::min<size_t>(columns.size(), fields); ++i) {
      if (!columns[i].isNull()) Decode(i, columns[i].getAs<schema::Column>());
    }
  }
  const std::vector<ColumnToScatter>& columns() const { return columns_; }

 private:
  // In order.
  void Decode(size_t place, schema::Column::Reader column) {
    if (const auto all = ValueOfAll(column)) {
      columns_[place].all = *all;
      return;
    }
    const bool has_before = place > 0 && IsFromColumnBefore(column);
    const auto before = has_before ? WrittenOut(columns_[place - 1]) : std::span<const uint64_t>();
    const std::span<uint64_t> values = TakeColumn();
    Require(DecodeColumn(column, before, values));
    columns_[place].values = values;
  }
  std::span<uint64_t> TakeColumn() {
    const auto values = free_.first(rows_);
    free_ = free_.subspan(rows_);
    return values;
  }
  std::span<const uint64_t> WrittenOut(ColumnToScatter& column) {
    if (column.values.empty()) {
      const std::span<uint64_t> values = TakeColumn();
      std::fill(values.begin(), values.end(), column.all);
      column.values = values;
    }
    return column.values;
  }

  const uint32_t rows_;
  const std::unique_ptr<uint64_t[]> memory_;
  std::span<uint64_t> free_;
  std::vector<ColumnToScatter> columns_;
};

template <typename Event>
void DecodeList(typename SchemaOf<Event>::Reader source, const std::vector<InstanceId>& instances,
                uint32_t& events_left, std::vector<Event>& list) {
  const uint32_t rows = source.getRows();
  Require(rows <= events_left);
  events_left -= rows;
  const DecodedColumns decoded(source, FieldCount<Event>(), rows);
  if (rows == 0) return;
  const auto fields = FieldPlaces<Event>();
  Require(ScatterColumns(ColumnScatter(fields, decoded.columns(), instances), rows, list));
}

BlockContent DecodeBlock(schema::Block::Reader block, uint32_t events_limit) {
  BlockContent content;
  DecodeStrings(block.getStrings(), content);
  DecodeStacks(block.getStacks(), content);

  content.events.restated = block.getRestated();
  std::vector<InstanceId> instances;
  for (uint64_t instance : block.getInstances()) instances.push_back(InstanceId{instance});
  const auto events = block.getEvents();
  const auto lists = capnp::AnyStruct::Reader(events).getPointerSection();
  unsigned place = 0;
  VisitLists(content.events, [&]<typename Event>(const char*, std::vector<Event>& list) {
    if (place < lists.size() && !lists[place].isNull()) {
      DecodeList(lists[place].getAs<SchemaOf<Event>>(), instances, events_limit, list);
    }
    ++place;
  });
  return content;
}

}  // namespace

std::optional<BlockContent> DecodeMessage(std::span<const std::byte> message,
                                          uint32_t events_limit) {
  const auto words = kj::arrayPtr(reinterpret_cast<const capnp::word*>(message.data()),
                                  message.size() / sizeof(capnp::word));
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 8 * words.size();
  options.nestingLimit = 8;
  try {
    capnp::FlatArrayMessageReader reader(words, options);
    return DecodeBlock(reader.getRoot<schema::Block>(), events_limit);
  } catch (const kj::Exception&) {
    return std::nullopt;
  } catch (const BadMessage&) {
    return std::nullopt;
  }
}

// ---- ids ---------------------------------------------------------------------------------------

void TranslateIds(EventBatch& events, IdTranslation& translation) {
  VisitLists(events, [&](const char*, auto& list) {
    for (auto& event : list) {
      VisitFields(event, [&]<typename Field>(const char*, Field& field) {
        if constexpr (std::is_same_v<Field, StringId> || std::is_same_v<Field, StackId>) {
          if (field) field = translation.ToReader(field);
        }
      });
    }
  });
}

}  // namespace xpu
