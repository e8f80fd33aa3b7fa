// Launch stacks taken in the program, from messages in the ring to launches in a capture.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "cupti_inject/wire_stacks.h"
#include "symbolize/elf/elf_image.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu {
namespace {

using Addresses = std::vector<uint64_t>;

constexpr uint64_t kForever = UINT64_MAX;
constexpr uint8_t kByTables = kStackTables | kStackComplete | kStackInProcess;

uint32_t Stop(WalkStop stop) { return static_cast<uint32_t>(stop); }

// Where this program's code lies.
struct OwnCode {
  uint64_t start = 0, end = 0, bias = 0, file_offset = 0;
};

OwnCode FindOwnCode() {
  OwnCode code;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const uint64_t skipped = segment.p_vaddr % 4096;
          const uint64_t start = info->dlpi_addr + segment.p_vaddr - skipped;
          *static_cast<OwnCode*>(found) = {start,
                                           (start + skipped + segment.p_memsz + 4095) / 4096 * 4096,
                                           info->dlpi_addr, segment.p_offset - skipped};
        }
        return 1;  // the first one is the program
      },
      &code);
  return code;
}

class InlinePeerTest : public test::PeerTest {
 protected:
  InlinePeerTest()
      : tables_({.cache_directory = {}, .threads = 2}),
        shared_(*TableArena::Create(uint64_t{64} << 20), &tables_) {}

  void MakeInlinePeer(ProcessTracker* tracker = nullptr) {
    MakePeer({&shared_, &processes_, tracker, nullptr}, ::getpid());
  }

  static wire::LaunchCall Call(uint32_t correlation_id) {
    return {.time_ns = 1000 + correlation_id,
            .correlation_id = correlation_id,
            .domain_and_callback_id = 1u << wire::kDomainShift | 307,
            .tid = 77,
            .cpu = 3,
            .python_stack = 0,
            .reserved = 0};
  }
  void SendStack(uint32_t number, const Addresses& frames, uint8_t flags = kWalkTables,
                 WalkStop stop = WalkStop::kComplete) {
    wire::StackMessage message{};
    message.stack = number;
    message.frame_count = static_cast<uint32_t>(frames.size());
    message.flags = flags;
    message.stop = Stop(stop);
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kStack, message, frames.data(),
                               frames.size() * sizeof(uint64_t)));
  }
  void SendLaunch(uint32_t correlation_id, uint32_t stack) {
    wire::LaunchMessage message{};
    message.call = Call(correlation_id);
    message.stack = stack;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kLaunch, message));
  }
  void SendStackCopy(uint32_t correlation_id, uint64_t ip, const Addresses& words,
                     uint32_t loads = 0) {
    wire::StackCopyMessage message{};
    message.call = Call(correlation_id);
    message.ip = ip;
    message.sp = 0x7000;
    message.bytes = static_cast<uint32_t>(words.size() * sizeof(uint64_t));
    message.loads = loads;
    ASSERT_TRUE(
        producer_.Send(wire::MessageKind::kStackCopy, message, words.data(), message.bytes));
  }
  void SendCodeFile(uint32_t number, const OwnCode& code, std::string_view build_id,
                    std::string_view name) {
    wire::CodeFileMessage message{};
    message.file = number;
    message.start_address = code.start;
    message.end_address = code.end;
    message.bias = code.bias;
    message.file_offset = code.file_offset;
    message.build_id_bytes = static_cast<uint32_t>(build_id.size());
    std::copy(build_id.begin(), build_id.end(), message.build_id);
    message.name_bytes = static_cast<uint32_t>(name.size());
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kCodeFile, message, name.data(), name.size()));
  }
  void SendQuestion(uint64_t address) {
    wire::OtherCodeMessage message{};
    message.address = address;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kOtherCode, message));
  }
  Addresses FramesOf(const LaunchStack& launch) {
    Addresses addresses;
    for (const Frame& frame : reader_->Stack(launch.stack)) {
      EXPECT_EQ(frame.kind, FrameKind::kUser);
      addresses.push_back(frame.address);
    }
    return addresses;
  }

  UnwindTables tables_;
  SharedTables shared_;
};

