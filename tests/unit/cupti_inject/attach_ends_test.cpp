// Who may attach, and what becomes of a session whose recorder or program ends before it.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <sys/resource.h>

#include "attached_program.h"
#include "nvtx3/nvToolsExt.h"

namespace xpu::inject {
namespace {

TEST(AttachEnds, ASecondRecorderIsRefused) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder first;
    ASSERT_TRUE(first.Begin(attach));
    AttachingRecorder second;
    EXPECT_FALSE(second.Begin(attach));
    EXPECT_EQ(second.error(), "another xpu-record is recording this process");
    Launch(0);
    EXPECT_EQ(first.End().kernels.size(), 1U);
    AttachingRecorder third;
    EXPECT_TRUE(third.Begin(attach)) << third.error();
    third.End();
  });
}

TEST(AttachEnds, AnUnknownVersionIsRefused) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    RequestArea area;
    area.request().version = wire::kAttachVersion + 1;
    area.Start(attach);
    EXPECT_EQ(area.WaitForAnswer(), wire::AttachState::kRefused);
  });
}

// CUPTI cannot be used: the reason is reported to the recorder, and the program is left as it was.
TEST(AttachEnds, ADormantSessionSaysWhyAndLeaves) {
  struct Case {
    const char* variable;
    const char* cupti;
    std::string reason;
  };
  const Case cases[] = {{"XPU_FAKE_SUBSCRIBED=1", "",
                         "another tool in this program holds CUPTI: CUPTI for <not provided>"},
                        {"XPU_FAKE_ORDER=api", "/nowhere/libcupti.so",
                         "the chosen libcupti cannot be loaded: /nowhere/libcupti.so: cannot open "
                         "shared object file: "
                         "No such file or directory"}};
  for (const Case& one : cases) {
    InChild([&] {
      putenv(strdup(one.variable));
      const AttachFunction attach = LoadLibrary();
      Launch(0);
      const size_t threads = CountEntries("/proc/self/task");
      std::unique_ptr<Footprint> first;
      for (int session = 0; session < 3; ++session) {
        {
          AttachingRecorder recorder;
          recorder.ChooseCupti(one.cupti);
          ASSERT_TRUE(recorder.Take(attach) && recorder.ReadHello() && recorder.Answer());
          recorder.StartReading();
          const SessionRecords records = recorder.End();
          EXPECT_EQ(records.state, wire::State::kDormant);
          EXPECT_EQ(records.dormant_reason, one.reason);
        }
        Launch(0);
        if (session == 1) first = std::make_unique<Footprint>(WaitForThreads(threads));
      }
      EXPECT_EQ(WaitForThreads(threads), *first);
    });
  }
}

TEST(AttachEnds, AProgramWithoutADescriptorLeftIsRefused) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder recorder;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = std::exchange(limit.rlim_cur, 3);
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_FALSE(recorder.Begin(attach));
    EXPECT_EQ(recorder.error(), "no connection can be made in the program: Too many open files");
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    ASSERT_TRUE(recorder.Begin(attach)) << recorder.error();
    recorder.End();
  });
}

// At each stage, while threads launch: the next session works and nothing is left.
TEST(AttachEnds, ARecorderThatDiesLeavesNothing) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    Launchers launchers(3);
    const size_t threads = CountEntries("/proc/self/task");
    std::unique_ptr<Footprint> second;
    for (int round = 1; round <= 4; ++round) {
      for (int stage = 0; stage < 6; ++stage) {
        SCOPED_TRACE(stage);
        if (stage == 0) {
          RequestArea area;
          area.Start(attach);
          ASSERT_EQ(area.WaitForAnswer(), wire::AttachState::kOffered);
          area.request().state.store(wire::AttachState::kWithdrawn);
        } else {
          AttachingRecorder recorder;
          ASSERT_TRUE(recorder.Take(attach)) << recorder.error();
          ASSERT_TRUE(stage < 2 || recorder.ReadHello());
          ASSERT_TRUE(stage < 3 || recorder.Answer());
          if (stage >= 3) recorder.StartReading();
          ASSERT_TRUE(stage < 4 || recorder.WaitUntil(wire::State::kActive));
          if (stage == 5) recorder.AskForEnd();
          recorder.HangUp();
        }
        // As soon as the library is ready for the next.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (std::chrono::steady_clock::now() < deadline) {
          AttachingRecorder next;
          if (!next.Begin(attach)) {
            ASSERT_EQ(next.error(), "another xpu-record is recording this process");
            continue;
          }
          EndAfterCalls(next, launchers, 100);
          break;
        }
      }
      if (round == 2) second = std::make_unique<Footprint>(WaitForThreads(threads));
    }
    EXPECT_EQ(WaitForThreads(threads), *second);
  });
}

