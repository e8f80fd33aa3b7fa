#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "report/stacks/mixed_stacks.h"

namespace xpu {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Stacks are texts, outermost frame first.
class PythonMergeTest : public testing::Test {
 protected:
  // "f" is of the interpreter, where LOOP is its loop and ?f has no name; "torch:f" and so on of
  // another file, "k:f" of the kernel; "f:inlined" was inlined into the one before it.
  FrameId Native(std::string word) {
    const std::string kInlined = ":inlined";
    NamedFrame frame{.name = {}, .module = "libpython3.12.so.1.0"};
    frame.is_inlined = word.ends_with(kInlined);
    if (frame.is_inlined) word.resize(word.size() - kInlined.size());
    if (const size_t colon = word.find(':'); colon != std::string::npos) {
      frame.module = word.substr(0, colon) + ".so";
      word = word.substr(colon + 1);
    }
    if (frame.module == "k.so") frame.origin = FrameOrigin::kKernel;
    if (word[0] == '?') frame.nameless_in = ModuleId{1};
    if (word == "LOOP") word = "_PyEval_EvalFrameDefault";
    frame.name = word;
    frame.python_role = PythonRoleOf(word, frame.module);
    return frames_.Intern(frame);
  }
  // "main f | g": g is the first function of a second group. "... f" is cut before f. "<" is at the
  // end if the innermost native frame is the loop that runs it, "?" if that is not known.
  PythonStack Python(const std::string& text) {
    PythonStack stack;
    stack.groups.emplace_back();
    for (const std::string& word : Words(text)) {
      std::vector<FrameId>& frames = stack.groups.back().frames;
      if (word == "...") {
        stack.is_whole = false;
      } else if (word == "<") {
        stack.is_on_top = true;
      } else if (word == "?") {
        stack.is_top_known = false;
      } else if (word == "|") {
        stack.groups.emplace_back();
      } else {
        frames.insert(frames.begin(), frames_.Intern(word, FrameOrigin::kPython));
      }
    }
    std::reverse(stack.groups.begin(), stack.groups.end());
    if (text.empty() || text == "...") stack.groups.clear();
    return stack;
  }
  std::string Merged(const std::string& native, const std::string& python,
                     StackEnd end = StackEnd::kWhole) {
    std::vector<FrameId> innermost_first;
    for (const std::string& word : Words(native)) {
      innermost_first.insert(innermost_first.begin(), Native(word));
    }
    const FrameId cut = frames_.Intern("[cut]", FrameOrigin::kPython);
    const MergedStack merged = MergePython(innermost_first, end, Python(python), cut, frames_);
    is_doubtful_ = merged.is_doubtful;
    std::string text;
    for (auto frame = merged.frames.rbegin(); frame != merged.frames.rend(); ++frame) {
      text += (text.empty() ? "" : " ") + frames_[*frame].name;
    }
    return text;
  }

