// Decodes CUPTI's activity records into events of the capture, field by field.
#pragma once

#include <cstddef>
#include <span>
#include <variant>

#include "format/events.h"
#include "record/sink/event_sink.h"

namespace xpu {

// RawActivity, or one of the events that cupti_records.inc lists.
using ActivityEvent = std::variant<RawActivity
#define KIND(kind, number, cupti_kind, name, event) , event
#define OTHER_KIND(kind, number, cupti_kind, name, event)
#include "cupti_inject/cupti_records.inc"
                                   >;

// The instance and the strings of `event` are left empty, because string ids are valid only until
// the next write.
struct DecodedActivity {
  ActivityEvent event;
  std::span<const std::byte> tail;  // after the last field that this version of xpu knows
  std::span<const std::byte> uuid;  // of a Device
};

// `record` is a complete record as CUPTI laid it out, of any version. A record that is shorter than
// its oldest known version, or of a kind that is not decoded, becomes a RawActivity.
DecodedActivity DecodeActivity(std::span<const std::byte> record);

// Fills in the instance and the strings of `decoded` and writes it; a Device is followed by its
// complete record. Counts operations without a valid time as the report does. `name`: the string
// that the record's name pointer refers to.
void WriteActivity(std::span<const std::byte> record, DecodedActivity& decoded, KeptText& name,
                   InstanceId instance, EventSink& sink);

// The correlation id of the GPU operation that the record describes; 0 if it describes none.
uint32_t CorrelationOf(const ActivityEvent& event);

}  // namespace xpu
