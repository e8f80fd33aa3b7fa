#include "cupti_inject/loaded_files.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

struct Visit {
  std::atomic<bool> began{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
};

int WaitInside(dl_phdr_info* /*info*/, size_t /*size*/, void* visit) {
  auto* self = static_cast<Visit*>(visit);
  self->began = true;
  while (!self->may_end) std::this_thread::yield();
  self->ended = true;
  return 1;
}

TEST(LoadedFiles, NobodyIteratesDuringAFork) {
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    Visit visit;
    visit.may_end = true;
    std::thread iterates([&] { ForEachLoadedFile(&WaitInside, &visit); });
    if (i % 2 == 0) std::this_thread::yield();
    if (KeepFromLoadedFiles()) {
      ++kept;
      const bool had_begun = visit.began;
      EXPECT_EQ(visit.ended, had_begun);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(visit.began, had_begun);
    }
    ReturnToLoadedFiles();
    iterates.join();
    EXPECT_TRUE(visit.ended);
  }
  EXPECT_GT(kept, 0);
}

// Within a callback of dl_iterate_phdr, say.
TEST(LoadedFiles, AForkDoesNotWaitForGood) {
  Visit visit;
  std::thread iterates([&] { ForEachLoadedFile(&WaitInside, &visit); });
  while (!visit.began) std::this_thread::yield();
  EXPECT_FALSE(KeepFromLoadedFiles());
  ReturnToLoadedFiles();  // what it does not have
  visit.may_end = true;
  iterates.join();
  EXPECT_EQ(ForEachLoadedFile(&WaitInside, &visit), 1);
}

}  // namespace
}  // namespace xpu::inject
