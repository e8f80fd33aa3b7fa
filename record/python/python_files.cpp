#include "record/python/python_files.h"

#include <string_view>

#include "format/base/path.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

// Interpreters are programs, or libraries that have the name: every file of a program with a
// thousand would have to be read.
bool MayHoldPython(const MappedFile& file) {
  return FileNameOf(file.paths.back()).find("python") != std::string_view::npos;
}

PythonFiles::File Read(const MappedFile& wanted) {
  auto found = FindUnwindFile(wanted.paths, wanted.build_id, {wanted.device, wanted.inode});
  if (!found.ok()) return {};
  auto whole = found->Reopen();
  if (!whole.ok()) return {};
  return {FindPythonRuntime(whole->image()), whole->image().segments()};
}

}  // namespace

xpu_python_process PythonFiles::File::InProcess(uint64_t bias) const {
  return {.runtime = bias + runtime.link_address,
          .code_type = bias + runtime.code_type,
          .layout = runtime.layout};
}

const PythonFiles::File* PythonFiles::Find(const MappedFile& file, bool is_program) {
  if (file.paths.empty() || file.paths.back() == kVdso) return nullptr;
  if (!is_program && !MayHoldPython(file)) return nullptr;
  const auto [entry, is_new] = files_.try_emplace({file.build_id, file.device, file.inode});
  if (is_new) entry->second = Read(file);
  return entry->second.runtime.kind == PythonRuntime::Kind::kNone ? nullptr : &entry->second;
}

}  // namespace xpu