// A recorder that offers nothing and says nothing.
TEST(AttachEnds, AnOfferThatNobodyTakesIsWithdrawn) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    const size_t before = CountEntries("/proc/self/fd");
    RequestArea area;
    area.Start(attach);
    ASSERT_EQ(area.WaitForAnswer(), wire::AttachState::kOffered);
    while (CountEntries("/proc/self/fd") != before) usleep(1000);
    AttachingRecorder next;
    while (!next.Begin(attach)) {
    }
    next.End();
  });
}

TEST(AttachEnds, AForkedChildTakesNoPartAndHoldsNothing) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    Launchers launchers(3);
    AttachingRecorder recorder;
    ASSERT_TRUE(recorder.Begin(attach));
    launchers.WaitForCalls(1);  // the child of a program that has not used the device may use it
    int until[2];
    ASSERT_EQ(pipe(until), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(until[1]);
      unsigned long long argument = 0;
      void* arguments[] = {&argument};
      // The real device says the same.
      const bool refused = cudaLaunchKernel(reinterpret_cast<const void*>(&probe_kernel), dim3(1),
                                            dim3(1), arguments, 0, nullptr) != cudaSuccess;
      char byte;
      const bool ended = read(until[0], &byte, 1) == 0;
      _exit(refused && ended ? 0 : 1);
    }
    // Although the child lives, the recorder sees the library hang up.
    EndAfterCalls(recorder, launchers, 100);
    close(until[1]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

// Before the first CUDA call: the child may use the device.
TEST(AttachEnds, AChildThatIsForkedAfterASessionIsAttachedTo) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder first;
    ASSERT_TRUE(first.Begin(attach)) << first.error();
    first.End();
    InChild([attach] {
      Launchers launchers(3);
      AttachingRecorder second;
      ASSERT_TRUE(second.Begin(attach)) << second.error();
      EndAfterCalls(second, launchers, 2000);
    });
  });
}

TEST(AttachEnds, AChildThatIsForkedAfterASessionThatKeptCuptiIsNot) {
  InChild([] {
    setenv("XPU_FAKE_CUPTI_VERSION", "12.4", 1);  // this one is not finalized
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder first;
    ASSERT_TRUE(first.Begin(attach)) << first.error();
    first.End();
    InChild([attach] {
      const Launchers launchers(3);
      AttachingRecorder second;
      EXPECT_FALSE(second.Begin(attach));
      EXPECT_EQ(second.error(), wire::kAttachIsForked);
    });
  });
}

// Nobody would take them: they would stay in its memory.
TEST(AttachEnds, AChildThatIsForkedMeanwhileMakesNoRecords) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder recorder;
    ASSERT_TRUE(recorder.Begin(attach)) << recorder.error();
    InChild([] {
      for (int i = 0; i < 1'000; ++i) Launch(0);
      const Footprint before;
      for (int i = 0; i < 50'000; ++i) Launch(0);
      EXPECT_EQ(Footprint(), before);
    });
    recorder.End();
  });
}

