// Stacks of Python from the capture to the views.
#include <algorithm>

#include <gtest/gtest.h>

#include "report/model/load.h"
#include "report/query/ledger.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::Lines;

constexpr uint64_t kPython = 0x10000;
constexpr uint64_t kTorch = 0x20000;
constexpr uint32_t kVersion = 3 << 8 | 12;
// Lines +0, +3 and none, two bytes each.
constexpr std::string_view kLineTable("\xe8\0\xe8\6\xf8", 5);

PythonFrame Gap(PythonGap gap, bool is_entry = false) {
  return {.code = 0, .is_entry = is_entry, .offset = static_cast<uint32_t>(gap)};
}

class PythonStacksTest : public testing::Test {
 protected:
  PythonStacksTest() {
    ElfBuilder("python")
        .Symbol("Py_BytesMain", 0x0, 0x100)
        .Symbol("_PyEval_EvalFrameDefault", 0x100, 0x100)
        .Symbol("PyObject_Call", 0x200, 0x100)
        .WriteTo(directory_ / "python3.12");
    ElfBuilder("torch").Symbol("addmm", 0x0, 0x100).WriteTo(directory_ / "libtorch.so");
    builder_.Process(ProcessEventKind::kExisting, 1, 100, 100, "python3");
    Map(kPython, "python3.12", "python");
    Map(kTorch, "libtorch.so", "torch");
    builder_.Source(10);
    Code(kMain, "main", "/app/train.py", 10);
    Code(kForward, "Linear.forward", "/app/model.py", 114);
  }
  void Map(uint64_t at, const char* file, const char* build_id) {
    builder_.Map(1, 100, at, ElfBuilder::kTextBytes, ElfBuilder::kTextOffset, directory_ / file,
                 build_id);
  }
  PythonCode& Code(uint32_t code, std::string_view name, std::string_view path, uint32_t line) {
    return builder_.events.python_codes.emplace_back(
        PythonCode{.code = code,
                   .name = builder_.Text(name),
                   .path = builder_.Text(path),
                   .first_line = line,
                   .line_table = builder_.Text(kLineTable),
                   .version = kVersion});
  }
  // Main, loop, main(), loop, forward(), addmm.
  StackId NativeStack() {
    return builder_.Stack(
        {kPython + 0x10, kPython + 0x110, kPython + 0x210, kPython + 0x120, kTorch + 0x10});
  }
  StackId PythonStack(uint32_t forward_offset = 0) {
    return builder_.PythonStack({{.code = kMain, .is_entry = true},
                                 {.code = kForward, .is_entry = true, .offset = forward_offset}});
  }
  CpuSample& Sample(StackId native, StackId python) {
    CpuSample& sample = builder_.Sample(time_ns_++, 100, 100, native);
    sample.stack_flags = kStackTables | kStackComplete;
    sample.python_stack = python;
    return sample;
  }
  Lines Folded(const SymbolOptions& options = {}) {
    analysis_ = std::make_unique<Analysis>(builder_.Build(), options);
    return test::Folded(*analysis_,
                        {.tree = {.mode = TreeMode::kCpuAndGpu}, .unit = TimeUnit::kSamples});
  }

  static constexpr uint32_t kMain = 1;
  static constexpr uint32_t kForward = 2;
  test::TempDirectory directory_;
  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
  uint64_t time_ns_ = 10;
};

TEST_F(PythonStacksTest, Merged) {
  Sample(NativeStack(), PythonStack());
  Sample(NativeStack(), PythonStack());
  Sample(NativeStack(), {});  // no Python was seen: as usual
  EXPECT_EQ(Folded(), (Lines{{"python3;train.py:main;model.py:Linear.forward;addmm", 2},
                             {"python3;Py_BytesMain;_PyEval_EvalFrameDefault;PyObject_Call;"
                              "_PyEval_EvalFrameDefault;addmm",
                              1}}));
}

