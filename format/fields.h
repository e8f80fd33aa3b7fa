// The fields of every event type, by name: what the columns of a capture, the dump and the tests
// go through. The order is that of the struct and of its columns in capture.capnp (a test compares
// them), so a new field comes last.
#pragma once

#include <cstddef>

#include "format/events.h"
#include "format/gpu_fields.h"

namespace xpu {

// VisitFields(event, visit) calls visit(name, field) for each field.

template <SameEvent<RecordingInfo> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("start_ns", event.start_ns);
  visit("start_realtime_ns", event.start_realtime_ns);
  visit("recorder_pid", event.recorder_pid);
  visit("cpu_count", event.cpu_count);
  visit("recorder_version", event.recorder_version);
  visit("host_name", event.host_name);
  visit("kernel_release", event.kernel_release);
  visit("machine", event.machine);
  visit("command_line", event.command_line);
  visit("settings", event.settings);
  visit("working_directory", event.working_directory);
  visit("launch_stacks", event.launch_stacks);
  visit("graph_trace", event.graph_trace);
  visit("call_graph", event.call_graph);
  visit("symbols", event.symbols);
  visit("recording", event.recording);
  visit("part", event.part);
}

template <SameEvent<RecordingEnd> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("target_pid", event.target_pid);
  visit("wait_status", event.wait_status);
  visit("is_continued", event.is_continued);
}

template <SameEvent<SampleSource> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("source", event.source);
  visit("name", event.name);
  visit("frequency_hz", event.frequency_hz);
  visit("period", event.period);
  visit("unit", event.unit);
}

template <SameEvent<Loss> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("name", event.name);
  visit("count", event.count);
  visit("pid", event.pid);
  visit("instance", event.instance);
  visit("detail", event.detail);
}

template <SameEvent<ProcessEvent> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("kind", event.kind);
  visit("restated", event.restated);
  visit("pid", event.pid);
  visit("tid", event.tid);
  visit("parent_pid", event.parent_pid);
  visit("parent_tid", event.parent_tid);
  visit("name", event.name);
}

template <SameEvent<Mapping> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("restated", event.restated);
  visit("pid", event.pid);
  visit("tid", event.tid);
  visit("start_address", event.start_address);
  visit("size_bytes", event.size_bytes);
  visit("file_offset", event.file_offset);
  visit("protection", event.protection);
  visit("flags", event.flags);
  visit("path", event.path);
  visit("build_id", event.build_id);
  visit("device_major", event.device_major);
  visit("device_minor", event.device_minor);
  visit("inode", event.inode);
}

template <SameEvent<KernelSymbol> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("address", event.address);
  visit("size_bytes", event.size_bytes);
  visit("name", event.name);
  visit("module", event.module);
}

template <SameEvent<CpuSample> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("source", event.source);
  visit("pid", event.pid);
  visit("tid", event.tid);
  visit("cpu", event.cpu);
  visit("stack", event.stack);
  visit("stack_flags", event.stack_flags);
  visit("weight", event.weight);
  visit("python_stack", event.python_stack);
}

template <SameEvent<Probe> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("probe", event.probe);
  visit("purpose", event.purpose);
  visit("function", event.function);
  visit("path", event.path);
  visit("kind", event.kind);
  visit("offset", event.offset);
}

template <SameEvent<ProbeHit> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("probe", event.probe);
  visit("is_return", event.is_return);
  visit("pid", event.pid);
  visit("tid", event.tid);
  visit("cpu", event.cpu);
  visit("kernel", event.kernel);
  visit("return_value", event.return_value);
  visit("stack", event.stack);
  visit("stack_flags", event.stack_flags);
  visit("python_stack", event.python_stack);
}

template <SameEvent<SymbolSlice> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("path", event.path);
  visit("build_id", event.build_id);
  visit("detail", event.detail);
  visit("part", event.part);
  visit("part_count", event.part_count);
  visit("bytes", event.bytes);
}

template <SameEvent<PythonCode> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("code", event.code);
  visit("name", event.name);
  visit("path", event.path);
  visit("first_line", event.first_line);
  visit("line_table", event.line_table);
  visit("version", event.version);
}

template <SameEvent<NvtxEvent> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("instance", event.instance);
  visit("time_ns", event.time_ns);
  visit("kind", event.kind);
  visit("tid", event.tid);
  visit("domain", event.domain);
  visit("range", event.range);
  visit("text", event.text);
  visit("category", event.category);
  visit("color", event.color);
  visit("payload_type", event.payload_type);
  visit("payload", event.payload);
}

template <SameEvent<RecordingSwitch> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("is_on", event.is_on);
  visit("cause", event.cause);
}

template <SameEvent<GeneratedSymbol> Event, typename Visit>
constexpr void VisitFields(Event& event, Visit&& visit) {
  visit("time_ns", event.time_ns);
  visit("pid", event.pid);
  visit("address", event.address);
  visit("size_bytes", event.size_bytes);
  visit("name", event.name);
}

template <typename Event>
consteval size_t FieldCount() {
  size_t count = 0;
  Event event;
  VisitFields(event, [&count](const char*, auto&) { ++count; });
  return count;
}

}  // namespace xpu
