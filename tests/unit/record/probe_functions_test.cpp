#include "record/probes/probe_functions.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using Offsets = std::vector<std::pair<std::string, uint64_t>>;

// Names and offsets within the text.
Offsets Find(const std::string& bytes) {
  auto image = ElfImage::Parse(std::as_bytes(std::span(bytes)), "test");
  Offsets places;
  if (!image.ok()) return places;
  for (const FunctionLocation& place : FindLaunchFunctions(*image)) {
    places.emplace_back(place.function->name, place.file_offset - ElfBuilder::kTextOffset);
  }
  return places;
}

TEST(ProbeFunctions, OnlyDefinedFunctionsAreFound) {
  ElfBuilder elf("id");
  elf.DynamicSymbol("cuLaunchKernel", 0x100, 16)
      .DynamicSymbol("cudaLaunchKernelExC_ptsz", 0x200, 16)
      .DynamicSymbol("__cudaLaunchKernel", 0x300, 16)
      .DynamicSymbol("cudaLaunchHostFunc", 0x400, 16);
  EXPECT_EQ(Find(elf.Build()),
            (Offsets{{"cudaLaunchKernelExC_ptsz", 0x200}, {"cuLaunchKernel", 0x100}}));
}

// A program with cudart linked statically can be named: its symbol table has them.
TEST(ProbeFunctions, LocalFunctionsAreFoundToo) {
  ElfBuilder elf("id");
  elf.Symbol("cudaGraphLaunch", 0x40, 16, STB_LOCAL);
  EXPECT_EQ(Find(elf.Build()), (Offsets{{"cudaGraphLaunch", 0x40}}));
}

TEST(ProbeFunctions, OneProbeForTwoNamesOfTheSameCode) {
  ElfBuilder elf("id");
  elf.DynamicSymbol("cuGraphLaunch_ptsz", 0x80, 16).DynamicSymbol("cuGraphLaunch", 0x80, 16);
  elf.Symbol("cuGraphLaunch", 0x80, 16);
  EXPECT_EQ(Find(elf.Build()), (Offsets{{"cuGraphLaunch", 0x80}}));
}

TEST(ProbeFunctions, AfterEndbr64) {
  ElfBuilder elf("id");
  elf.DynamicSymbol("cuLaunch", 0x10, 16).DynamicSymbol("cuLaunchGrid", 0x20, 16);
  std::string bytes = elf.Build();
  bytes.replace(ElfBuilder::kTextOffset + 0x10, 4, "\xf3\x0f\x1e\xfa");
  bytes.replace(ElfBuilder::kTextOffset + 0x20, 4, "\xf3\x0f\x1e\xfb");  // endbr32
  EXPECT_EQ(Find(bytes), (Offsets{{"cuLaunch", 0x14}, {"cuLaunchGrid", 0x20}}));
}

TEST(ProbeFunctions, WhichArgumentIsTheKernel) {
  for (const LaunchFunction& function : LaunchFunctions()) {
    const std::string name = function.name;
    const bool is_extended = name.find("KernelEx") != std::string::npos;
    const bool has_none =
        name.find("Graph") != std::string::npos || name.find("MultiDevice") != std::string::npos;
    EXPECT_EQ(function.kernel, is_extended ? XPU_PROBE_SECOND_ARGUMENT
                               : has_none  ? XPU_PROBE_NO_ARGUMENT
                                           : XPU_PROBE_FIRST_ARGUMENT)
        << name;
    EXPECT_EQ(function.purpose,
              name.starts_with("cuda") ? ProbePurpose::kRuntimeLaunch : ProbePurpose::kDriverLaunch)
        << name;
  }
}

}  // namespace
}  // namespace xpu