TEST(AttachEnds, TheExitOfTheProgramFlushesWhatIsThere) {
  AttachingRecorder recorder(0);  // its ring is shared with the child
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const AttachFunction attach = LoadLibrary();
    if (!recorder.Take(attach) || !recorder.ReadHello() || !recorder.Answer() ||
        !recorder.WaitUntil(wire::State::kActive)) {
      _exit(2);
    }
    for (int i = 0; i < 100; ++i) Launch(0);
    cudaDeviceSynchronize();
    Launch(60'000'000'000);
    exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  const SessionRecords records = recorder.ReadRest();
  EXPECT_EQ(records.state, wire::State::kFinished);
  ASSERT_EQ(records.kernels.size(), 101U);
  EXPECT_NE(records.kernels[99].end_ns, 0U);
  EXPECT_EQ(records.kernels[100].end_ns, 0U);
}

// While a session begins, goes on or ends.
TEST(AttachEnds, TheProgramMayExitAtAnyTime) {
  for (uint32_t delay_us = 0; delay_us < 30'000; delay_us += 1'000) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const AttachFunction attach = LoadLibrary();
      new Launchers(3);
      std::thread([attach] {
        AttachingRecorder recorder;
        recorder.Begin(attach);
        recorder.AskForEnd();
        pause();
      }).detach();
      usleep(delay_us);
      exit(3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << delay_us;
    EXPECT_EQ(WEXITSTATUS(status), 3) << delay_us;
  }
}

// The driver loads the library too, after an attach to a program that had not started CUDA.
TEST(AttachEnds, TheDriverStartsNoSecondSession) {
  InChild([] {
    TestRing ring(1 << 20);
    const FakeRecorder recorder(&ring);
    setenv("XPU_INJECT", recorder.Environment().c_str(), 1);
    setenv("CUDA_INJECTION64_PATH", XPU_INJECT_LIBRARY, 1);
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder attached;
    ASSERT_TRUE(attached.Begin(attach));
    Launch(0);
    EXPECT_EQ(recorder.connections(), 0);
    EXPECT_EQ(attached.End().kernels.size(), 1U);
  });
}

// As after `xpu-record -d 10 ./app`.
TEST(AttachEnds, AProgramThatWasStartedUnderARecorderIsAttachedToLater) {
  InChild([] {
    TestRing ring(1 << 20);
    ring.header().settings = wire::kSettingMayEnd;
    const FakeRecorder recorder(&ring);
    setenv("XPU_INJECT", recorder.Environment().c_str(), 1);
    setenv("CUDA_INJECTION64_PATH", XPU_INJECT_LIBRARY, 1);
    // A recorder that lives, with nothing to answer.
    ring.header().tables_there.store(1);
    Launch(0);
    while (recorder.connections() == 0) usleep(100);  // it counts after its answer
    const AttachFunction attach = LoadLibrary();
    {
      AttachingRecorder early;
      EXPECT_FALSE(early.Begin(attach));
    }
    ring.header().gate.store(wire::kGateEnds);
    while (ring.header().state.load() != wire::State::kFinished) usleep(1000);
    for (int session = 0; session < 2; ++session) {
      AttachingRecorder attached;
      while (!attached.Begin(attach)) {  // its memory is being freed
      }
      Launch(0);
      EXPECT_EQ(attached.End().kernels.size(), 1U);
    }
  });
}

// The recorder was killed, and the library has not noticed: nothing goes on in the program.
TEST(AttachEnds, ASessionWhoseRecorderHasDiedIsNotInTheWay) {
  for (const bool starts_cuda : {true, false}) {
    InChild([starts_cuda] {
      TestRing ring(1 << 20);
      ring.header().settings = wire::kSettingNvtx;
      ring.header().patience_ns = 3'600'000'000'000;
      ring.header().tables_there.store(1);
      const FakeRecorder recorder(&ring);
      setenv("XPU_INJECT", recorder.Environment().c_str(), 1);
      setenv("CUDA_INJECTION64_PATH", XPU_INJECT_LIBRARY, 1);
      setenv("NVTX_INJECTION64_PATH", XPU_INJECT_LIBRARY, 1);
      if (starts_cuda) Launch(0);
      EXPECT_EQ(nvtxRangePushA("outer"), 0);
      while (recorder.connections() == 0) usleep(100);  // it counts after its answer
      const AttachFunction attach = LoadLibrary();
      for (int session = 0; session < 2; ++session) {
        AttachingRecorder attached;
        while (!attached.Begin(attach)) {  // the old session may take its time to end
        }
        EXPECT_EQ(nvtxRangePushA("inner"), 1 + session);
        Launch(0);
        EXPECT_EQ(attached.End().kernels.size(), 1U);
      }
      EXPECT_EQ(nvtxRangePop(), 2);
    });
  }
}

// The other recorder lives: its heart beats, in vain for the one that attaches.
TEST(AttachEnds, ASessionWhoseRecorderLivesGoesOn) {
  InChild([] {
    TestRing ring(1 << 20);
    ring.header().patience_ns = 3'600'000'000'000;
    ring.header().tables_there.store(1);
    const FakeRecorder recorder(&ring);
    setenv("XPU_INJECT", recorder.Environment().c_str(), 1);
    setenv("CUDA_INJECTION64_PATH", XPU_INJECT_LIBRARY, 1);
    Launch(0);
    std::atomic<bool> stop{false};
    std::thread heart([&] {
      while (!stop) {
        ring.Drain();
        usleep(10'000);
      }
    });
    const AttachFunction attach = LoadLibrary();
    AttachingRecorder attached;
    EXPECT_FALSE(attached.Begin(attach));
    EXPECT_EQ(attached.error(), "another xpu-record is recording this process");
    EXPECT_EQ(ring.header().closed.load(), 0U);
    stop = true;
    heart.join();
  });
}

}  // namespace
}  // namespace xpu::inject
