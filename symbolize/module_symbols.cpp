#include "symbolize/module_symbols.h"

#include <utility>

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/path.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kMaxSliceBytes = size_t{64} << 20;

}  // namespace

ModuleSymbols::ModuleSymbols(const RecordedFile& recorded, const FileFinder& finder, Detail detail)
    : recorded_(recorded), finder_(finder), detail_(detail) {
  OpenSlice();
  if (!slice_) OpenFile();
  if (detail_ != Detail::kNames) OpenDebugInfo();
}

void ModuleSymbols::Fail(FileProblem problem, std::string text) {
  if (problem_ != FileProblem::kNone) return;
  problem_ = problem;
  problem_text_ = std::move(text);
}

std::unique_ptr<ModuleSymbols::Slice> ModuleSymbols::Open(const RecordedFile::SliceParts& parts) {
  if (parts.empty()) return nullptr;
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  if (bytes > kMaxSliceBytes) {
    Fail(FileProblem::kSlice, Format("{}: its slice has {} bytes", recorded_.path, bytes));
    return nullptr;
  }
  auto slice = std::make_unique<Slice>();
  slice->text = parts.front();
  if (parts.size() > 1) {
    slice->bytes.reserve(bytes);
    for (const std::string_view part : parts) slice->bytes += part;
    slice->text = slice->bytes;
  }
  Result<ElfImage> image =
      ElfImage::Parse(std::as_bytes(std::span(slice->text)), recorded_.path + " (slice)");
  if (!image.ok()) {
    Fail(FileProblem::kSlice, image.error().message);
    return nullptr;
  }
  if (!recorded_.build_id.empty() && image->build_id() != recorded_.build_id) {
    Fail(FileProblem::kSlice,
         Format("{}: its slice is from a different build: build-id {}, recorded {}", recorded_.path,
                ToHex(image->build_id()), ToHex(recorded_.build_id)));
    return nullptr;
  }
  slice->image = std::move(image).value();
  slice->symbols.emplace(*slice->image);
  return slice;
}

void ModuleSymbols::OpenSlice() {
  slice_ = Open(recorded_.slice);
  // One that cannot be read is no reason to do without the others.
  while (!slice_ && OpenOlderSlice()) {
    slice_ = std::move(older_.back());
    older_.pop_back();
  }
}

bool ModuleSymbols::OpenOlderSlice() {
  const auto& all = recorded_.older_slices;
  while (older_tried_ < all.size()) {
    auto slice = Open(all[all.size() - ++older_tried_]);
    if (!slice) continue;
    if (detail_ != Detail::kNames) {
      Result<DebugInfo> info = DebugInfo::Parse(slice->text, recorded_.path, finder_.reading());
      if (info.ok()) {
        slice->debug_info = std::move(info).value();
        slice->debug_info->Prepare(prepared_);
      }
    }
    older_.push_back(std::move(slice));
    return true;
  }
  return false;
}

void ModuleSymbols::OpenFile() {
  if (std::exchange(file_tried_, true) || !IsFilePath(recorded_.path)) return;
  FileSearch search = finder_.Program(recorded_.path, recorded_.build_id);
  file_ = std::move(search.found);
  if (!file_ || !file_->file.image().has_symtab()) OpenDebugFile();
  if (file_ && debug_file_) {
    file_symbols_.emplace(file_->file.image(), &debug_file_->file.image());
  } else if (file_ || debug_file_) {
    file_symbols_.emplace((file_ ? *file_ : *debug_file_).file.image());
  }
  // What the capture itself has is enough for names.
  const bool is_refused = search.problem == FileProblem::kMismatch;
  if (slice_ && !(is_refused && detail_ != Detail::kNames)) return;
  if (!file_ && (!debug_file_ || is_refused)) {
    return Fail(search.problem, std::move(search.message));
  }
  if (file_symbols_->table().empty()) {
    Fail(FileProblem::kNoSymbols, Format("{}: has no symbols (stripped)", recorded_.path));
  }
}

void ModuleSymbols::OpenDebugFile() {
  if (std::exchange(debug_file_tried_, true) || !IsFilePath(recorded_.path)) return;
  // The file's own id serves where the recording has none.
  const std::string_view build_id =
      file_ ? file_->file.image().build_id() : std::string_view(recorded_.build_id);
  const std::string& path = file_ ? file_->path : recorded_.path;
  FileSearch search = finder_.Debug(path, build_id, file_ ? &file_->file.image() : nullptr);
  debug_file_ = std::move(search.found);
  if (search.problem == FileProblem::kMismatch) Fail(search.problem, std::move(search.message));
}

bool ModuleSymbols::OpenDebugInfoOf(const FoundFile& file) {
  Result<DebugInfo> info = DebugInfo::Open(
      file.path, {.alternate_path = finder_.Alternate(file), .reading = finder_.reading()});
  if (!info.ok()) return false;
  debug_info_ = std::move(info).value();
  std::string package = file.path + ".dwp";
  if (OpenRegularFile(package).ok()) package_ = std::move(package);
  return true;
}