TEST_F(InlinePeerTest, StacksThatAreSentOnceAndNamedByLaunches) {
  MakeInlinePeer();
  SendStack(1, {0x1010, 0x2020, 0x3030});
  SendLaunch(5, 1);
  SendStack(2, {0x1010}, kWalkTables | kWalkFramePointers, WalkStop::kDepth);
  SendLaunch(6, 2);
  SendLaunch(7, 1);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kStackCut), 1u);
  EXPECT_EQ(sink_->losses().total(), 1u);

  const EventBatch events = Events();
  ASSERT_EQ(events.launch_stacks.size(), 3u);
  const LaunchStack& first = events.launch_stacks[0];
  EXPECT_EQ(first.instance, InstanceId{test::kInstance});
  EXPECT_EQ(first.correlation_id, 5u);
  EXPECT_EQ(first.domain, ApiDomain::kDriver);
  EXPECT_EQ(first.callback_id, 307u);
  EXPECT_EQ(first.time_ns, 1005u);
  EXPECT_EQ(first.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(first.tid, 77u);
  EXPECT_EQ(first.cpu, 3u);
  EXPECT_EQ(first.stack_flags, kByTables);
  EXPECT_EQ(FramesOf(first), (Addresses{0x1010, 0x2020, 0x3030}));
  EXPECT_EQ(events.launch_stacks[1].correlation_id, 6u);
  EXPECT_EQ(events.launch_stacks[1].stack_flags,
            kStackTables | kStackFramePointers | kStackTruncated | kStackInProcess);
  EXPECT_EQ(FramesOf(events.launch_stacks[1]), Addresses{0x1010});
  EXPECT_EQ(events.launch_stacks[2].correlation_id, 7u);
  EXPECT_EQ(events.launch_stacks[2].stack, first.stack);
}

TEST_F(InlinePeerTest, AStackSentAgainReplacesTheEarlierOne) {
  MakeInlinePeer();
  SendStack(1, {0x1010, 0x2020});
  SendStack(1, {0x4040});
  SendLaunch(5, 1);
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.launch_stacks.size(), 1u);
  EXPECT_EQ(FramesOf(events.launch_stacks[0]), Addresses{0x4040});
}

TEST_F(InlinePeerTest, SingleStacksAreForgotten) {
  MakeInlinePeer();
  SendStack(wire::kFirstSingleStack, {0x1010, 0x2020});
  SendLaunch(5, wire::kFirstSingleStack);
  SendLaunch(6, wire::kFirstSingleStack);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 1u);
  EXPECT_EQ(sink_->losses().total(), 1u);
  EXPECT_EQ(Events().launch_stacks.size(), 1u);
}

TEST_F(InlinePeerTest, EveryLaunchWithAnIncompleteStackIsCounted) {
  MakeInlinePeer();
  SendStack(1, {0x1010}, kWalkTables, WalkStop::kUnsupported);
  SendLaunch(5, 1);
  SendLaunch(6, 1);
  producer_.Count(wire::kCounterWalksDropped, 4);
  peer_->Drain(*sink_);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kStackRuleUnsupported), 2u);
  EXPECT_EQ(Lost(LossKind::kLaunchRingFull), 4u);
  EXPECT_EQ(sink_->losses().total(), 6u);
}

