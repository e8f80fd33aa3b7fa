// The files that the program has loaded.
//
// dl_iterate_phdr holds a lock of the C library that fork() leaves as it is in the child: had a
// thread of ours it at that moment, the child would wait for it for good at its first dlopen. So a
// fork waits until none of ours does.
#pragma once

#include <link.h>

namespace xpu::inject {

// As dl_iterate_phdr, which is called nowhere else. Not in a callback of the program.
int ForEachLoadedFile(int (*visit)(dl_phdr_info*, size_t, void*), void* data);

// Before a fork, then in the parent and in the child. The wait ends soon whatever happens, and is
// in vain then (false): the thread that forks may be within dl_iterate_phdr itself.
bool KeepFromLoadedFiles();
void ReturnToLoadedFiles();
void ReturnToLoadedFilesInChild();

}  // namespace xpu::inject
