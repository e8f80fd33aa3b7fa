// The names of functions: entries of code point to the entry of their declaration.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "symbolize/dwarf/debug_file.h"

namespace xpu::dwarf {

class FunctionNames {
 public:
  // The linkage name, else the plain one, of a function's entry or of what it refers to. Empty:
  // none.
  std::string_view NameOf(EntryPlace entry);

 private:
  struct Key {
    const DebugFile* file;
    uint64_t offset;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return std::hash<uint64_t>()(key.offset * 31 + reinterpret_cast<uintptr_t>(key.file));
    }
  };

  static std::string_view Read(EntryPlace entry);

  std::unordered_map<Key, std::string_view, KeyHash> names_;
};

}  // namespace xpu::dwarf
