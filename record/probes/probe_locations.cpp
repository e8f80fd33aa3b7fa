#include "record/probes/probe_locations.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/environment.h"
#include "record/probes/probe_functions.h"
#include "record/process/loader.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;

// True for the name itself and for the name without a version: "libc" for "libc.so.6".
bool IsNamed(std::string_view file, const std::string& name) {
  if (file == name) return true;
  return name.find(".so") == std::string::npos && file.starts_with(name + ".so");
}

std::string InDirectory(const std::string& directory, const std::string& name) {
  std::error_code failed;
  if (fs::is_regular_file(directory + "/" + name, failed)) return directory + "/" + name;
  if (name.find(".so") != std::string::npos) return {};
  std::set<std::string> found;  // sorted, so that the choice is always the same
  fs::directory_iterator entry(directory, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    if (IsNamed(entry->path().filename().native(), name)) found.insert(entry->path().native());
  }
  return found.empty() ? std::string() : *found.begin();
}

std::string InLoaderCache(const std::string& name) {
  auto cache = ReadFile(kLoaderCache);
  if (!cache.ok()) return {};
  std::string found;
  for (const auto& [library, path] : LibrariesOfLoaderCache(*cache)) {
    if (IsNamed(library, name) && (found.empty() || path < found)) found = path;
  }
  return found;
}

// "ns::f(int)" is the function "ns::f".
bool IsWhole(std::string_view demangled, std::string_view name) {
  return demangled.size() == name.size() || demangled[name.size()] == '(';
}

// by symbol, with the sizes
using Functions = std::map<std::string_view, std::map<uint64_t, uint64_t>>;

Functions FunctionsOf(const ElfImage& image) {
  Functions functions;
  for (const ElfSymbol& symbol : image.CodeSymbols()) {
    if (symbol.is_function && !symbol.name.empty()) {
      uint64_t& size = functions[symbol.name][symbol.link_address];
      size = std::max(size, symbol.size_bytes);
    }
  }
  return functions;
}

bool IsOperator(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  if (!name.starts_with(kOperator) || name.size() == kOperator.size()) return false;
  const char next = name[kOperator.size()];
  return next != '_' && std::isalnum(static_cast<unsigned char>(next)) == 0;
}

// The position in a demangled name where the function's own name begins: in an instance of a
// template its result type comes first, "void ns::f<int>(int)".
size_t NameBegin(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  size_t begin = 0;
  size_t depth = 0;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const std::string_view before = demangled.substr(0, i);
    const char c = demangled[i];
    if (demangled.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (depth == 0 && (i == begin || before.ends_with("::")) &&
               IsOperator(demangled.substr(i))) {
      break;  // "operator new", "operator<"
    } else if (c == '(' && depth == 0 && !before.ends_with("decltype ")) {
      break;
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == ' ' && depth == 0 && !before.ends_with("decltype")) {
      begin = i + 1;
    }
  }
  return begin;
}

// The symbols whose demangled names begin with `name`, with or without a result type; if some match
// completely, only these.
std::map<std::string, std::string_view> FindDemangled(const Functions& functions,
                                                      const std::string& name) {
  std::map<std::string, std::string_view> whole, begin;
  for (const auto& [symbol, entries] : functions) {
    const std::string demangled = Demangle(symbol);
    if (demangled == symbol) continue;
    for (const size_t at : {size_t{0}, NameBegin(demangled)}) {
      const std::string_view rest = std::string_view(demangled).substr(at);
      if (rest.starts_with(name)) (IsWhole(rest, name) ? whole : begin).emplace(demangled, symbol);
    }
  }
  return whole.empty() ? begin : whole;
}

