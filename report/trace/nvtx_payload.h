// Payloads of NVTX ranges and marks whose fields the program has described by a schema.
//
// A payload is read by the description alone, so that a library may add fields and change their
// order: who looks for a field does so by its name. Both come from the program and are not trusted:
// what does not lie within the payload is left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/model/model.h"

namespace xpu {

struct PayloadField {
  std::string_view name;
  bool is_number = false;  // an integer
  uint64_t number = 0;     // its bits, sign-extended
  std::string text = {};   // as it is shown: "4096", "-1", "Sum"
};

class NvtxSchemas {
 public:
  // `model` must outlive this.
  explicit NvtxSchemas(const Model& model);

  // In the order of the schema; empty where the event has no payload of a schema, or its schema is
  // not known.
  std::vector<PayloadField> FieldsOf(const NvtxEvent& event) const;

 private:
  using Key = std::tuple<InstanceId, uint32_t, uint64_t>;  // domain, schema
  // The last definition of each entry.
  using Entries = std::map<uint32_t, const NvtxSchemaEntry*>;

  // The type of an entry: how wide one value is, and how to show it.
  struct Type {
    uint64_t size_bytes = 0;  // 0: not known
    bool is_integer = false;
    bool is_signed = false;
    const Entries* names = nullptr;  // of an enumeration
  };
  Type TypeOf(const NvtxSchemaEntry& entry) const;
  PayloadField Read(const NvtxSchemaEntry& entry, const Type& type, std::string_view bytes) const;

  const Model& model_;
  std::map<Key, Entries> schemas_;
  std::map<Key, Entries> enumerations_;
};

}  // namespace xpu
