// The struct of columns in capture.capnp of each event type: SchemaOf<Kernel> is schema::Kernel.
#pragma once

#include "format/capture.capnp.h"
#include "format/events.h"

namespace xpu {

template <typename Event>
struct SchemaOfEvent;

#define XPU_SCHEMA_OF(event, list) \
  template <>                      \
  struct SchemaOfEvent<event> {    \
    using Type = schema::event;    \
  };
XPU_EVENT_LISTS(XPU_SCHEMA_OF)
#undef XPU_SCHEMA_OF

template <typename Event>
using SchemaOf = typename SchemaOfEvent<Event>::Type;

}  // namespace xpu
