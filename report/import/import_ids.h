// The ids that lines of many kinds of records have.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "report/import/import_line.h"
#include "report/import/import_words.h"

namespace xpu {

inline std::optional<uint32_t> CorrelationIn(const TraceLine& line) {
  for (const std::string_view name : {"correlationId", "correlation id", "correlation"}) {
    if (line.Number({name})) return line.Number32({name});
  }
  return std::nullopt;
}

// Of a record that has times, one correlation id and perhaps a place.
template <typename Event>
void ReadIds(const TraceLine& line, Event& event) {
  const auto read = [&](uint32_t& value, std::initializer_list<std::string_view> names) {
    if (line.Number(names)) value = line.Number32(names);
  };
  if constexpr (requires { event.correlation_id; }) {
    event.correlation_id = CorrelationIn(line).value_or(event.correlation_id);
  }
  if constexpr (requires { event.device_id; }) read(event.device_id, {"deviceId", "device"});
  if constexpr (requires { event.context_id; }) read(event.context_id, {"contextId", "context"});
  if constexpr (requires { event.stream_id; }) read(event.stream_id, {"streamId", "stream"});
  if constexpr (requires { event.graph_id; }) read(event.graph_id, {"graphId", "graph ID"});
  if constexpr (requires { event.graph_node_id; }) {
    if (const auto id = line.Number({"graphNodeId", "graph node ID"})) event.graph_node_id = *id;
  }
  if constexpr (requires { event.channel_id; }) {
    read(event.channel_id, {"channelId"});
    if (const auto type = line.Word("channelType"); !type.empty()) {
      event.channel_type = IndexIn(kChannelTypes, type);
    }
  }
}

inline bool HasPlace(const TraceLine& line) {
  return line.Number({"deviceId", "device"}).has_value();
}

}  // namespace xpu
