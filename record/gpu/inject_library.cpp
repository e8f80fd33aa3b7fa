#include "record/gpu/inject_library.h"

#include <cerrno>
#include <climits>

#include <dlfcn.h>
#include <unistd.h>

#include "cupti_inject/wire.h"
#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/text.h"
#include "record/process/process_maps.h"

namespace xpu {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

std::vector<std::string> InjectLibraryPaths(const std::string& executable) {
  const std::string parent = DirectoryOf(DirectoryOf(executable));
  return {Format("{}/lib/xpu/{}", parent, kInjectLibraryFile),
          Format("{}/cupti_inject/{}", parent, kInjectLibraryFile)};
}

Result<std::string> FindInjectLibrary() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) {
    return SystemError("/proc/self/exe: readlink", errno,
                       "mount /proc here: mount -t proc proc /proc");
  }
  std::string searched;
  for (const std::string& candidate :
       InjectLibraryPaths(std::string(path, static_cast<size_t>(length)))) {
    if (::access(candidate.c_str(), R_OK) == 0) return candidate;
    searched += (searched.empty() ? "" : ", ") + candidate;
  }
  return Error{ErrorKind::kNotFound, Format("the injected library was not found: {}", searched),
               "install xpu-record with its lib/xpu directory, or record with --cpu-only"};
}

Result<Marker> LoadMarker(const std::string& library) {
  // Never closed, so that the function stays callable. Loading the library here does nothing else:
  // it starts only when the driver calls InitializeInjection.
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle == nullptr ? nullptr : ::dlsym(handle, wire::kMarkerSymbol);
  if (symbol == nullptr) {
    const char* reason = ::dlerror();
    return Error{ErrorKind::kInvalid,
                 Format("{}: {}", library, reason == nullptr ? "no marker" : reason),
                 "check that it is the library of this version"};
  }
  const auto address = reinterpret_cast<uint64_t>(symbol);
  XPU_ASSIGN_OR_RETURN(const std::vector<ProcessMapping> mappings,
                       ReadProcessMaps(static_cast<uint32_t>(::getpid())));
  const ProcessMapping* mapping = FindMapping(mappings, address);
  XPU_CHECK(mapping != nullptr);
  return Marker{reinterpret_cast<MarkerFunction>(symbol),
                address - mapping->start_address + mapping->file_offset};
}

}  // namespace xpu
