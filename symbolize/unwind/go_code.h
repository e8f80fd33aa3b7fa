// The frames of Go's code, from the table that its runtime needs itself: Go writes no .eh_frame,
// compresses its .debug_frame, and strips that. With the frame pointer alone the caller of a
// function without a frame (memmove) would be missing.
#pragma once

#include <vector>

#include "symbolize/elf/elf_image.h"
#include "symbolize/unwind/known_code.h"

namespace xpu {

// Of functions that switch stacks only those have a rule that keep their frame pointer meanwhile,
// and the one that calls C: stacks end at the others, as in Go's own profiles. Ascending;
// empty: it is no Go program, or one before Go 1.18.
std::vector<KnownCode> FindGoCode(const ElfImage& image);

}  // namespace xpu
