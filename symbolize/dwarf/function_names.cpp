#include "symbolize/dwarf/function_names.h"

#include "symbolize/dwarf/constants.h"

namespace xpu::dwarf {
namespace {

// Code to its abstract instance to the declaration in its class; dwz adds a step. Damaged files
// have circles.
constexpr int kMostSteps = 16;

struct NameValues {
  FormValue linkage_name;
  FormValue name;
  FormValue origin;
};

NameValues ReadNames(EntryPlace entry) {
  NameValues values;
  EntryWalk walk(*entry.unit, entry.offset);
  if (walk.Next() == nullptr) return values;
  walk.Read([&](uint16_t attribute, const FormValue& value) {
    if (attribute == kAtLinkageName || attribute == kAtMipsLinkageName) values.linkage_name = value;
    if (attribute == kAtName) values.name = value;
    if (attribute == kAtAbstractOrigin) values.origin = value;
    if (attribute == kAtSpecification && !values.origin.exists()) values.origin = value;
  });
  return values;
}

}  // namespace

std::string_view FunctionNames::NameOf(EntryPlace entry) {
  if (entry.unit == nullptr) return {};
  const auto [found, is_new] =
      names_.try_emplace({.file = entry.unit->file, .offset = entry.offset});
  if (is_new) found->second = Read(entry);
  return found->second;
}

std::string_view FunctionNames::Read(EntryPlace entry) {
  std::string_view plain;
  for (int step = 0; step < kMostSteps; ++step) {
    const NameValues values = ReadNames(entry);
    const std::string_view linkage = entry.unit->Text(values.linkage_name);
    if (!linkage.empty()) return linkage;
    if (plain.empty()) plain = entry.unit->Text(values.name);
    const auto next = entry.unit->file->Follow(*entry.unit, values.origin);
    if (!next) break;
    entry = *next;
  }
  return plain;
}

}  // namespace xpu::dwarf
