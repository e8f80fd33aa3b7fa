// What the loader has mapped, as used by walks and as reported to the recorder.
#include "cupti_inject/code_files.h"

#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include "cupti_inject/wire_stacks.h"
#include "fake_recorder.h"

namespace xpu::inject {
namespace {

void OwnCode() {}

// A library of which only that it is mapped matters.
class Library {
 public:
  Library() : handle_(::dlopen(XPU_STUB_CUDART, RTLD_NOW | RTLD_LOCAL)) {
    void* const place = handle_ == nullptr ? nullptr : ::dlsym(handle_, "stub_cudart_is_here");
    Dl_info info{};
    if (place != nullptr && ::dladdr(place, &info) != 0) {
      base_ = reinterpret_cast<uint64_t>(info.dli_fbase);
    }
  }
  Library(const Library&) = delete;
  Library& operator=(Library&& other) noexcept {
    Close();
    handle_ = std::exchange(other.handle_, nullptr);
    base_ = other.base_;
    return *this;
  }
  void Close() {
    if (handle_ != nullptr) ::dlclose(handle_);
    handle_ = nullptr;
  }
  ~Library() { Close(); }
  uint64_t base() const { return base_; }

 private:
  void* handle_;
  uint64_t base_ = 0;
};

class CodeFilesTest : public testing::Test {
 protected:
  CodeFilesTest() {
    ring_.Attach(&memory_.header(), memory_.capacity_bytes());
    EXPECT_TRUE(files_.Open(&ring_));
  }

  // The files that a refresh tells the recorder of. The rest of it: loads_reported_, gone_.
  std::vector<Received> Refresh() {
    files_.Refresh();
    std::vector<Received> files = memory_.Drain();
    gone_.clear();
    loads_reported_ = 0;
    std::erase_if(files, [&](const Received& message) {
      if (message.kind == wire::MessageKind::kCodeFileGone) {
        gone_.push_back(message.As<wire::CodeFileGoneMessage>().start_address);
      }
      if (message.kind == wire::MessageKind::kCodeFilesComplete) {
        loads_reported_ = message.As<wire::CodeFilesCompleteMessage>().loads;
      }
      return message.kind != wire::MessageKind::kCodeFile;
    });
    return files;
  }