void ModuleSymbols::OpenDebugInfo() {
  if (slice_) {
    Result<DebugInfo> info = DebugInfo::Parse(slice_->text, recorded_.path, finder_.reading());
    if (info.ok()) {
      debug_info_ = std::move(info).value();
      return;
    }
  }
  OpenFile();
  if (file_ && OpenDebugInfoOf(*file_)) return;
  OpenDebugFile();
  if (debug_file_) OpenDebugInfoOf(*debug_file_);
}

std::optional<uint64_t> ModuleSymbols::LinkAddressOf(uint64_t file_offset) {
  if (slice_) return slice_->image->LinkAddressOf(file_offset);
  if (file_) return file_->file.image().LinkAddressOf(file_offset);
  // Debug files keep the program headers; some tools set the sizes in the file to zero there, then
  // nothing is translated.
  if (debug_file_) return debug_file_->file.image().LinkAddressOf(file_offset);
  return std::nullopt;
}

const ElfSymbol* ModuleSymbols::SymbolInOlderSlices(uint64_t link_address) {
  for (size_t i = 0; i < older_.size() || OpenOlderSlice(); ++i) {
    if (const ElfSymbol* symbol = older_[i]->symbols->table().Find(link_address)) return symbol;
  }
  return nullptr;
}

void ModuleSymbols::NoteFailureOf(const DebugInfo& info) {
  if (!info.failure().empty()) Fail(FileProblem::kLines, info.failure());
}

// libdw 0.188 knows no .dwp: what a skeleton stands for is missing then.
void ModuleSymbols::NotePackage() {
  if (package_.empty()) return;
  Fail(FileProblem::kLines,
       Format(
           "{}: packages of split debug information (.dwp) are not read; the .dwo files are, where "
           "they were compiled to",
           package_));
}

void ModuleSymbols::Prepare(std::span<const uint64_t> file_offsets) {
  if (!debug_info_) return;
  for (const uint64_t file_offset : file_offsets) {
    if (const auto link_address = LinkAddressOf(file_offset)) prepared_.push_back(*link_address);
  }
  debug_info_->Prepare(prepared_);
}

const std::vector<SourceFrame>& ModuleSymbols::SourceAt(uint64_t link_address) {
  const std::vector<SourceFrame>& frames = debug_info_->At(link_address);
  if (!frames.empty() && frames.back().function.empty()) NotePackage();
  if (!frames.empty()) return frames;
  NoteFailureOf(*debug_info_);
  for (size_t i = 0; i < older_.size() || OpenOlderSlice(); ++i) {
    if (!older_[i]->debug_info) continue;
    const std::vector<SourceFrame>& others = older_[i]->debug_info->At(link_address);
    if (!others.empty()) return others;
    NoteFailureOf(*older_[i]->debug_info);
  }
  return frames;
}

std::optional<ElfSymbol> ModuleSymbols::SymbolAt(uint64_t file_offset, uint64_t link_address) {
  std::optional<ElfSymbol> nameless;
  if (slice_) {
    const ElfSymbol* symbol = slice_->symbols->table().Find(link_address);
    if (symbol == nullptr) symbol = SymbolInOlderSlices(link_address);
    if (symbol != nullptr) {
      if (!symbol->name.empty()) return *symbol;
      nameless = *symbol;
    }
    OpenFile();
    if (file_) link_address = file_->file.image().LinkAddressOf(file_offset).value_or(link_address);
  }
  if (!file_symbols_) return nameless;
  if (const ElfSymbol* symbol = file_symbols_->table().Find(link_address)) return *symbol;
  if (nameless) return nameless;
  const std::vector<ElfSymbol> ranges = file_symbols_->NamelessAt({&link_address, 1});
  return ranges.empty() ? std::nullopt : std::optional(ranges.front());
}

const std::vector<CodeFrame>& ModuleSymbols::At(uint64_t file_offset) {
  frames_.clear();
  const std::optional<uint64_t> link_address = LinkAddressOf(file_offset);
  if (!link_address) return frames_;
  if (debug_info_) {
    for (const SourceFrame& frame : SourceAt(*link_address)) {
      frames_.push_back({.function = frame.function,
                         .file = frame.file,
                         .line = frame.line,
                         .is_inlined = frame.is_inlined,
                         .offset = {}});
    }
    if (detail_ != Detail::kInlines && frames_.size() > 1) {
      frames_.erase(frames_.begin(), frames_.end() - 1);
    }
  }
  // The symbol's name and not DWARF's: the function is called the same with and without lines.
  if (const std::optional<ElfSymbol> symbol = SymbolAt(file_offset, *link_address)) {
    if (frames_.empty()) frames_.emplace_back();
    if (!symbol->name.empty()) frames_.back().function = symbol->name;
    frames_.back().offset = *link_address - symbol->link_address;
  }
  return frames_;
}

}  // namespace xpu
