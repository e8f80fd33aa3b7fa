// How the loader finds libraries: run paths, LD_LIBRARY_PATH, its cache, the standard directories;
// and the CUDA libraries that a program may map.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xpu {

inline constexpr char kLoaderCache[] = "/etc/ld.so.cache";

// Name to path, of the 64-bit x86 libraries that every processor runs, from the bytes of a file of
// format 1.1 (glibc 2.2 and newer, also after the table of the older one). Empty: another format.
std::unordered_map<std::string_view, std::string_view> LibrariesOfLoaderCache(
    std::string_view cache);

// By the base name: libcudart.so* and libcuda.so*, also as wheels rename them
// (libcudart-9335f6a2.so.12).
bool IsCudaLibrary(std::string_view path);

// The CUDA libraries among the paths of an ld.so.cache file.
std::vector<std::string> CudaLibrariesOfCache(std::string_view cache);

// Directories of a run path (DT_RUNPATH, LD_LIBRARY_PATH) of a file in `origin`; relative ones are
// left out.
std::vector<std::string> FoldersOf(std::string_view run_path, const std::string& origin);

// Those of the program's run path, then those of LD_LIBRARY_PATH.
std::vector<std::string> LoaderFolders(const std::string& program, const std::string& library_path);
// Where a library is looked for last.
std::vector<std::string> StandardFolders();

// CUDA libraries that are where the loader will look for them when it starts `program`: its run
// path, LD_LIBRARY_PATH, the loader's cache, the standard directories. Real paths, each file once.
// The program need not use them, and it may use others: a wheel's, or those of a container.
std::vector<std::string> FindCudaLibraries(const std::string& program,
                                           const std::vector<std::string>& environment);

}  // namespace xpu
