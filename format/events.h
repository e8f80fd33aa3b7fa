// Interface 3: what a capture holds, as plain structs. The recorder fills them, the writer turns
// them into columns, the reader turns columns back into them, the report works on them. They are
// made from capture.capnp (record_compiler.cpp), where their fields are described; FORMAT.md has
// the bytes around the columns.
#pragma once

#include <cstddef>
#include <vector>

#include "format/records.h"

namespace xpu {

// Every kind of event, one list each, in the order in which they were written. Readers ask for
// order by time, writers do not promise it.
struct EventBatch {
  // Not news: what was written before, in this capture or an earlier part of the recording, and
  // what is needed to read this one alone.
  bool restated = false;

#define XPU_LIST(Event, list) std::vector<Event> list;
  XPU_EVENT_LISTS(XPU_LIST)
#undef XPU_LIST
};

// Calls visit(name, list) for each list of the batch, or of another struct that has the same
// lists; `name` is the list's member name.
template <typename Batch, typename Visit>
void VisitLists(Batch& batch, Visit&& visit) {
#define XPU_VISIT(Event, list) visit(#list, batch.list);
  XPU_EVENT_LISTS(XPU_VISIT)
#undef XPU_VISIT
}

template <typename Event>
consteval size_t FieldCount() {
  size_t count = 0;
  Event event;
  VisitFields(event, [&count](const char*, auto&) { ++count; });
  return count;
}

}  // namespace xpu
