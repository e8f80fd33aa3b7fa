// Columns are found by their place, so fields.h, the structs and capture.capnp must agree.
#include <cctype>

#include <capnp/schema.h>
#include <gtest/gtest.h>

#include "format/fields.h"
#include "format/schema_of.h"

namespace xpu::test {
namespace {

std::string CamelCase(std::string_view snake) {
  std::string camel;
  bool upper = false;
  for (char c : snake) {
    if (c != '_') camel.push_back(upper ? static_cast<char>(std::toupper(c)) : c);
    upper = c == '_';
  }
  return camel;
}

std::vector<std::string> NamesOf(capnp::StructSchema schema) {
  std::vector<std::string> names;
  for (auto field : schema.getFields()) names.emplace_back(field.getProto().getName().cStr());
  return names;
}

TEST(Schema, ListsAreInTheOrderOfTheBatch) {
  std::vector<std::string> lists;
  EventBatch batch;
  VisitLists(batch, [&lists](const char* name, auto&) { lists.push_back(CamelCase(name)); });
  EXPECT_EQ(NamesOf(capnp::Schema::from<schema::Events>()), lists);
}

TEST(Schema, ColumnsAreInTheOrderOfTheFields) {
  EventBatch batch;
  VisitLists(batch, []<typename Event>(const char* list, std::vector<Event>&) {
    const auto schema = capnp::Schema::from<SchemaOf<Event>>();
    std::vector<std::string> fields = {"rows"};
    Event event;
    VisitFields(event, [&fields](const char* name, auto&) { fields.push_back(CamelCase(name)); });
    EXPECT_EQ(NamesOf(schema), fields) << list;
    // Places are those of the pointers: every field but `rows` is one.
    for (auto field : schema.getFields()) {
      if (field.getIndex() == 0) continue;
      ASSERT_TRUE(field.getType().isStruct()) << list;
      EXPECT_EQ(field.getProto().getSlot().getOffset() + 1, field.getIndex()) << list;
    }
  });
}

// Each field begins where the one before it ends: none is left out of fields.h.
TEST(Schema, FieldsCoverTheStructs) {
  EventBatch batch;
  VisitLists(batch, []<typename Event>(const char* list, std::vector<Event>&) {
    Event event;
    const auto* base = reinterpret_cast<const char*>(&event);
    size_t end = 0;
    VisitFields(event, [&]<typename T>(const char* name, T& field) {
      const size_t begin = (end + alignof(T) - 1) / alignof(T) * alignof(T);
      EXPECT_EQ(static_cast<size_t>(reinterpret_cast<const char*>(&field) - base), begin)
          << list << "." << name;
      end = begin + sizeof(T);
    });
    EXPECT_EQ((end + alignof(Event) - 1) / alignof(Event) * alignof(Event), sizeof(Event)) << list;
  });
}

}  // namespace
}  // namespace xpu::test
