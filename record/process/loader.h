// How the dynamic loader finds libraries: run paths, LD_LIBRARY_PATH, its cache, the standard
// directories; and the CUDA libraries that a program may map.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xpu {

inline constexpr char kLoaderCache[] = "/etc/ld.so.cache";

// Maps names to paths for the 64-bit x86 libraries that run on every processor, from the contents
// of a cache file of format 1.1 (glibc 2.2 and newer, also when it follows the older table). Empty
// if the format is another one.
std::unordered_map<std::string_view, std::string_view> LibrariesOfLoaderCache(
    std::string_view cache);

// By file name: libcudart.so* and libcuda.so*, also as Python wheels rename them
// (libcudart-9335f6a2.so.12).
bool IsCudaLibrary(std::string_view path);

// The CUDA libraries in the contents of an ld.so.cache file.
std::vector<std::string> CudaLibrariesOfCache(std::string_view cache);

// The directories in a run path (DT_RUNPATH, LD_LIBRARY_PATH) of a file in `origin`; relative ones
// are left out.
std::vector<std::string> DirectoriesOf(std::string_view run_path, const std::string& origin);

// The directories of the program's run path, then those of LD_LIBRARY_PATH.
std::vector<std::string> LoaderDirectories(const std::string& program,
                                           const std::string& library_path);
// The directories that are searched last.
std::vector<std::string> StandardDirectories();

// The CUDA libraries that the loader would find when it starts `program`: in its run path,
// LD_LIBRARY_PATH, the loader's cache and the standard directories. Real paths, each file once. The
// program need not use them, and may use others: of a wheel or a container.
std::vector<std::string> FindCudaLibraries(const std::string& program,
                                           const std::vector<std::string>& environment);

}  // namespace xpu