  FrameTable frames_;
  bool is_doubtful_ = false;
};

TEST_F(PythonMergeTest, EachLoopGivesWayToItsGroup) {
  EXPECT_EQ(Merged("libc:_start libc:__libc_start_main Py_BytesMain ?1 PyEval_EvalCode LOOP "
                   "_PyObject_MakeTpCall ?2 slot_tp_call LOOP torch:addmm torch:cublasLtMatmul",
                   "<module> main | Module.__call__ Linear.forward"),
            "<module> main Module.__call__ Linear.forward addmm cublasLtMatmul");
  EXPECT_FALSE(is_doubtful_);
}

TEST_F(PythonMergeTest, CodeOfExtensionsThatCallsBackStaysInItsPlace) {
  EXPECT_EQ(Merged("LOOP PyObject_Vectorcall cfunction_call torch:apply torch:hook "
                   "PyObject_CallFunctionObjArgs _PyEval_Vector LOOP PyObject_Call cfunction_call "
                   "json:scan",
                   "main | on_grad"),
            "main apply hook on_grad scan");
}

TEST_F(PythonMergeTest, RecursionThroughTheInterpreter) {
  EXPECT_EQ(Merged("LOOP slot_nb_add LOOP slot_nb_add LOOP", "f | f f | f"), "f f f f");
}

// What the innermost function called is where its time goes, but not how it was called.
TEST_F(PythonMergeTest, WhatTheInnermostFunctionCalledStays) {
  EXPECT_EQ(Merged("LOOP PyObject_Vectorcall ?1 list_sort ?2 k:page_fault", "f"),
            "f ?1 list_sort ?2 page_fault");
  EXPECT_EQ(Merged("LOOP list_sort PyObject_RichCompare PyObject_CallOneArg", "f"),
            "f list_sort PyObject_RichCompare PyObject_CallOneArg");
  EXPECT_EQ(Merged("LOOP PyObject_Vectorcall k:page_fault", "f"), "f page_fault");
}

TEST_F(PythonMergeTest, TheStartOfThreadsIsLeftOut) {
  EXPECT_EQ(Merged("libc:clone3 libc:start_thread pythread_wrapper thread_run PyObject_Call LOOP",
                   "Thread._bootstrap run"),
            "Thread._bootstrap run");
}

// A program that embeds Python, and a thread of an extension, have code of their own there.
TEST_F(PythonMergeTest, WhoCallsPythonFromOutsideStays) {
  EXPECT_EQ(Merged("libc:_start app:main app:RunScript PyRun_SimpleString PyEval_EvalCode LOOP",
                   "<module>"),
            "_start main RunScript <module>");
  EXPECT_EQ(Merged("libc:clone3 libc:start_thread torch:thread_init torch:Engine "
                   "PyObject_CallMethod LOOP",
                   "backward"),
            "clone3 start_thread thread_init Engine backward");
}

// A static libpython is in the program's own file: names identify the interpreter's functions.
TEST_F(PythonMergeTest, AnInterpreterInsideAProgram) {
  EXPECT_EQ(Merged("app:main app:_PyEval_Vector app:LOOP app:PyObject_Call app:Callback "
                   "app:_PyFunction_Vectorcall app:LOOP",
                   "<module> | on_event"),
            "main <module> Callback on_event");
}

// In the first instructions of the loop its function is not on the interpreter's stack yet.
TEST_F(PythonMergeTest, ALoopThatRunsNoFunctionYetStaysNative) {
  EXPECT_EQ(Merged("LOOP PyObject_Call LOOP", "main f"), "main f _PyEval_EvalFrameDefault");
  EXPECT_FALSE(is_doubtful_);
  EXPECT_EQ(Merged("LOOP torch:call LOOP", "main f", StackEnd::kUnknown),
            "main f call _PyEval_EvalFrameDefault");
  EXPECT_FALSE(is_doubtful_);
  EXPECT_EQ(Merged("LOOP torch:call LOOP k:page_fault", "main f"),
            "main f call _PyEval_EvalFrameDefault page_fault");
  EXPECT_EQ(Merged("LOOP LOOP LOOP", "f"), "[cut] f _PyEval_EvalFrameDefault");
  EXPECT_TRUE(is_doubtful_);
}

// The native stack goes on below the first function of a greenlet, with frames of others.
TEST_F(PythonMergeTest, LoopsBelowTheOutermostFunctionAreNotGivenToOthers) {
  EXPECT_EQ(Merged("LOOP _greenlet:g_switch _PyObject_Call LOOP torch:call LOOP", "task | f <"),
            "[cut] g_switch task call f");
  EXPECT_TRUE(is_doubtful_);
  EXPECT_EQ(Merged("LOOP _greenlet:g_switch LOOP torch:call LOOP torch:addmm", "task | f"),
            "[cut] g_switch task call f addmm");
  EXPECT_TRUE(is_doubtful_);
  // It is known that the innermost loop runs no function.
  EXPECT_EQ(Merged("LOOP _greenlet:g_switch LOOP torch:call LOOP", "task"),
            "[cut] g_switch task call _PyEval_EvalFrameDefault");
  EXPECT_TRUE(is_doubtful_);
  // It is not known, and likelier that the function is where it is shown.
  EXPECT_EQ(Merged("LOOP _greenlet:g_switch LOOP", "task ?"), "[cut] g_switch task");
  EXPECT_TRUE(is_doubtful_);
  EXPECT_EQ(Merged("LOOP torch:call LOOP", "main ?"), "main call _PyEval_EvalFrameDefault");
  EXPECT_FALSE(is_doubtful_);
}

// From the innermost frame the stacks agree, however far they reach.
TEST_F(PythonMergeTest, ANativeStackThatIsCut) {
  EXPECT_EQ(
      Merged("torch:outer LOOP torch:call LOOP torch:addmm", "main | f | g h | i", StackEnd::kCut),
      "main f outer g h call i addmm");
  EXPECT_FALSE(is_doubtful_);
  EXPECT_EQ(Merged("torch:addmm", "main | f", StackEnd::kCut), "main f addmm");
  EXPECT_EQ(Merged("", "main | f", StackEnd::kUnknown), "main f");
  EXPECT_FALSE(is_doubtful_);
}

TEST_F(PythonMergeTest, APythonStackThatIsCut) {
  EXPECT_EQ(
      Merged("libc:_start LOOP torch:call LOOP torch:again LOOP LOOP torch:addmm", "... f | g"),
      "[cut] call [cut] again f g addmm");
  EXPECT_FALSE(is_doubtful_);
  EXPECT_EQ(Merged("LOOP torch:call LOOP", "... f | g"), "[cut] f call g");
  EXPECT_EQ(Merged("torch:call LOOP", "... f | g", StackEnd::kCut), "[cut] f call g");
  EXPECT_EQ(Merged("LOOP LOOP torch:addmm", "..."), "[cut] addmm");
  EXPECT_EQ(Merged("torch:addmm", "...", StackEnd::kUnknown), "[cut] addmm");
}

// A loop without a name: every function is there, in order, and a note says so.
TEST_F(PythonMergeTest, MoreGroupsThanLoopsInAWholeStack) {
  EXPECT_EQ(Merged("app:main LOOP torch:call LOOP torch:addmm", "main | f | g"),
            "main main f call g addmm");
  EXPECT_TRUE(is_doubtful_);
}

TEST_F(PythonMergeTest, AGroupOfHiddenFunctionsAlone) {
  EXPECT_EQ(Merged("LOOP type_call LOOP torch:call LOOP", "main | | f"), "main call f");
}

// What was inlined into the loop is the loop; parts that it calls belong to it.
TEST_F(PythonMergeTest, PartsOfTheLoop) {
  EXPECT_EQ(
      Merged("LOOP _PyEval_FrameInit:inlined PyObject_Call LOOP pop:inlined list_sort", "f | g"),
      "f g list_sort");
  EXPECT_EQ(Merged("LOOP _TAIL_CALL_CALL.llvm.12 PyObject_Call LOOP _TAIL_CALL_BINARY_OP", "f | g"),
            "f g");
  EXPECT_EQ(Merged("_PyEval_EvalFrameDefault.cold LOOP _PyEval_EvalFrameDefault.part.0", "f | g"),
            "f g");
  EXPECT_EQ(Merged("_TAIL_CALL_RESUME torch:addmm", "f"), "f addmm");
}

// python -X perf: the trampolines name the functions once more.
TEST_F(PythonMergeTest, TrampolinesGiveWayToo) {
  EXPECT_EQ(Merged("[jit]:py::f:/app/a.py py_trampoline_evaluator LOOP [jit]:py::g:/app/a.py "
                   "py_trampoline_evaluator LOOP torch:addmm",
                   "f | g"),
            "f g addmm");
}

TEST(PythonRoleOf, NamesAndFiles) {
  EXPECT_EQ(PythonRoleOf("_PyEval_EvalFrameDefault", "app"), PythonRole::kLoop);
  EXPECT_EQ(PythonRoleOf("_PyEval_EvalFrameDefault.lto_priv.0", "app"), PythonRole::kLoop);
  EXPECT_EQ(PythonRoleOf("_PyEval_EvalFrameDefaultly", "app"), PythonRole::kCall);
  EXPECT_EQ(PythonRoleOf("gen_send_ex2.lto_priv.0", "python3.12"), PythonRole::kCall);
  EXPECT_EQ(PythonRoleOf("gen_send_ex2", "libapp.so"), PythonRole::kNone);
  EXPECT_EQ(PythonRoleOf("list_sort", "python3.12"), PythonRole::kNone);
  EXPECT_EQ(PythonRoleOf("start_thread", "libc.so.6"), PythonRole::kStart);
  EXPECT_EQ(PythonRoleOf("", ""), PythonRole::kNone);
}

TEST(IsPythonModule, InterpretersAndTheirLibraries) {
  for (const char* module : {"python", "python3", "python3.11", "python3.13t", "python3.12d",
                             "python3-dbg", "libpython3.11.so.1.0", "libpython3.13t.so.1.0"}) {
    EXPECT_TRUE(IsPythonModule(module)) << module;
  }
  for (const char* module : {"", "lib", "libc.so.6", "python3-config", "python_extension.so",
                             "libpython_bindings.so", "libtorch_python.so", "pythonic"}) {
    EXPECT_FALSE(IsPythonModule(module)) << module;
  }
}

}  // namespace
}  // namespace xpu
