#include "report/stacks/stack_resolver.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;

using test::kKernelText;
using test::kText;

class StackResolverTest : public testing::Test {
 protected:
  StackResolverTest() {
    ElfBuilder("app")
        .Symbol("first", 0x0, 0x40)
        .Symbol("second", 0x40, 0x40)
        .WriteTo(directory_ / "app");
    builder_.Process(ProcessEventKind::kExisting, 1, 5, 5, "app");
    builder_.Map(1, 5, kText, 0x1000, ElfBuilder::kTextOffset, directory_ / "app", "app");
    builder_.Map(1, 5, 0x90000, 0x1000, 0, "[vdso]");
    builder_.Map(1, 5, 0xa0000, 0x1000, 0, "//anon");
    builder_.Map(1, 5, 0xb0000, 0x1000, 0x3000, directory_ / "gone.so.1");
    builder_.events.kernel_symbols = {
        {.address = kKernelText, .size_bytes = 0x10, .name = builder_.Text("entry"), .module = {}},
        {.address = kKernelText + 0x10,
         .size_bytes = 0x10,
         .name = builder_.Text("poll"),
         .module = builder_.Text("nvidia")}};
  }
  // The names of a stack, innermost first. Once a test: it takes what was built.
  std::vector<std::string> Names(std::initializer_list<uint64_t> outermost_first,
                                 uint64_t time_ns = 10) {
    const StackId stack = builder_.Stack(outermost_first);
    analysis_ = std::make_unique<Analysis>(builder_.Build(), options_);
    const SpaceId space =
        analysis_->processes.SpaceAt(analysis_->processes.At(5, time_ns), time_ns);
    if (ahead_) {
      analysis_->resolver.Want(stack, space, time_ns);
      analysis_->symbolizer.ResolveRequested();
    }
    std::vector<std::string> names;
    for (const FrameId frame : analysis_->resolver.Resolve(stack, space, time_ns).frames) {
      names.push_back(analysis_->frames[frame].Label());
    }
    return names;
  }
  using Expected = std::vector<std::string>;

  test::TempDirectory directory_;
  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
  SymbolOptions options_;
  bool ahead_ = false;
};

// The innermost address is an instruction; others return into the function whose call they follow,
// even when the call is its last instruction.
TEST_F(StackResolverTest, ReturnAddressesAreLookedUpOneBefore) {
  EXPECT_EQ(Names({kText + 0x40, kText + 0x40}), (Expected{"second", "first"}));
}

TEST_F(StackResolverTest, TheInnermostUserFrameBelowTheKernelIsExactToo) {
  EXPECT_EQ(Names({kText + 0x40, kText + 0x40, kKernelText + 0x10, kKernelText + 0x10}),
            (Expected{"poll_[k]", "entry_[k]", "second", "first"}));
}

TEST_F(StackResolverTest, FramesWithoutANameShowWhereTheyAre) {
  EXPECT_EQ(Names({kText + 0x81, kText + 0x81}), (Expected{"app+0x1081", "app+0x1081"}));
}

TEST_F(StackResolverTest, PlacesThatAreNoFiles) { EXPECT_EQ(Names({0x90010}), Expected{"[vdso]"}); }

TEST_F(StackResolverTest, AnonymousAndUnmappedMemory) {
  EXPECT_EQ(Names({0xa0010, 0x123}), (Expected{"[unknown]", "[anon]"}));
}

TEST_F(StackResolverTest, KernelAddressesWithoutAName) {
  EXPECT_EQ(Names({kKernelText + 0x20}), Expected{"[kernel]_[k]"});
}

TEST_F(StackResolverTest, AFileThatIsNotThere) {
  EXPECT_EQ(Names({0xb0010}), Expected{"gone.so.1+0x3010"});
  EXPECT_EQ(analysis_->symbolizer.problems().size(), 1u);
}