TEST_F(InlinePeerTest, MessagesThatDoNotFitAreCounted) {
  MakeInlinePeer();
  SendLaunch(1, 9);        // no such stack
  SendStack(0, {0x1010});  // numbers count from 1
  SendStack(1, Addresses(wire::kMaxFrames + 1, 0x1010));
  wire::StackMessage stack{};
  stack.stack = 1;
  stack.frame_count = 2;
  const uint64_t frame = 0x1010;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kStack, stack, &frame, sizeof(frame)));
  SendStackCopy(1, 0x1010, Addresses(wire::kMaxCopyBytes / 8 + 1));
  wire::StackCopyMessage copy{};
  copy.bytes = 16;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kStackCopy, copy, &frame, sizeof(frame)));
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kLaunch, wire::OtherCodeMessage{}));  // too short
  const OwnCode code{0x10000, 0x20000, 0, 0};
  SendCodeFile(wire::kMaxCodeFiles, code, {}, "a");
  SendCodeFile(1, {0x20000, 0x20000, 0, 0}, {}, "a");
  wire::CodeFileMessage file{};
  file.start_address = code.start;
  file.end_address = code.end;
  file.build_id_bytes = wire::kMaxBuildIdBytes + 1;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kCodeFile, file));
  file.build_id_bytes = 0;
  file.name_bytes = 9;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kCodeFile, file, "12345678", 8));
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 11u);
  EXPECT_EQ(sink_->losses().total(), 11u);
  EXPECT_FALSE(peer_->stacks().waits());
  EXPECT_EQ(Events().launch_stacks.size(), 0u);
}

// Each costs the recorder memory although it has no frame.
TEST_F(InlinePeerTest, StacksWithoutFramesAreBoundedToo) {
  MakeInlinePeer();
  uint32_t number = 0;
  while (Lost(LossKind::kProcessMemoryFull) == 0 && number < 5'000'000) {
    wire::StackMessage message{};
    message.stack = ++number;
    if (!producer_.Send(wire::MessageKind::kStack, message)) peer_->Drain(*sink_);
  }
  // 384 MiB of one process.
  EXPECT_GT(number, 3'000'000u);
  EXPECT_LT(number, 5'000'000u);
}

// A file that neither the kernel reports nor a build-id identifies is not read: only the program
// says that it exists.
TEST_F(InlinePeerTest, AFileThatOnlyTheProgramReportsHasNoTable) {
  MakeInlinePeer();
  const OwnCode nowhere{.start = 0x1000, .end = 0x2000, .bias = 0, .file_offset = 0};
  SendCodeFile(5, nowhere, "", "/proc/self/exe");
  peer_->Drain(*sink_);
  EXPECT_EQ(header_->tables[5].load(), wire::kTableNone);
}

TEST_F(InlinePeerTest, CodeFilesAreIgnoredWithoutStacks) {
  MakePeer();
  SendCodeFile(0, FindOwnCode(), {}, "/proc/self/exe");
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 1u);
  EXPECT_EQ(header_->tables[0].load(), wire::kTablePending);
}

TEST_F(InlinePeerTest, TheTableOfAFileIsSharedWithTheProgram) {
  MakeInlinePeer();
  const OwnCode code = FindOwnCode();
  SendCodeFile(3, code, *ReadBuildId("/proc/self/exe"), "");  // the loader's name of a program
  peer_->Drain(*sink_);
  tables_.WaitUntil(kForever);
  peer_->Drain(*sink_);
  const uint32_t place = header_->tables[3].load();
  ASSERT_GT(place, wire::kTableNone);
  EXPECT_EQ(header_->tables[2].load(), wire::kTablePending);
  const auto function = reinterpret_cast<uint64_t>(&FindOwnCode);
  EXPECT_EQ(shared_.arena().At(place).Find(function - code.bias),
            (UnwindRule{.cfa = UnwindCfa::kRsp, .cfa_offset = 8}));
  // The same file of another process of this recording.
  SendCodeFile(4, code, *ReadBuildId("/proc/self/exe"), "");
  peer_->Drain(*sink_);
  EXPECT_EQ(header_->tables[4].load(), place);
  EXPECT_EQ(tables_.counts().built, 1u);
}

