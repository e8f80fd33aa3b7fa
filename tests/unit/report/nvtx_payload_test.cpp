#include "report/trace/nvtx_payload.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kPayloadSchema = (1 << 24) + 5, kReductions = (1 << 24) + 14;
// NVTX_PAYLOAD_ENTRY_TYPE_...
constexpr uint64_t kChar = 1, kInt = 5, kUint64 = 18, kDouble = 20, kSize = 22, kLongDouble = 21;

class NvtxSchemasTest : public testing::Test {
 protected:
  NvtxSchemaEntry& Entry(std::string_view name, uint64_t type, uint64_t offset = 0) {
    NvtxSchemaEntry& entry = builder_.events.nvtx_schema_entries.emplace_back();
    entry.instance = {7};
    entry.domain = 1;
    entry.schema = kPayloadSchema;
    entry.entry = next_++;
    entry.name = builder_.Text(name);
    entry.type = type;
    entry.offset = offset;
    return entry;
  }
  void Value(std::string_view name, uint64_t value) {
    NvtxSchemaEntry& entry = Entry(name, 0);
    entry.schema = kReductions;
    entry.is_enumeration = true;
    entry.value = value;
    entry.size_bytes = 4;
  }
  template <typename... Values>
  static std::string Packed(Values... values) {
    std::string bytes;
    const auto add = [&bytes](const auto& value) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    };
    (add(values), ...);
    return bytes;
  }
  // "name=text" of each.
  std::vector<std::string> Fields(std::string_view payload, uint32_t domain = 1) {
    NvtxEvent event;
    event.instance = {7};
    event.domain = domain;
    event.payload_type = NvtxPayload::kExtended;
    event.payload_schema = kPayloadSchema;
    event.payload_data = builder_.Text(payload);
    const Model model = builder_.Build();
    std::vector<std::string> fields;
    for (const PayloadField& field : NvtxSchemas(model).FieldsOf(event)) {
      fields.push_back(std::string(field.name) + "=" + field.text);
    }
    return fields;
  }

  using Texts = std::vector<std::string>;
  test::ModelBuilder builder_;
  uint32_t next_ = 0;
};

TEST_F(NvtxSchemasTest, FieldsAreFoundByTheirOffsets) {
  Entry("communicator", kUint64);
  Entry("bytes", kSize, 8);
  Entry("root", kInt, 16);
  EXPECT_EQ(Fields(Packed(uint64_t{0xffffffffffffffff}, uint64_t{4096}, int32_t{-1})),
            (Texts{"communicator=18446744073709551615", "bytes=4096", "root=-1"}));
}

TEST_F(NvtxSchemasTest, WithoutOffsetsTheyFollowEachOtherAligned) {
  Entry("small", kInt);
  Entry("large", kUint64);
  Entry("real", kDouble);
  EXPECT_EQ(Fields(Packed(int32_t{7}, int32_t{0}, uint64_t{8}, 1.5)),
            (Texts{"small=7", "large=8", "real=1.5"}));
}

TEST_F(NvtxSchemasTest, ValuesOfEnumerationsHaveTheirNames) {
  Entry("bytes", kSize);
  Entry("operation", kReductions, 8);
  Value("Sum", 0);
  Value("Max", 2);
  EXPECT_EQ(Fields(Packed(uint64_t{1}, uint32_t{2})), (Texts{"bytes=1", "operation=Max"}));
}

TEST_F(NvtxSchemasTest, UnknownValuesOfEnumerationsAreNumbers) {
  Entry("operation", kReductions);
  Value("Sum", 0);
  EXPECT_EQ(Fields(Packed(uint32_t{9})), Texts{"operation=9"});
}

TEST_F(NvtxSchemasTest, TextsInThePayload) {
  NvtxSchemaEntry& name = Entry("name", kChar);
  name.flags = 1 << 4;
  name.array_length = 8;
  Entry("after", kInt);
  EXPECT_EQ(Fields(Packed('a', 'b', '\0', 'x', 'x', 'x', 'x', 'x', int32_t{3})),
            (Texts{"name=ab", "after=3"}));
}

TEST_F(NvtxSchemasTest, WhatIsCutIsLeftOut) {
  Entry("communicator", kUint64);
  Entry("bytes", kSize, 8);
  Entry("far", kInt, ~uint64_t{0} - 2);
  EXPECT_EQ(Fields(Packed(uint64_t{1}, uint32_t{2})), Texts{"communicator=1"});
}

TEST_F(NvtxSchemasTest, AnArrayWithoutEndIsLeftOut) {
  NvtxSchemaEntry& name = Entry("name", kChar);
  name.flags = 1 << 4;
  name.array_length = ~uint64_t{0};
  EXPECT_EQ(Fields("abc"), Texts{});
}

TEST_F(NvtxSchemasTest, WhatFollowsAnUnknownTypeNeedsAnOffset) {
  Entry("unknown", kLongDouble);
  Entry("lost", kInt);
  Entry("found", kInt, 16);
  EXPECT_EQ(Fields(Packed(uint64_t{0}, uint64_t{0}, int32_t{5})), Texts{"found=5"});
}

TEST_F(NvtxSchemasTest, SchemasAreOfADomain) {
  Entry("bytes", kSize);
  EXPECT_EQ(Fields(Packed(uint64_t{1}), 2), Texts{});
}

}  // namespace
}  // namespace xpu