Result<std::string_view> FindSymbol(const Functions& functions, const UserProbe& probe,
                                    const std::string& path) {
  if (const auto found = functions.find(probe.function); found != functions.end()) {
    return found->first;
  }
  const auto demangled = FindDemangled(functions, probe.function);
  if (demangled.size() == 1) return demangled.begin()->second;
  if (demangled.empty()) {
    return Error{
        ErrorKind::kNotFound, Format("{}: {} has no function of this name", probe.Text(), path),
        Format("nm -C {0} lists its functions, nm -CD {0} those of a stripped library; one that is "
               "inlined everywhere is not among them",
               path)};
  }
  std::string names;
  for (const auto& [name, symbol] : demangled) {
    AppendFormat(names, "{}{}", names.empty() ? "" : ", ", symbol);
    if (names.size() > 300) break;
  }
  return Error{ErrorKind::kUsage,
               Format("{}: matches {} functions of {}", probe.Text(), demangled.size(), path),
               "use one of " + names};
}

// True for the instructions that the kernel emulates: pushes, nops, jumps and calls.
bool IsEmulated(std::span<const std::byte> code) {
  const auto at = [&](size_t i) { return i < code.size() ? std::to_integer<int>(code[i]) : -1; };
  const auto is_push = [](int byte) { return byte >= 0x50 && byte <= 0x57; };
  const int first = at(0);
  if (is_push(first) || (first == 0x41 && is_push(at(1)))) return true;
  if (first == 0x90 || first == 0xe8 || first == 0xe9 || first == 0xeb) return true;
  if (first >= 0x70 && first <= 0x7f) return true;
  if (first != 0x0f) return false;
  return (at(1) >= 0x80 && at(1) <= 0x8f) || at(1) == 0x1f;
}

Result<std::string> RealPath(const std::string& path, const std::string& name) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  if (failed) return SystemError(name, failed.value());
  if (!fs::is_regular_file(real, failed)) {
    return Error{ErrorKind::kNotFound, Format("{}: is not a file", name), {}};
  }
  return real.native();
}

}  // namespace

Result<std::string> FindLibrary(const std::string& name, const std::string& program,
                                const std::vector<std::string>& environment) {
  if (name.find('/') != std::string::npos) return RealPath(name, name);
  const std::string found =
      FindProgram(program, FindVariable(environment, "PATH").value_or("/bin:/usr/bin"));
  if (!found.empty() && fs::path(program).filename() == name) return RealPath(found, name);
  const std::string library_path = FindVariable(environment, "LD_LIBRARY_PATH").value_or("");
  for (const std::string& directory : LoaderDirectories(found, library_path)) {
    if (const std::string path = InDirectory(directory, name); !path.empty())
      return RealPath(path, name);
  }
  if (const std::string path = InLoaderCache(name); !path.empty()) return RealPath(path, name);
  for (const std::string& directory : StandardDirectories()) {
    if (const std::string path = InDirectory(directory, name); !path.empty())
      return RealPath(path, name);
  }
  return Error{ErrorKind::kNotFound, Format("{}: the loader finds no library of this name", name),
               "give its path"};
}

Result<ProbeLocation> FindProbeLocation(const ElfImage& image, const UserProbe& probe,
                                        const std::string& path) {
  const Functions functions = FunctionsOf(image);
  XPU_ASSIGN_OR_RETURN(const std::string_view symbol, FindSymbol(functions, probe, path));
  ProbeLocation location;
  location.function = symbol;
  for (const auto& [entry, size] : functions.at(symbol)) {
    if (size != 0 && probe.offset >= size) {
      return Error{
          ErrorKind::kUsage, Format("{}: the function has only {} bytes", probe.Text(), size), {}};
    }
    auto offset = image.FileOffsetOf(entry);
    if (!offset) continue;
    offset = probe.offset == 0 ? OffsetAfterEndbr64(image, *offset) : *offset + probe.offset;
    location.file_offsets.push_back(*offset);
    constexpr uint64_t kLongestNeeded = 2;
    location.is_slow = location.is_slow || !IsEmulated(image.BytesAt(*offset, kLongestNeeded));
  }
  if (location.file_offsets.empty()) {
    return Error{ErrorKind::kNotFound,
                 Format("{}: {} does not contain its code", probe.Text(), path),
                 "the file may contain only debug information"};
  }
  return location;
}

}  // namespace xpu