  TestRing memory_{1 << 20};
  RingProducer ring_;
  CodeFiles files_;
  std::vector<uint64_t> gone_;
  uint32_t loads_reported_ = 0;
};

TEST_F(CodeFilesTest, ReportsEachFileOnce) {
  {
    const CodeFiles::Reading before(files_, 1);
    EXPECT_EQ((*before).count, 0u);
  }
  const auto told = Refresh();
  const CodeFiles::Reading reading(files_, 1);
  const CodeRange* range = (*reading).Find(reinterpret_cast<uint64_t>(&OwnCode));
  ASSERT_NE(range, nullptr);
  EXPECT_EQ((*reading).Find(1), nullptr);
  EXPECT_EQ((*reading).count, told.size());
  EXPECT_EQ(files_.number_count(), told.size());
  int of_this_program = 0;
  for (const Received& message : told) {
    ASSERT_EQ(message.kind, wire::MessageKind::kCodeFile);
    const auto& file = message.As<wire::CodeFileMessage>();
    if (file.file != range->file) continue;
    ++of_this_program;
    EXPECT_EQ(file.start_address, range->start);
    EXPECT_EQ(file.end_address, range->end);
    EXPECT_EQ(file.bias, range->bias);
    EXPECT_EQ(file.build_id_bytes, 20u);
  }
  EXPECT_EQ(of_this_program, 1);
  EXPECT_EQ(Refresh().size(), 0u);
}

TEST_F(CodeFilesTest, ALibraryThatComesAndGoes) {
  Refresh();
  const uint32_t numbers = files_.number_count();
  std::set<uint64_t> generations;
  for (int round = 0; round < 2; ++round) {
    Library library;
    ASSERT_NE(library.base(), 0u);
    const auto told = Refresh();
    ASSERT_EQ(told.size(), 1u);
    const auto& file = told[0].As<wire::CodeFileMessage>();
    EXPECT_EQ(file.bias, library.base());
    EXPECT_EQ(file.file, numbers);  // the same file: the same number
    EXPECT_EQ(files_.number_count(), numbers + 1);
    const CodeFiles::Reading loaded(files_, 1);
    const CodeRange* const range = (*loaded).Find(file.start_address);
    ASSERT_NE(range, nullptr);
    EXPECT_EQ(range->file, numbers);
    EXPECT_EQ(range->end, file.end_address);
    const uint64_t generation = (*loaded).generation;
    generations.insert(generation);

    library.Close();
    EXPECT_EQ(Refresh().size(), 0u);
    EXPECT_EQ(gone_, std::vector{file.start_address});
    const CodeFiles::Reading unloaded(files_, 2);
    EXPECT_EQ((*unloaded).Find(file.start_address), nullptr);
    EXPECT_EQ((*unloaded).count, (*loaded).count - 1);
    // What was known of its addresses is void.
    EXPECT_EQ((*unloaded).generation, generation + 1);
    // A walk that began before sees what was there then, for as long as it takes.
    EXPECT_EQ(Refresh().size(), 0u);
    EXPECT_EQ((*loaded).Find(file.start_address), range);
  }
  EXPECT_EQ(generations.size(), 2u);
}

TEST_F(CodeFilesTest, MoreCodeIsNoNewGeneration) {
  Refresh();
  uint64_t generation = 0;
  {
    const CodeFiles::Reading reading(files_, 1);
    generation = (*reading).generation;
  }
  const Library library;
  EXPECT_EQ(Refresh().size(), 1u);
  const CodeFiles::Reading reading(files_, 1);
  EXPECT_EQ((*reading).generation, generation);
}

// Code that could not be reported to the recorder yet is in no list.
TEST_F(CodeFilesTest, AFullRingIsTriedAgain) {
  const size_t all = Refresh().size();
  ASSERT_GE(all, 3u);
  TestRing small(4096);
  RingProducer ring;
  ring.Attach(&small.header(), small.capacity_bytes());
  const std::vector<std::byte> filler(3700);
  wire::NameMessage name{};
  ASSERT_TRUE(ring.Send(wire::MessageKind::kName, name, filler.data(), filler.size()));
  CodeFiles files;
  ASSERT_TRUE(files.Open(&ring));
  size_t told = 0;
  std::set<uint64_t> starts;
  for (int round = 0; round < 20; ++round) {
    files.Refresh();
    for (const Received& message : small.Drain()) {
      if (message.kind != wire::MessageKind::kCodeFile) continue;
      ++told;
      starts.insert(message.As<wire::CodeFileMessage>().start_address);
    }
    const CodeFiles::Reading reading(files, 1);
    EXPECT_EQ((*reading).count, told);
    if (round == 0) {
      EXPECT_LT(told, all);
    }
  }
  EXPECT_EQ(told, all);
  EXPECT_EQ(starts.size(), all);
}

uint64_t LoaderAdds() {
  uint64_t adds = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* result) {
        *static_cast<uint64_t*>(result) = info->dlpi_adds;
        return 1;
      },
      &adds);
  return adds;
}

TEST_F(CodeFilesTest, TheListKnowsThatItIsOutdated) {
  Refresh();
  EXPECT_EQ(files_.LoadsSince(), 0u);
  EXPECT_EQ(loads_reported_, LoaderAdds());
  for (int round = 0; round < 3; ++round) {
    Library library;
    EXPECT_EQ(files_.LoadsSince(), LoaderAdds());
    // As if it were mapped where another one was, which the list has.
    library.Close();
    EXPECT_EQ(files_.LoadsSince(), LoaderAdds());
    Refresh();
    EXPECT_EQ(files_.LoadsSince(), 0u);
    EXPECT_EQ(loads_reported_, LoaderAdds());
    EXPECT_EQ(gone_.size(), 0u);  // it was never reported
  }
  const Library library;
  files_.StopFollowing();
  EXPECT_EQ(files_.LoadsSince(), 0u);
}

TEST_F(CodeFilesTest, WhoMayWaitForTheList) {
  Refresh();
  Signal wake;
  Library library;
  const uint32_t loads = files_.LoadsSince();
  ASSERT_NE(loads, 0u);
  // Nobody refreshes it: once it is waited for.
  EXPECT_FALSE(files_.WaitForLoads(loads, wake));
  EXPECT_EQ(wake.Ticket(), 1u);
  EXPECT_FALSE(files_.WaitForLoads(loads, wake));
  EXPECT_EQ(wake.Ticket(), 1u);

  // The longest wait is short for a loaded machine: some time the list must come in time.
  for (uint32_t round = 0; round < 1000; ++round) {
    library.Close();
    library = Library();
    const uint32_t next = files_.LoadsSince();
    ASSERT_GT(next, loads);
    std::thread refresher([&] {
      while (wake.Ticket() < 2 + round) std::this_thread::yield();
      files_.Refresh();
    });
    const bool known = files_.WaitForLoads(next, wake);
    refresher.join();
    EXPECT_EQ(files_.LoadsSince(), 0u);
    if (known) return;
    memory_.Drain();
  }
  ADD_FAILURE() << "the list was never there in time";
}

}  // namespace
}  // namespace xpu::inject
