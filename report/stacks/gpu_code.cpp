#include "report/stacks/gpu_code.h"

#include "format/base/text.h"
#include "symbolize/elf/cubin.h"

namespace xpu {
namespace {

// Most parts of one module.
constexpr size_t kMostCubinParts = kMaxCubinSliceBytes / 4096;
// Each is read by a process of its own, and takes a second or more when it is damaged. No sound one
// fails.
constexpr size_t kMostLineTables = 4096;
constexpr size_t kMostLineFailures = 4;

}  // namespace

GpuCode::GpuCode(const Model& model, DebugReading reading) : reading_(reading) {
  std::map<Module, Slice*> open;
  for (const CubinSlice& part : model.events.cubin_slices) {
    const Module module(part.instance.value, part.cubin_crc);
    if (part.part == 0) {
      std::vector<std::unique_ptr<Slice>>& slices = modules_[module].slices;
      slices.push_back(std::make_unique<Slice>());
      open[module] = slices.back().get();
    }
    Slice*& slice = open[module];
    const bool is_next = slice != nullptr && slice->parts.size() == part.part &&
                         part.part < kMostCubinParts && part.bytes != kLostString;
    if (is_next) {
      slice->parts.push_back(model.Bytes(part.bytes));
    } else if (slice != nullptr) {
      slice->parts.clear();  // damaged
      slice = nullptr;
    }
  }
}

void GpuCode::OpenNext(Code& code) {
  Slice& slice = *code.slices[code.opened++];
  if (slice.parts.empty()) return;
  std::string_view bytes = slice.parts.front();
  if (slice.parts.size() > 1) {
    for (const std::string_view part : slice.parts) slice.joined += part;
    bytes = slice.joined;
  }
  slice.parts.clear();
  auto image = ElfImage::Parse(std::as_bytes(std::span(bytes)), "GPU code");
  if (!image.ok() || image->machine() != kCubinMachine) return;
  slice.image = *std::move(image);
  for (const ElfSymbol& symbol : slice.image->CodeSymbols()) {
    if (symbol.is_function) {
      code.functions.try_emplace(symbol.name,
                                 Found{&slice, symbol.link_address, symbol.size_bytes});
    }
  }
}

GpuCode::Found GpuCode::Find(const Function& function) {
  const auto module = modules_.find({function.instance.value, function.cubin_crc});
  if (module == modules_.end()) return {};
  Code& code = module->second;
  auto found = code.functions.find(function.name);
  while (found == code.functions.end() && code.opened < code.slices.size()) {
    OpenNext(code);
    found = code.functions.find(function.name);
  }
  return found == code.functions.end() ? Found() : found->second;
}

DebugInfo* GpuCode::LinesOf(Slice& slice, uint64_t cubin_crc) {
  if (!std::exchange(slice.lines_tried, true) && tables_ < kMostLineTables &&
      failures_ < kMostLineFailures && slice.image->SectionWithoutBytes(".debug_line").exists) {
    ++tables_;
    const auto whole = slice.image->BytesAt(0, UINT64_MAX);
    auto info = DebugInfo::Parse({reinterpret_cast<const char*>(whole.data()), whole.size()},
                                 Format("GPU module {:x}", cubin_crc), reading_);
    if (info.ok()) slice.lines.emplace(*std::move(info));
  }
  return slice.lines ? &*slice.lines : nullptr;
}

std::vector<std::vector<SourceFrame>> GpuCode::LinesOf(const Function& function,
                                                       std::span<const uint64_t> offsets) {
  std::vector<std::vector<SourceFrame>> lines(offsets.size());
  const Found found = Find(function);
  DebugInfo* info = found.slice == nullptr ? nullptr : LinesOf(*found.slice, function.cubin_crc);
  if (info == nullptr) return lines;
  std::vector<uint64_t> addresses;
  for (const uint64_t offset : offsets) {
    if (offset < found.size_bytes) addresses.push_back(found.link_address + offset);
  }
  const bool had_failed = !info->failure().empty();
  info->Prepare(addresses);
  if (!had_failed && !info->failure().empty()) ++failures_;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < found.size_bytes) lines[i] = info->At(found.link_address + offsets[i]);
  }
  return lines;
}

std::span<const std::byte> GpuCode::CodeOf(const Function& function) {
  const Found found = Find(function);
  if (found.slice == nullptr) return {};
  return found.slice->image->BytesAtLinkAddress(found.link_address, found.size_bytes);
}

std::vector<std::string> GpuCode::failures() const {
  std::vector<std::string> all;
  for (const auto& [module, code] : modules_) {
    for (const auto& slice : code.slices) {
      if (slice->lines && !slice->lines->failure().empty()) all.push_back(slice->lines->failure());
    }
  }
  return all;
}

}  // namespace xpu