TEST_F(InlinePeerTest, AFileWithoutAPathHasNoTable) {
  MakeInlinePeer();
  SendCodeFile(0, {0x10000, 0x20000, 0x10000, 0}, {}, "nowhere");
  peer_->Drain(*sink_);
  EXPECT_EQ(header_->tables[0].load(), wire::kTableNone);
}

// A return address in _start, which the file marks as outermost.
uint64_t OutermostCode() { return ::getauxval(AT_ENTRY) + 1; }

TEST_F(InlinePeerTest, ACopyIsWalkedWhenTheTableIsReady) {
  MakeInlinePeer();
  const auto inner = reinterpret_cast<uint64_t>(&FindOwnCode);
  const auto outer = reinterpret_cast<uint64_t>(&Stop) + 1;  // a return address
  SendCodeFile(0, FindOwnCode(), *ReadBuildId("/proc/self/exe"), "");
  SendStackCopy(5, inner, {outer, OutermostCode()});
  peer_->Drain(*sink_);
  tables_.WaitUntil(kForever);
  peer_->Drain(*sink_);
  EXPECT_FALSE(peer_->stacks().waits());
  EXPECT_EQ(sink_->losses().total(), 0u);
  const EventBatch events = Events();
  ASSERT_EQ(events.launch_stacks.size(), 1u);
  EXPECT_EQ(events.launch_stacks[0].correlation_id, 5u);
  EXPECT_EQ(events.launch_stacks[0].time_ns, 1005u);
  EXPECT_EQ(events.launch_stacks[0].tid, 77u);
  EXPECT_EQ(events.launch_stacks[0].stack_flags, kByTables);
  EXPECT_EQ(FramesOf(events.launch_stacks[0]), (Addresses{inner, outer, OutermostCode()}));
}

// What an allocator hands out has the stack of its code, what it takes back has none.
TEST_F(InlinePeerTest, BlocksOfAnAllocator) {
  MakeInlinePeer();
  wire::LaunchCall call = Call(0);
  call.domain_and_callback_id = wire::kDomainAllocator << wire::kDomainShift;
  wire::Block block{0xb000, 512, 4096, 8192, 3, 1};
  SendStack(1, {0x1010, 0x2020});
  wire::LaunchMessage launch{{}, call, 1, 0};
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kLaunch, launch, &block, sizeof(block)));
  const auto inner = reinterpret_cast<uint64_t>(&FindOwnCode);
  SendCodeFile(0, FindOwnCode(), *ReadBuildId("/proc/self/exe"), "");
  const Addresses words = {0, 0};
  wire::StackCopyMessage copy{{}, call, inner, 0x7000, 0, 16, 0};
  block.address = 0xc000;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kStackCopy, copy, words.data(), copy.bytes, &block,
                             sizeof(block)));
  block.size_bytes = -512;
  block.has_totals = 0;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kBlock, wire::BlockMessage{{}, call, block}));
  // Without the block that they promise.
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kLaunch, launch));
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kStackCopy, copy, words.data(), copy.bytes));
  peer_->Drain(*sink_);
  tables_.WaitUntil(kForever);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 2u);

  const EventBatch events = Events();
  EXPECT_TRUE(events.launch_stacks.empty());
  ASSERT_EQ(events.allocator_events.size(), 3u);
  const auto of = [&](uint64_t address, int64_t bytes) {
    return *std::find_if(events.allocator_events.begin(), events.allocator_events.end(),
                         [&](const AllocatorEvent& event) {
                           return event.address == address && event.size_bytes == bytes;
                         });
  };
  const AllocatorEvent first = of(0xb000, 512);
  EXPECT_EQ(first.instance, InstanceId{test::kInstance});
  EXPECT_EQ(first.allocator, AllocatorKind::kPyTorch);
  EXPECT_EQ(first.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(first.tid, 77u);
  EXPECT_EQ(first.time_ns, 1000u);
  EXPECT_EQ(first.device_id, 3u);
  EXPECT_TRUE(first.has_totals);
  EXPECT_EQ(first.allocated_bytes, 4096u);
  EXPECT_EQ(first.reserved_bytes, 8192u);
  ASSERT_EQ(reader_->Stack(first.stack).size(), 2u);
  EXPECT_EQ(reader_->Stack(first.stack)[0].address, 0x1010u);
  EXPECT_EQ(reader_->Stack(of(0xc000, 512).stack).size(), 1u);
  EXPECT_FALSE(of(0xc000, -512).stack);
  EXPECT_FALSE(of(0xc000, -512).has_totals);
}