// What is looked up ahead is what is asked for: nothing opens the file again.
TEST_F(StackResolverTest, AheadEveryAddressOfAStackIsNamed) {
  ahead_ = true;
  EXPECT_EQ(Names({kText + 0x40, kText + 0x40, kKernelText + 0x10}),
            (Expected{"poll_[k]", "second", "first"}));
  const ModuleId module = analysis_->symbolizer.Module(directory_ / "app", "app");
  EXPECT_TRUE(analysis_->symbolizer.Wanted(module).empty());
  std::filesystem::remove(directory_ / "app");
  EXPECT_EQ(analysis_->symbolizer.FunctionAt(module, ElfBuilder::kTextOffset + 0x40), "second");
  EXPECT_EQ(analysis_->symbolizer.FunctionAt(module, ElfBuilder::kTextOffset + 0x3f), "first");
  EXPECT_TRUE(analysis_->symbolizer.problems().empty());
}

TEST_F(StackResolverTest, OffsetsFromTheEntryAsRecorded) {
  options_.places.offsets = true;
  builder_.events.generated_symbols.push_back({.time_ns = 0,
                                               .pid = 5,
                                               .address = 0xa0000,
                                               .size_bytes = 0x20,
                                               .name = builder_.Text("py::f")});
  EXPECT_EQ(Names({kText + 0x12, kText + 0x40, 0xa0010, kText + 0x44, kKernelText + 0x18}),
            (Expected{"poll+0x8_[k]", "second+0x4", "py::f+0x10", "first+0x40", "first+0x12"}));
}

// A program made with inlined functions (tests/unit/symbolize/inlined_puppet.cpp).
TEST_F(StackResolverTest, InlinedFunctionsAreFramesOfTheirOwn) {
  builder_.Map(1, 5, 0x100000, 0x100000, 0, XPU_INLINED_PUPPET);
  options_.symbolizer.detail = ModuleSymbols::Detail::kInlines;
  options_.places.lines = true;
  const ElfFile puppet = ElfFile::Open(XPU_INLINED_PUPPET).value();
  std::vector<StackId> stacks;
  for (const ElfSymbol& symbol : puppet.image().CodeSymbols()) {
    if (symbol.name != "_Z9Outermosti") continue;
    const uint64_t entry = 0x100000 + puppet.image().FileOffsetOf(symbol.link_address).value();
    for (uint64_t at = 0; at < symbol.size_bytes; ++at) {
      stacks.push_back(builder_.Stack({kText + 0x10, entry + at}));
    }
  }
  const Expected expected = {"Innermost(int) inlined_puppet.cpp:4 (inlined)",
                             "Middle(int) inlined_puppet.cpp:6 (inlined)",
                             "Outermost(int) inlined_puppet.cpp:11", "first"};
  Analysis analysis(builder_.Build(), options_);
  size_t found = 0;
  for (const StackId stack : stacks) {
    Expected names;
    for (const FrameId frame : analysis.resolver.Resolve(stack, SpaceId{1}, 10).frames) {
      names.push_back(analysis.frames[frame].Label());
    }
    found += names == expected ? 1 : 0;
  }
  EXPECT_GE(found, 1u);
  EXPECT_LT(found, stacks.size());
}

TEST_F(StackResolverTest, GeneratedCodeHasNamesInAnonymousMemory) {
  const auto add = [&](uint64_t address, const char* name) {
    builder_.events.generated_symbols.push_back({.time_ns = 0,
                                                 .pid = 5,
                                                 .address = address,
                                                 .size_bytes = 0x10,
                                                 .name = builder_.Text(name)});
  };
  add(0xa0010, "py::f");
  add(0x777000, "in memory without a mapping");
  add(kText, "not where a file is");
  // A return address after the end belongs to the code before it.
  EXPECT_EQ(Names({kText + 0x10, 0x777008, 0xa0020, 0xa0020}),
            (Expected{"[anon]", "py::f", "in memory without a mapping", "first"}));
}