TEST_F(PythonStacksTest, NativeFramesAlone) {
  Sample(NativeStack(), PythonStack());
  EXPECT_EQ(Folded({.python = PythonView::kNative}),
            (Lines{{"python3;Py_BytesMain;_PyEval_EvalFrameDefault;PyObject_Call;"
                    "_PyEval_EvalFrameDefault;addmm",
                    1}}));
}

TEST_F(PythonStacksTest, PythonFramesAlone) {
  Sample(NativeStack(), PythonStack());
  Sample(builder_.Stack({kPython + 0x10}), PythonStack());
  Sample(NativeStack(), {});
  Sample(NativeStack(),
         builder_.PythonStack({Gap(PythonGap::kDepth), {.code = kMain, .is_entry = true}}));
  EXPECT_EQ(Folded({.python = PythonView::kOnly}),
            (Lines{{"python3;train.py:main;model.py:Linear.forward", 2},
                   {"python3;[native]", 1},
                   {"python3;[python frames cut];train.py:main", 1}}));
}

TEST_F(PythonStacksTest, LinesAndOffsets) {
  Sample(NativeStack(), PythonStack(0));
  Sample(NativeStack(), PythonStack(2));
  Sample(NativeStack(), PythonStack(3));
  Sample(NativeStack(), PythonStack(4));      // of no line
  Sample(NativeStack(), PythonStack(1'000));  // after the end
  Lines expected = {{"python3;train.py:main:10;model.py:Linear.forward:114;addmm", 1},
                    {"python3;train.py:main:10;model.py:Linear.forward:117;addmm", 2},
                    {"python3;train.py:main:10;model.py:Linear.forward;addmm", 2}};
  EXPECT_EQ(Folded({.places = {.lines = true}}), expected);
}

// A line of the model for each variable that one line alone assigns, and no other.
TEST_F(PythonStacksTest, CompiledCallsShowLinesOfTheModel) {
  constexpr std::string_view kGenerated = "/tmp/torchinductor_me/ab/cab.py";
  constexpr std::string_view kInstalled = "/lib/python3/site-packages/torch/_dynamo/eval_frame.py";
  const auto add_text = [&](std::string_view path, uint32_t first_line, std::string_view text) {
    builder_.events.source_texts.push_back(SourceText{
        .path = builder_.Text(path), .first_line = first_line, .text = builder_.Text(text)});
  };
  Code(3, "Runner.call", kGenerated, 250);
  Code(4, "inner", kInstalled, 5);
  Code(5, "other", "/app/part.py", 5);
  // Longer than what is shown of a name.
  add_text(kGenerated, 200,
           std::string(20'000, '#') + std::string(49, '\n') +
               "    # Topologically Sorted Source Nodes: [gate, twice, gate_1, mul, other, part], "
               "Original ATen: [aten.silu, aten.mul]\n    kernel.run(buf0)\n");
  add_text("/app/model.py", 1, "def f():\n    gate = silu(x); \n    mul = 1\n    twice = 1\n");
  add_text("/app/model.py", 1, "def f():\n    gate = silu(x); \n");  // a part of it
  add_text("/app/model.py", 5, "    twice = 2\ngate = 3\n");
  add_text("/app/other.py", 1, "    other = 1\n");  // nothing compiled is called there
  add_text("/app/part.py", 2, "    part = 1\n");    // not the whole file
  const StackId python = builder_.PythonStack(
      {{.code = kMain, .is_entry = true}, {.code = kForward}, {.code = 4}, {.code = 3}});
  const StackId in_part =
      builder_.PythonStack({{.code = kMain, .is_entry = true}, {.code = 5}, {.code = 3}});
  builder_.Launch(1, 1, 10, 100, 100, NativeStack()).python_stack = python;
  builder_.Launch(1, 2, 11, 100, 100, NativeStack()).python_stack = in_part;
  Sample(NativeStack(), python);
  EXPECT_EQ(Folded({.python = PythonView::kOnly}),
            (Lines{{"python3;train.py:main;model.py:Linear.forward;eval_frame.py:inner;"
                    "cab.py:Runner.call;[fused] gate, twice, gate_1, mul, other, part: silu, mul;"
                    "[fused] model.py:2 gate = silu(x):",
                    1}}));
}

// Whatever the names of the slices show.
TEST_F(PythonStacksTest, CallsInATraceNameTheLinesThatMadeThem) {
  Code(3, "Library.call", "/usr/lib/python3.12/library.py", 5);
  builder_.Callback(1, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel");
  const auto call = [&](uint32_t id, StackId native, StackId python) {
    builder_.Call(1, id, test::kLaunchKernel, 100 * id, 100 * id + 10, 100);
    LaunchStack& launch = builder_.Launch(1, id, 100 * id, 100, 100, native);
    launch.stack_flags = kStackTables | kStackComplete;
    launch.python_stack = python;
  };
  call(1, NativeStack(),
       builder_.PythonStack(
           {{.code = kMain, .is_entry = true, .offset = 2}, {.code = 3, .is_entry = true}}));
  call(2, builder_.Stack({kPython + 0x10, kPython + 0x110}),
       builder_.PythonStack({{.code = kMain, .is_entry = true}}));
  call(3, NativeStack(), {});
  Analysis analysis(builder_.Build());
  const std::string trace = test::Written([&](Output& output) {
    std::string notes;
    WriteChromeTrace(analysis, {}, output, notes);
  });
  const auto has = [&](std::string_view part) {
    EXPECT_NE(trace.find(part), std::string::npos) << trace;
  };
  has("\"correlation\":1,\"work\":\"[no GPU record]\",\"caller\":\"addmm (libtorch.so)\","
      "\"python\":\"library.py:Library.call:5\",\"script\":\"train.py:main:13\"}");
  has("\"correlation\":2,\"work\":\"[no GPU record]\",\"caller\":\"train.py:main:10\","
      "\"python\":\"train.py:main:10\"}");
  has("\"correlation\":3,\"work\":\"[no GPU record]\",\"caller\":\"addmm (libtorch.so)\"}");
}

TEST_F(PythonStacksTest, OffsetsOfInstructions) {
  Sample(NativeStack(), PythonStack(0x1a));
  EXPECT_EQ(Folded({.places = {.offsets = true}}),
            (Lines{{"python3;train.py:main+0x0;model.py:Linear.forward+0x1a;addmm+0x10", 1}}));
}

// Older line tables read otherwise.
TEST_F(PythonStacksTest, NoLinesOfOlderVersions) {
  for (PythonCode& code : builder_.events.python_codes) code.version = 3 << 8 | 8;
  Sample(NativeStack(), PythonStack());
  EXPECT_EQ(Folded({.places = {.lines = true}}),
            (Lines{{"python3;train.py:main;model.py:Linear.forward;addmm", 1}}));
}

TEST_F(PythonStacksTest, NamesOfFiles) {
  const std::vector<std::pair<const char*, const char*>> paths = {
      {"/lib/torch/__init__.py", "torch/__init__.py:f"},
      {"__main__.py", "__main__.py:f"},
      {"/__main__.py", "__main__.py:f"},
      {"pkg/__main__.py", "pkg/__main__.py:f"},
      {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>:f"},
      {"<string>", "<string>:f"},
      {"", "f"}};
  Lines expected;
  for (uint32_t i = 0; i < paths.size(); ++i) {
    Code(10 + i, "f", paths[i].first, 1);
    Sample({}, builder_.PythonStack({{.code = 10 + i, .is_entry = true}}));
    expected[std::string("python3;") + paths[i].second] += 1;
  }
  EXPECT_EQ(Folded(), expected);
}

// Text adds up by what is read; pictures and tables tell modules of one file name apart.
TEST_F(PythonStacksTest, ModulesOfOneNameAreApart) {
  Code(3, "Linear.forward", "/other/model.py", 5);
  Sample({}, builder_.PythonStack({{.code = kForward, .is_entry = true}}));
  Sample({}, builder_.PythonStack({{.code = 3, .is_entry = true}}));
  EXPECT_EQ(Folded(), (Lines{{"python3;model.py:Linear.forward", 2}}));
  ViewOptions options;
  options.format = TableFormat::kCsv;
  options.table = "cpu_func_sum";
  const std::string table =
      test::Written([&](Output& output) { WriteTop(*analysis_, options, output); });
  EXPECT_NE(table.find("/app/model.py,model.py:Linear.forward\n"), std::string::npos) << table;
  EXPECT_NE(table.find("/other/model.py,model.py:Linear.forward\n"), std::string::npos) << table;
}

TEST_F(PythonStacksTest, GapsAndUnknownCode) {
  const PythonFrame main{.code = kMain, .is_entry = true};
  Sample({}, builder_.PythonStack({main, Gap(PythonGap::kCodeMissing), {.code = kForward}}));
  Sample({}, builder_.PythonStack({main, {.code = 77, .is_entry = true}}));
  Sample({}, builder_.PythonStack({Gap(PythonGap::kUnreadable), main}));
  Sample({}, builder_.PythonStack({Gap(PythonGap::kUnknown)}));
  EXPECT_EQ(Folded(),
            (Lines{{"python3;train.py:main;[unknown Python function];model.py:Linear.forward", 1},
                   {"python3;train.py:main;[unknown Python function]", 1},
                   {"python3;[python frames cut];train.py:main", 1},
                   {"python3;[python frames cut]", 1}}));
}

// The interpreter's own code: it has no line, and no traceback shows it.
TEST_F(PythonStacksTest, ShimsAreHidden) {
  Code(3, "__init__", "", 0).line_table = {};
  Code(4, "__init__", "", 0).line_table = builder_.Text("\xfb");
  Code(5, "f", "<ast>", 0);  // made by a program, with lines
  Sample(NativeStack(), builder_.PythonStack({{.code = 3, .is_entry = true},
                                              {.code = kMain},
                                              {.code = 5, .is_entry = true},
                                              {.code = 4}}));
  EXPECT_EQ(Folded(), (Lines{{"python3;train.py:main;<ast>:f;addmm", 1}}));
}

// Frames of one kind in a stack of the other, as a damaged capture may have them.
TEST_F(PythonStacksTest, FramesOfTheWrongKind) {
  Sample({}, NativeStack());
  Sample(PythonStack(), {});
  Sample({}, StackId{12345});
  EXPECT_EQ(Folded().at("python3;[python frames cut]"), 2u);
}

TEST_F(PythonStacksTest, LaunchesHaveThemToo) {
  builder_.Callback(1, ApiDomain::kRuntime, 211, "cudaLaunchKernel_v7000");
  builder_.Clock(1, 0, {1000});
  builder_.Map(1, 100, 0x30000, 0x1000, 0, "/cuda/libcudart.so.12");
  const auto launch = [&](uint32_t id, StackId native, StackId python) {
    builder_.Call(1, id, 211, 1'000 * id, 1'000 * id + 100, 100);
    LaunchStack& stack = builder_.Launch(1, id, 1'000 * id + 1, 100, 100, native);
    stack.stack_flags = kStackTables | kStackComplete | kStackInProcess;
    stack.python_stack = python;
    builder_.AddKernel(1, id, 1'000 * id + 200, 1'000 * id + 300, "gemm");
  };
  launch(1,
         builder_.Stack({kPython + 0x10, kPython + 0x110, kPython + 0x210, kPython + 0x120,
                         kTorch + 0x10, 0x30010}),
         PythonStack());
  launch(2, {}, PythonStack());
  launch(3, {}, {});
  analysis_ = std::make_unique<Analysis>(builder_.Build());
  EXPECT_EQ(test::Folded(*analysis_, {.tree = {}, .unit = TimeUnit::kNanoseconds}),
            (Lines{{"python3;train.py:main;model.py:Linear.forward;addmm;cudaLaunchKernel;"
                    "[GPU_Kernel]gemm",
                    100},
                   {"python3;train.py:main;model.py:Linear.forward;cudaLaunchKernel;"
                    "[GPU_Kernel]gemm",
                    100},
                   {"python3;[unknown launch];cudaLaunchKernel;[GPU_Kernel]gemm", 100}}));
}

// The same stacks say other things where one is known to be whole.
TEST_F(PythonStacksTest, TheEndOfTheNativeStackCounts) {
  const StackId python = PythonStack();
  const StackId native = builder_.Stack({kTorch + 0x10, kPython + 0x110, kTorch + 0x20});
  Sample(native, python);
  Sample(native, python).stack_flags = kStackTables | kStackTruncated;
  EXPECT_EQ(Folded(), (Lines{{"python3;addmm;train.py:main;model.py:Linear.forward;addmm", 1},
                             {"python3;train.py:main;addmm;model.py:Linear.forward;addmm", 1}}));
  EXPECT_EQ(analysis_->stacks.doubtful(), 1u);
}

TEST_F(PythonStacksTest, LedgerCountsDoubtfulStacks) {
  for (int i = 0; i < 3; ++i) Sample(builder_.Stack({kTorch + 0x10}), PythonStack());
  Folded();
  const std::vector<LedgerEntry> ledger = BuildLedger(*analysis_);
  const auto entry = std::find_if(ledger.begin(), ledger.end(), [](const LedgerEntry& e) {
    return e.name == "python_stack_doubtful";
  });
  ASSERT_NE(entry, ledger.end());
  EXPECT_EQ(entry->count, 1u);  // one stack, three times
  EXPECT_EQ(entry->severity, Severity::kPartial);
  EXPECT_FALSE(LosesData(*entry));
}

TEST_F(PythonStacksTest, PicturesTellTheKindOfFrames) {
  Sample(NativeStack(), PythonStack());
  Folded();
  std::string notes;
  const std::string page =
      test::Written([&](Output& output) { WriteFlameGraph(*analysis_, {}, output, notes); });
  EXPECT_NE(page.find("\"kind\":[5,6,6,0]"), std::string::npos);
  EXPECT_NE(page.find("\"modules\":[\"/app/train.py\",\"/app/model.py\",\"libtorch.so\"]"),
            std::string::npos);
  const std::string trace =
      test::Written([&](Output& output) { WriteChromeTrace(*analysis_, {}, output, notes); });
  EXPECT_NE(trace.find("\"name\":\"train.py:main\",\"cat\":\"cpu_python\""), std::string::npos);
}

TEST_F(PythonStacksTest, CodesOfSeveralCapturesAreApart) {
  std::vector<Model> captures;
  for (const char* name : {"first", "second"}) {
    test::ModelBuilder builder;
    builder.Text("[lost]");
    builder.Stack({1});
    builder.Source(10);
    builder.Process(ProcessEventKind::kExisting, 1, 100, 100, "python3");
    PythonCode& code = builder.events.python_codes.emplace_back();
    code.code = 1;
    code.name = builder.Text(name);
    code.path = builder.Text("a.py");
    PythonCode& hostile = builder.events.python_codes.emplace_back();
    hostile.code = ~uint32_t{0};
    hostile.name = builder.Text("hostile");
    builder.Sample(5, 100, 100, {}).python_stack =
        builder.PythonStack({{.code = 1, .is_entry = true}, {.code = ~uint32_t{0}}});
    builder.events.recording_info.emplace_back().host_name = builder.Text(name);
    captures.push_back(builder.Build());
  }
  Result<Model> merged = MergeCaptures(std::move(captures));
  ASSERT_TRUE(merged.ok());
  Analysis analysis(std::move(merged).value());
  EXPECT_EQ(test::Folded(analysis, {.tree = {}, .unit = TimeUnit::kSamples}),
            (Lines{{"python3@first;a.py:first;[unknown Python function]", 1},
                   {"python3@second;a.py:second;[unknown Python function]", 1}}));
}

}  // namespace
}  // namespace xpu