TEST_F(InlinePeerTest, ACopyWaitsForTheMappingsOfItsTime) {
  MakeInlinePeer();
  const std::string build_id = *ReadBuildId("/proc/self/exe");
  const auto inner = reinterpret_cast<uint64_t>(&FindOwnCode);
  const auto outer = reinterpret_cast<uint64_t>(&Stop) + 1;
  OwnCode other = FindOwnCode();
  other.bias -= 64;  // another file's rules
  SendCodeFile(0, other, build_id, "");
  peer_->Drain(*sink_);
  tables_.WaitUntil(kForever);  // first: a copy does not wait for ever
  SendStackCopy(5, inner, {outer, OutermostCode()}, 7);
  peer_->Drain(*sink_);
  EXPECT_TRUE(peer_->stacks().waits());

  SendCodeFile(0, FindOwnCode(), build_id, "");
  wire::CodeFilesCompleteMessage told{};
  told.loads = 7;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kCodeFilesComplete, told));
  // What follows belongs to another list.
  wire::CodeFileGoneMessage gone{};
  gone.start_address = FindOwnCode().start;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kCodeFileGone, gone));
  SendStackCopy(6, inner, {outer, OutermostCode()});
  peer_->Drain(*sink_);
  EXPECT_FALSE(peer_->stacks().waits());
  EXPECT_EQ(sink_->losses().total(), 1u);  // of the last
  const EventBatch events = Events();
  ASSERT_EQ(events.launch_stacks.size(), 2u);
  EXPECT_EQ(events.launch_stacks[0].stack_flags, kByTables);
  EXPECT_EQ(FramesOf(events.launch_stacks[0]), (Addresses{inner, outer, OutermostCode()}));
  EXPECT_NE(events.launch_stacks[1].stack_flags, kByTables);
}

// By the time that the recorder looks, yet another file may be mapped there.
TEST_F(InlinePeerTest, AFileThatReplacesAnotherIsUsed) {
  ProcessTracker tracker(processes_);
  MakeInlinePeer(&tracker);
  Dl_info libc{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::qsort), &libc), 0);
  const OwnCode code = FindOwnCode();
  SendCodeFile(0, code, *ReadBuildId("/proc/self/exe"), "");
  SendCodeFile(1, code, *ReadBuildId(libc.dli_fname), libc.dli_fname);
  peer_->Drain(*sink_);
  tables_.WaitUntil(kForever);
  peer_->Drain(*sink_);
  EXPECT_GT(header_->tables[1].load(), wire::kTableNone);
  EXPECT_EQ(sink_->losses().total(), 0u);
  const EventBatch events = Events();
  std::string path;
  for (const Mapping& mapping : events.mappings) {
    if (mapping.start_address == code.start) path = Text(mapping.path);
  }
  EXPECT_EQ(path, libc.dli_fname);
}

