#include "symbolize/dwarf/debug_info.h"

#include <unordered_map>
#include <unordered_set>

#include "format/base/text.h"
#include "symbolize/dwarf/code_index.h"
#include "symbolize/dwarf/function_copy.h"
#include "symbolize/dwarf/mapped_elf.h"
#include "symbolize/dwarf/sections.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// The file that dwz moved shared entries into.
class AlternateFile {
 public:
  static std::unique_ptr<AlternateFile> Open(const std::string& path, dwarf::Access access) {
    auto file = dwarf::MappedElf::Open(path, access);
    if (!file.ok()) return nullptr;
    return std::unique_ptr<AlternateFile>(new AlternateFile(std::move(file).value()));
  }
  dwarf::DebugFile* debug() { return &debug_; }

 private:
  explicit AlternateFile(std::unique_ptr<dwarf::MappedElf> file)
      : file_(std::move(file)),
        store_(file_->image(), dwarf::SectionNames::kMain),
        debug_(store_.sections()) {}

  std::unique_ptr<dwarf::MappedElf> file_;
  dwarf::SectionStore store_;
  dwarf::DebugFile debug_;
};

}  // namespace

class DebugInfo::Impl {
 public:
  Impl(const ElfImage& image, std::unique_ptr<AlternateFile> alternate, dwarf::SplitUnits split)
      : alternate_(std::move(alternate)),
        store_(image, dwarf::SectionNames::kMain),
        debug_(store_.sections(), alternate_ == nullptr ? nullptr : alternate_->debug()),
        index_(debug_, dwarf::LiveCode(image.segments()), std::move(split)) {}

  void Keep(std::unique_ptr<dwarf::MappedElf> file) { file_ = std::move(file); }
  bool empty() const { return debug_.units().empty(); }

  const std::vector<SourceFrame>& At(uint64_t link_address) {
    const auto [found, is_new] = answers_.try_emplace(link_address);
    if (is_new) found->second = Read(link_address);
    return found->second;
  }

  std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> link_addresses) {
    std::vector<SourceFunction> functions;
    std::unordered_set<const void*> seen;
    for (const uint64_t link_address : link_addresses) {
      const dwarf::CodePlace place = index_.Find(link_address);
      if (place.function == nullptr || !seen.insert(place.function).second) continue;
      functions.push_back(dwarf::CopyFunction(place, index_.names()));
    }
    return functions;
  }

 private:
  std::vector<SourceFrame> Read(uint64_t link_address) {
    std::vector<SourceFrame> frames;
    const dwarf::CodePlace place = index_.Find(link_address);
    if (place.lines == nullptr) return frames;
    const dwarf::LineRow* row = place.lines->Find(link_address);
    SourceFrame frame;
    if (row != nullptr) {
      frame.file = place.lines->File(row->file);
      frame.line = row->line;
    }
    if (place.function == nullptr) {
      if (row != nullptr) frames.push_back(frame);
      return frames;
    }
    uint32_t call = place.inlined->map.Find(link_address);
    while (call != dwarf::RangeMap::kNone) {
      const dwarf::InlinedCall& inlined = place.inlined->calls[call];
      frame.function = index_.names().NameOf(inlined.origin);
      frame.is_inlined = true;
      frames.push_back(frame);
      frame.file = place.lines->File(inlined.call_file);
      frame.line = inlined.call_line;
      call = inlined.parent;
    }
    frame.function = index_.names().NameOf(place.function->entry);
    frame.is_inlined = false;
    frames.push_back(frame);
    return frames;
  }

  std::unique_ptr<dwarf::MappedElf> file_;  // nullptr: the bytes are the caller's
  std::unique_ptr<AlternateFile> alternate_;
  dwarf::SectionStore store_;
  dwarf::DebugFile debug_;
  dwarf::CodeIndex index_;
  std::unordered_map<uint64_t, std::vector<SourceFrame>> answers_;
};

DebugInfo::DebugInfo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;
DebugInfo::~DebugInfo() = default;

Result<DebugInfo> DebugInfo::Open(const std::string& path, const Options& options) {
  const auto access = options.copied ? dwarf::Access::kCopied : dwarf::Access::kMapped;
  XPU_ASSIGN_OR_RETURN(auto file, dwarf::MappedElf::Open(path, access));
  auto impl =
      std::make_unique<Impl>(file->image(), AlternateFile::Open(options.alternate_path, access),
                             dwarf::SplitUnits(path, options.folder, access));
  impl->Keep(std::move(file));
  if (impl->empty()) {
    return Error{ErrorKind::kNotFound, Format("{}: no debug information", path), {}};
  }
  return DebugInfo(std::move(impl));
}

Result<DebugInfo> DebugInfo::Parse(std::string_view bytes, std::string_view name) {
  XPU_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(AsBytes(bytes), name));
  auto impl =
      std::make_unique<Impl>(image, nullptr, dwarf::SplitUnits({}, {}, dwarf::Access::kCopied));
  if (impl->empty()) {
    return Error{ErrorKind::kNotFound, Format("{}: no debug information", name), {}};
  }
  return DebugInfo(std::move(impl));
}

const std::vector<SourceFrame>& DebugInfo::At(uint64_t link_address) {
  return impl_->At(link_address);
}

std::vector<SourceFunction> DebugInfo::FunctionsAt(std::span<const uint64_t> link_addresses) {
  return impl_->FunctionsAt(link_addresses);
}

}  // namespace xpu
