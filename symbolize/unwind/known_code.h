// Code without call frame information whose frames are known all the same, because every program
// has it in the same form:
//   - the entry point of a program, below which there is no caller: ptxas has none for it;
//   - linkage tables: LLD and mold do not describe theirs;
//   - the call of musl's __clone by which a thread starts;
//   - the byte before glibc's __start_context, which is what stacks show of it.
// x86-64 only. Nothing is guessed: what does not have the form is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbolize/elf/elf_image.h"
#include "symbolize/unwind/cfi_interpreter.h"

namespace xpu {

// [begin, end) of link addresses.
struct LinkRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct KnownCode {
  LinkRange range;
  std::vector<CfiRow> rows;  // as of an entry of call frame information
};

// `gaps`: the code that no entry describes, ascending and disjoint. `more` comes first where others
// overlap it. Ascending and disjoint.
std::vector<KnownCode> FindKnownCode(const ElfImage& image, std::span<const LinkRange> gaps,
                                     std::vector<KnownCode> more = {});

}  // namespace xpu
