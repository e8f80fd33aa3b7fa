// Does with a capture what a report does: reads every block, every text and every stack.
#pragma once

#include "format/base/check.h"
#include "format/events.h"
#include "format/reader.h"

namespace xpu::fuzz {

inline void ReadAll(CaptureReader& reader) {
  uint64_t events = 0;
  while (const auto batch = reader.Next()) {
    VisitLists(*batch, [&](const char*, const auto& list) {
      events += list.size();
      for (const auto& event : list) {
        VisitFields(event, [&]<typename Field>(const char*, const Field& field) {
          if constexpr (std::is_same_v<Field, StringId>) {
            XPU_CHECK(reader.String(field).size() <= size_t{1} << 22);
          } else if constexpr (std::is_same_v<Field, StackId>) {
            // Events name only what is in the tables.
            XPU_CHECK(field.value < reader.stack_bound());
          }
        });
      }
    });
  }
  for (uint32_t id = 1; id < reader.stack_bound(); ++id) {
    XPU_CHECK(reader.Node(StackId{id}).caller.value < id);
  }
  XPU_CHECK(reader.Stack(StackId{reader.stack_bound() - 1}).size() <= 2048);
  XPU_CHECK(events <= reader.problems().blocks_read * 65536);
}

}  // namespace xpu::fuzz
