#include "symbolize/symbolizer.h"

#include <iterator>

#include "format/base/text.h"

namespace xpu {

std::string ToHex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) AppendFormat(text, "{:02x}", static_cast<unsigned char>(byte));
  return text;
}

ModuleId Symbolizer::Module(std::string_view path, std::string_view build_id) {
  std::string key(path);
  key += '\0';
  key += build_id;
  const auto [at, is_new] = ids_.try_emplace(std::move(key));
  if (is_new) {
    modules_.push_back(std::make_unique<LoadedModule>());
    modules_.back()->path = path;
    modules_.back()->build_id = build_id;
    at->second = ModuleId{static_cast<uint32_t>(modules_.size())};
  }
  return at->second;
}

std::optional<std::string_view> Symbolizer::FunctionAt(ModuleId id, uint64_t file_offset) {
  XPU_CHECK(id && id.value <= modules_.size());
  LoadedModule& module = *modules_[id.value - 1];
  if (!module.tried) Load(module);
  if (!module.symbols) return std::nullopt;
  const std::optional<uint64_t> link_address = module.file->image().LinkAddressOf(file_offset);
  if (!link_address) return std::nullopt;
  const ElfSymbol* symbol = module.symbols->Find(*link_address);
  if (symbol == nullptr) return std::nullopt;
  return symbol->name;
}

void Symbolizer::Load(LoadedModule& module) {
  module.tried = true;
  const auto fail = [&](ProblemKind kind, std::string message) {
    problems_.push_back({kind, module.path, std::move(message)});
    module.file.reset();
  };
  // "[vdso]", "//anon" and the like are no files.
  if (!module.path.starts_with('/') || module.path.starts_with("//")) return;
  Result<ElfFile> file = ElfFile::Open(module.path);
  if (!file.ok()) {
    const bool invalid = file.error().kind == ErrorKind::kInvalid;
    return fail(invalid ? ProblemKind::kUnreadable : ProblemKind::kMissing, file.error().message);
  }
  module.file = std::move(file).value();
  const ElfImage& image = module.file->image();
  if (!module.build_id.empty() && image.build_id() != module.build_id) {
    return fail(ProblemKind::kMismatch,
                Format("{}: is not the recorded file: build-id {}, recorded {}", module.path,
                       image.build_id().empty() ? "none" : ToHex(image.build_id()),
                       ToHex(module.build_id)));
  }
  std::vector<ElfSymbol> symbols = image.CodeSymbols();
  if (!image.has_symtab()) {
    module.debug_file = OpenDebugFile(image.build_id());
    if (module.debug_file) {
      std::vector<ElfSymbol> more = module.debug_file->image().CodeSymbols();
      symbols.insert(symbols.end(), more.begin(), more.end());
    }
  }
  if (symbols.empty()) {
    problems_.push_back({ProblemKind::kNoSymbols, module.path,
                         Format("{}: has no symbols (stripped)", module.path)});
  }
  module.symbols = std::make_unique<SymbolTable>(std::move(symbols));
}

std::optional<ElfFile> Symbolizer::OpenDebugFile(std::string_view build_id) const {
  if (build_id.size() < 2 || options_.debug_directory.empty()) return std::nullopt;
  const std::string hex = ToHex(build_id);
  Result<ElfFile> file = ElfFile::Open(Format("{}/.build-id/{}/{}.debug", options_.debug_directory,
                                              hex.substr(0, 2), hex.substr(2)));
  if (!file.ok() || file->image().build_id() != build_id) return std::nullopt;
  return std::move(file).value();
}

}  // namespace xpu
