// CUPTI's activity records as events of the capture, field by field.
#pragma once

#include <cstddef>
#include <span>
#include <variant>

#include "format/events.h"
#include "record/sink/event_sink.h"

namespace xpu {

// RawActivity, or what cupti_records.inc says that records become.
using ActivityEvent = std::variant<RawActivity
#define KIND(kind, number, cupti_kind, name, event) , event
#define OTHER_KIND(kind, number, cupti_kind, name, event)
#include "cupti_inject/cupti_records.inc"
                                   >;

// Instance and texts of `event` are left empty: ids hold only until the next write.
struct DecodedActivity {
  ActivityEvent event;
  std::span<const std::byte> tail;  // after the last field that this version knows
  std::span<const std::byte> uuid;  // of a Device
};

// `record` is a whole record as CUPTI laid it out, of any version; one that is shorter than its
// oldest known version, or of a kind not taken apart, is a RawActivity.
DecodedActivity DecodeActivity(std::span<const std::byte> record);

// Writes what DecodeActivity made of `record`, and for a Device the whole record beside it; fills
// in the instance and the texts of `decoded`. Counts operations without a time, as the report does.
// `name`: what the record's name pointer meant.
void WriteActivity(std::span<const std::byte> record, DecodedActivity& decoded, KeptText& name,
                   InstanceId instance, EventSink& sink);

// The correlation id of the GPU operation that the record describes; 0: of none.
uint32_t CorrelationOf(const ActivityEvent& event);

}  // namespace xpu