// As when the process has ended: its files cannot be compared.
TEST_F(InlinePeerTest, FilesThatNobodyFindsAreNotMixed) {
  ProcessTracker tracker(processes_);
  MakeInlinePeer(&tracker);
  const OwnCode nowhere{0x10000, 0x20000, 0x10000, 0};
  SendCodeFile(0, nowhere, "of one", "/nowhere/one.so");
  SendCodeFile(1, nowhere, "of other", "/nowhere/other.so");
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  std::vector<std::pair<std::string, std::string>> found;
  for (const Mapping& mapping : events.mappings) {
    if (mapping.start_address == nowhere.start) {
      found.emplace_back(Text(mapping.path), Text(mapping.build_id));
    }
  }
  EXPECT_EQ(found,
            (std::vector<std::pair<std::string, std::string>>{{"/nowhere/other.so", "of other"}}));
}

TEST_F(InlinePeerTest, CodeThatIsInNoFile) {
  void* const pages =
      ::mmap(nullptr, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  MakeInlinePeer();
  const auto start = reinterpret_cast<uint64_t>(pages);
  const uint64_t data = reinterpret_cast<uint64_t>(&peer_);
  SendQuestion(start + 5000);
  SendQuestion(data);
  SendQuestion(start);
  SendQuestion(1);
  peer_->Drain(*sink_);
  EXPECT_EQ(header_->other_code_answers.load(), 4u);
  ASSERT_EQ(header_->other_code_count.load(), 1u);
  EXPECT_EQ(header_->other_code[0].start.load(), start);
  EXPECT_EQ(header_->other_code[0].end.load(), start + 8192);
  ::munmap(pages, 8192);
}

TEST_F(InlinePeerTest, MappingsThatOnlyTheProgramReports) {
  ProcessTracker tracker(processes_);
  MakeInlinePeer(&tracker);
  const OwnCode code = FindOwnCode();
  const std::string build_id = *ReadBuildId("/proc/self/exe");
  SendCodeFile(0, code, build_id, "");
  peer_->Drain(*sink_);
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  std::vector<Mapping> mappings;
  for (const Mapping& mapping : events.mappings) {
    EXPECT_NE(mapping.protection & PROT_EXEC, 0u);
    if (mapping.start_address == code.start) mappings.push_back(mapping);
  }
  ASSERT_EQ(mappings.size(), 1u);
  EXPECT_EQ(Text(mappings[0].build_id), build_id);
  EXPECT_EQ(mappings[0].size_bytes, code.end - code.start);
  EXPECT_EQ(mappings[0].file_offset, code.file_offset);
  EXPECT_EQ(mappings[0].pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(Text(mappings[0].path), std::filesystem::read_symlink("/proc/self/exe").string());
}

// Else it would be of another file than its table.
TEST_F(InlinePeerTest, MappingsReportedByTheKernelAreKept) {
  MakeInlinePeer();
  const OwnCode code = FindOwnCode();
  const std::string build_id = *ReadBuildId("/proc/self/exe");
  Mapping mapping;  // split since
  mapping.pid = mapping.tid = static_cast<uint32_t>(::getpid());
  mapping.start_address = code.start;
  mapping.size_bytes = code.end - code.start + 0x10000;
  mapping.file_offset = code.file_offset;
  processes_.Observe(mapping, std::filesystem::read_symlink("/proc/self/exe").string(), build_id);
  processes_.ApplyNotes();
  SendCodeFile(0, code, build_id, "");
  peer_->Drain(*sink_);
  const auto* found = processes_.FindCode(static_cast<uint32_t>(::getpid()), code.start);
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->second.is_amended);
  EXPECT_EQ(found->second.end, code.end + 0x10000);
}

TEST_F(InlinePeerTest, TheMarkerIsUsedInstead) {
  MakeInlinePeer();
  EXPECT_FALSE(peer_->marker_used());
  wire::DetailMessage message{};
  message.detail = wire::DetailKind::kMarkerUsed;
  message.text_bytes = 2;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kDetail, message, "no", 2));
  peer_->Drain(*sink_);
  EXPECT_TRUE(peer_->marker_used());
  EXPECT_EQ(sink_->losses().total(), 0u);
}

}  // namespace
}  // namespace xpu