TEST_F(StackResolverTest, ANewMappingHasOtherNames) {
  builder_.Map(100, 5, kText, 0x1000, 0x3000, directory_ / "plugin.so");
  const StackId stack = builder_.Stack({kText + 0x10});
  Analysis analysis(builder_.Build());
  const SpaceId space = analysis.processes.SpaceAt(analysis.processes.At(5, 50), 50);
  const auto name_at = [&](uint64_t time_ns) {
    const ResolvedStack resolved = analysis.resolver.Resolve(stack, space, time_ns);
    EXPECT_FALSE(resolved.at_any_time);
    return analysis.frames[resolved.frames.at(0)].name;
  };
  EXPECT_EQ(name_at(50), "first");
  EXPECT_EQ(name_at(150), "plugin.so+0x3010");
  EXPECT_EQ(name_at(50), "first");
}

TEST_F(StackResolverTest, ALostPartOfAStackIsReported) {
  Analysis analysis(builder_.Build());
  const ResolvedStack resolved = analysis.resolver.Resolve(StackId{12345}, SpaceId{1}, 10);
  ASSERT_EQ(resolved.frames.size(), 1u);
  EXPECT_EQ(analysis.frames[resolved.frames[0]].name, "[lost]");
}

TEST_F(StackResolverTest, FramesOfCudaAreMarked) {
  ElfBuilder("static")
      .Symbol("user", 0x0, 0x40)
      .Symbol("libcudart_static_1a2b", 0x40, 0x40, STB_LOCAL)
      .Symbol("cudaLaunchKernel", 0x80, 0x40)
      .Symbol("cudaFunctionOfTheUser", 0xc0, 0x40)
      .WriteTo(directory_ / "static");
  builder_.Map(1, 5, 0x20000, 0x1000, ElfBuilder::kTextOffset, directory_ / "static", "static");
  builder_.Map(1, 5, 0x30000, 0x1000, 0, "/cuda/libcudart-1a2b3c4d.so.12.0");
  builder_.Map(1, 5, 0x40000, 0x1000, 0, "/cuda/libcuda.so.580.1");
  builder_.Map(1, 5, 0x50000, 0x1000, 0, "/app/libcudacpp.so");
  const StackId stack =
      builder_.Stack({0x50010, 0x40010, 0x30010, 0x200d0, 0x20090, 0x20050, 0x20010});
  Analysis analysis(builder_.Build());
  std::vector<std::pair<bool, bool>> marks;  // internal, entry; innermost first
  for (const FrameId frame : analysis.resolver.Resolve(stack, SpaceId{1}, 10).frames) {
    marks.emplace_back(analysis.frames[frame].is_cuda_internal,
                       analysis.frames[frame].is_api_entry);
  }
  const std::vector<std::pair<bool, bool>> expected = {{false, false}, {true, false},   //
                                                       {false, true},  {false, false},  //
                                                       {true, false},  {true, false},
                                                       {false, false}};
  EXPECT_EQ(marks, expected);
}

// Frames of one function are apart where their lines are, and where they were inlined.
TEST(NamedFrame, LabelsTellFramesApart) {
  FrameTable frames;
  NamedFrame frame{.name = "f()", .module = "app"};
  const FrameId plain = frames.Intern(frame);
  frame.place = "+0x12 app.cpp:3";
  const FrameId placed = frames.Intern(frame);
  frame.is_inlined = true;
  const FrameId inlined = frames.Intern(frame);
  EXPECT_EQ(frames[plain].Label(), "f()");
  EXPECT_EQ(frames[placed].Label(), "f()+0x12 app.cpp:3");
  EXPECT_EQ(frames[inlined].Label(), "f()+0x12 app.cpp:3 (inlined)");
  EXPECT_EQ(frames.Intern(frame), inlined);
  EXPECT_EQ(frames.size(), 3u);
}

TEST(ModuleName, LastPartOfAPath) {
  EXPECT_EQ(ModuleName("/usr/lib/libfoo.so.1"), "libfoo.so.1");
  EXPECT_EQ(ModuleName("/tmp/app (deleted)"), "app");
  EXPECT_EQ(ModuleName("app"), "app");
  EXPECT_EQ(ModuleName(""), "");
}

}  // namespace
}  // namespace xpu
