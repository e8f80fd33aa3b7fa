#include "report/trace/nvtx_payload.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/base/text.h"

namespace xpu {
namespace {

// NVTX_PAYLOAD_ENTRY_FLAG_...
constexpr uint64_t kPointer = 1 << 1;
constexpr uint64_t kArray = 7 << 4;
constexpr uint64_t kFixedArray = 1 << 4;
constexpr uint64_t kHidden = 1 << 9;

// NVTX_PAYLOAD_ENTRY_TYPE_...: what is not here is not shown, and what follows it without an offset
// cannot be found.
enum : uint64_t {
  kChar = 1,
  kFloat = 19,
  kDouble = 20,
  kAddress = 23,
  kChar8 = 25,
  kFloat32 = 43,
  kFloat64 = 44,
};

struct Basic {
  uint64_t type;
  uint64_t size_bytes;
  bool is_integer;
  bool is_signed;
};
constexpr Basic kBasics[] = {
    {1, 1, true, true},    {2, 1, true, false},  {3, 2, true, true},    {4, 2, true, false},
    {5, 4, true, true},    {6, 4, true, false},  {7, 8, true, true},    {8, 8, true, false},
    {9, 8, true, true},    {10, 8, true, false}, {11, 1, true, true},   {12, 1, true, false},
    {13, 2, true, true},   {14, 2, true, false}, {15, 4, true, true},   {16, 4, true, false},
    {17, 8, true, true},   {18, 8, true, false}, {19, 4, false, false}, {20, 8, false, false},
    {22, 8, true, false},  {23, 8, true, false}, {24, 4, true, false},  {25, 1, true, false},
    {26, 2, true, false},  {27, 4, true, false}, {32, 1, true, false},  {43, 4, false, false},
    {44, 8, false, false}, {68, 4, true, false}, {69, 4, true, false},  {70, 8, true, false},
    {71, 4, true, false},  {72, 8, true, false}, {73, 4, true, false},  {74, 8, true, false},
};

// Most entries of a schema, the same as in the recorder: payloads are read entry by entry.
constexpr uint32_t kMostEntries = 256;

bool IsCharacter(uint64_t type) { return type == kChar || type == kChar8; }

uint64_t BitsOf(std::string_view bytes, bool is_signed) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), std::min(bytes.size(), sizeof(bits)));
  const size_t width = 8 * bytes.size();
  if (!is_signed || width >= 64) return bits;
  const size_t unused = 64 - width;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
}

}  // namespace

NvtxSchemas::NvtxSchemas(const Model& model) : model_(model) {
  for (const NvtxSchemaEntry& entry : model.events.nvtx_schema_entries) {
    if (entry.entry >= kMostEntries) continue;
    const Key key(entry.instance, entry.domain, entry.schema);
    (entry.is_enumeration ? enumerations_ : schemas_)[key][entry.entry] = &entry;
  }
}

NvtxSchemas::Type NvtxSchemas::TypeOf(const NvtxSchemaEntry& entry) const {
  if ((entry.flags & kPointer) != 0) return {.size_bytes = 8, .is_integer = true};
  for (const Basic& basic : kBasics) {
    if (basic.type != entry.type) continue;
    return {.size_bytes = basic.size_bytes,
            .is_integer = basic.is_integer,
            .is_signed = basic.is_signed};
  }
  const Key key(entry.instance, entry.domain, entry.type);
  if (const auto values = enumerations_.find(key); values != enumerations_.end()) {
    const uint64_t size_bytes = values->second.begin()->second->size_bytes;
    const bool is_number = size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8;
    return {.size_bytes = is_number ? size_bytes : 4, .is_integer = true, .names = &values->second};
  }
  const auto nested = schemas_.find(key);
  return {.size_bytes = nested == schemas_.end() ? 0 : nested->second.begin()->second->size_bytes};
}

PayloadField NvtxSchemas::Read(const NvtxSchemaEntry& entry, const Type& type,
                               std::string_view bytes) const {
  PayloadField field{.name = model_.Text(entry.name)};
  const uint64_t bits = BitsOf(bytes, type.is_signed);
  if (!type.is_integer) {
    field.text = bytes.size() == 4 ? Format("{}", std::bit_cast<float>(static_cast<uint32_t>(bits)))
                                   : Format("{}", std::bit_cast<double>(bits));
    return field;
  }
  field.is_number = true;
  field.number = bits;
  if (type.names != nullptr) {
    for (const auto& [number, value] : *type.names) {
      if (value->value != bits) continue;
      field.text = model_.Text(value->name);
      return field;
    }
  }
  const bool is_address = (entry.flags & kPointer) != 0 || entry.type == kAddress;
  field.text = is_address       ? Format("{:#x}", bits)
               : type.is_signed ? std::to_string(static_cast<int64_t>(bits))
                                : std::to_string(bits);
  return field;
}

std::vector<PayloadField> NvtxSchemas::FieldsOf(const NvtxEvent& event) const {
  std::vector<PayloadField> fields;
  if (event.payload_type != NvtxPayload::kExtended) return fields;
  const auto schema = schemas_.find({event.instance, event.domain, event.payload_schema});
  if (schema == schemas_.end()) return fields;
  const std::string_view payload = model_.Bytes(event.payload_data);
  uint64_t next = 0;  // after the field before
  bool knows_next = true;
  for (const auto& [number, entry] : schema->second) {
    const Type type = TypeOf(*entry);
    const bool has_offset = entry->offset != 0 || number == 0;
    if (type.size_bytes == 0 || (!has_offset && !knows_next)) {
      knows_next = false;
      continue;
    }
    const uint64_t alignment = std::min<uint64_t>(std::bit_floor(type.size_bytes), 8);
    const uint64_t at = has_offset ? entry->offset : (next + alignment - 1) / alignment * alignment;
    const bool is_array = (entry->flags & kArray) == kFixedArray && (entry->flags & kPointer) == 0;
    if (at > payload.size()) break;
    const uint64_t room = payload.size() - at;
    if (is_array && entry->array_length > room / type.size_bytes) break;
    const uint64_t size_bytes = is_array ? type.size_bytes * entry->array_length : type.size_bytes;
    if (size_bytes > room) break;
    next = at + size_bytes;
    knows_next = (entry->flags & kArray) == 0 || is_array;
    if ((entry->flags & kHidden) != 0) continue;
    const std::string_view bytes = payload.substr(at, size_bytes);
    if (is_array && IsCharacter(entry->type)) {
      fields.push_back({.name = model_.Text(entry->name),
                        .text = std::string(bytes.substr(0, bytes.find('\0')))});
    } else if ((entry->flags & kArray) == 0 &&
               (type.is_integer || entry->type == kFloat || entry->type == kDouble ||
                entry->type == kFloat32 || entry->type == kFloat64)) {
      fields.push_back(Read(*entry, type, bytes));
    }
  }
  return fields;
}

}  // namespace xpu
