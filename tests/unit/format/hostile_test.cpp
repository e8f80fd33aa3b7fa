// Files whose checksums are right and whose content no writer makes: no crash, no hang, no memory
// without bound, and the blocks around them are read.
#include <algorithm>
#include <array>

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "container.h"
#include "filled.h"
#include "format/capture.capnp.h"
#include "format/events.h"
#include "format/message.h"

namespace xpu::test {
namespace {

using Words = std::vector<uint64_t>;

Words WordsOf(capnp::MessageBuilder& message) {
  const auto array = capnp::messageToFlatArray(message);
  const auto bytes = array.asBytes();
  Words words(array.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<kj::byte*>(words.data()));
  return words;
}

// A message that `fill(schema::Block::Builder)` makes, as the only block of a capture.
template <typename Fill>
std::vector<std::byte> CaptureWith(uint32_t events, Fill&& fill) {
  capnp::MallocMessageBuilder message;
  fill(message.initRoot<schema::Block>());
  const Words words = WordsOf(message);
  return FileOf({BlockOf(std::as_bytes(std::span(words)), 1, events)});
}

template <typename Fill>
bool IsRead(uint32_t events, Fill&& fill) {
  const auto bytes = CaptureWith(events, fill);
  CaptureReader reader = MustRead(bytes);
  const bool read = reader.Next().has_value();
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_EQ(reader.problems().blocks_read, read ? 1u : 0u);
  EXPECT_EQ(reader.problems().blocks_damaged, read ? 0u : 1u);
  return read;
}

uint64_t PeakBytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

// ---- sizes --------------------------------------------------------------------------------------

TEST(Hostile, FrameLargerThanItsHeaderSays) {
  const std::string bomb = Zstd(std::string(size_t{64} << 20, '\0'));
  for (uint32_t raw_bytes : {uint32_t{0}, uint32_t{8}, kMaxRawBytes}) {
    const BlockHeader header{.capture_id = kCaptureId,
                             .sequence = 1,
                             .raw_bytes = raw_bytes,
                             .stored_bytes = static_cast<uint32_t>(bomb.size()),
                             .payload_checksum = Xxh3(bomb)};
    const auto bytes = FileOf({RawBlock(header, bomb)});
    const uint64_t peak_before = PeakBytes();
    CaptureReader reader = MustRead(bytes);
    EXPECT_FALSE(reader.Next().has_value());
    EXPECT_EQ(reader.problems().blocks_damaged, 1u);
    EXPECT_LT(PeakBytes() - peak_before, size_t{16} << 20);
  }
}

TEST(Hostile, HeadersBeyondTheLimits) {
  const std::string payload = Zstd("");
  const auto size = static_cast<uint32_t>(payload.size());
  const BlockHeader good{.capture_id = kCaptureId,
                         .sequence = 1,
                         .stored_bytes = size,
                         .payload_checksum = Xxh3(payload)};
  BlockHeader large = good;
  large.raw_bytes = UINT32_MAX - 7;
  BlockHeader uneven = good;
  uneven.raw_bytes = 12;
  BlockHeader long_payload = good;
  long_payload.stored_bytes = UINT32_MAX;
  BlockHeader many_events = good;
  many_events.events = kMaxEventsPerBlock + 1;
  for (const BlockHeader& header : {large, uneven, long_payload, many_events}) {
    const std::string block = RawBlock(header, payload);
    EXPECT_FALSE(ParseBlockHeader(std::as_bytes(std::span(block))).has_value());
    EXPECT_EQ(ReadLines(FileOf({block})).problems.blocks_damaged, 1u);
  }
  const std::string block = RawBlock(good, payload);
  EXPECT_TRUE(ParseBlockHeader(std::as_bytes(std::span(block))).has_value());
}

TEST(Hostile, RowsOutOfNothing) {
  const auto kernels = [](uint32_t rows) {
    return [rows](schema::Block::Builder block) { block.initEvents().initKernels().setRows(rows); };
  };
  EXPECT_TRUE(IsRead(kMaxEventsPerBlock, kernels(kMaxEventsPerBlock)));
  EXPECT_FALSE(IsRead(kMaxEventsPerBlock, kernels(UINT32_MAX)));
  EXPECT_FALSE(IsRead(9, kernels(10)));
  EXPECT_FALSE(IsRead(10, [](schema::Block::Builder block) {
    auto events = block.initEvents();
    events.initKernels().setRows(6);
    events.initMemcpys().setRows(5);
  }));
}

TEST(Hostile, DefinitionsOutOfNothing) {
  EXPECT_TRUE(IsRead(0, [](schema::Block::Builder block) {
    auto strings = block.initStrings();
    strings.setFirstId(2);
    strings.setCount(kMaxDefinitionsPerBlock);
    auto stacks = block.initStacks();
    stacks.setFirstId(2);
    stacks.setCount(kMaxDefinitionsPerBlock);
  }));
  EXPECT_FALSE(IsRead(0, [](schema::Block::Builder block) {
    block.initStrings().setFirstId(2);
    block.getStrings().setCount(kMaxDefinitionsPerBlock + 1);
  }));
  EXPECT_FALSE(IsRead(0, [](schema::Block::Builder block) {
    block.initStacks().setFirstId(2);
    block.getStacks().setCount(UINT32_MAX);
  }));
}

// Small blocks that define much: the tables stop growing, the file is still read to its end.
TEST(Hostile, TablesStopGrowing) {
  constexpr uint32_t kBombs = 60;
  std::vector<std::string> blocks;
  for (uint32_t i = 0; i < kBombs; ++i) {
    capnp::MallocMessageBuilder message;
    auto stacks = message.initRoot<schema::Block>().initStacks();
    stacks.setFirstId(2 + i * kMaxDefinitionsPerBlock);
    stacks.setCount(kMaxDefinitionsPerBlock);
    const Words words = WordsOf(message);
    blocks.push_back(BlockOf(std::as_bytes(std::span(words)), i + 1, 0));
  }
  const auto bytes = FileOf(blocks);
  CaptureReader reader = MustRead(bytes);
  while (reader.Next()) {
  }
  EXPECT_GT(reader.problems().blocks_read, 1u);
  EXPECT_EQ(reader.problems().blocks_read + reader.problems().blocks_damaged, kBombs);
  EXPECT_LT(reader.stack_bound() * sizeof(StackNode), (size_t{64} << 20) + 256 * bytes.size());
}

// Small blocks with very many events that are all alike: the file is read to its end, and what it
// takes is in proportion to its size.
TEST(Hostile, EventsOutOfNothingAreBounded) {
  constexpr uint32_t kBombs = 500;
  std::vector<std::string> blocks;
  for (uint32_t i = 0; i < kBombs; ++i) {
    capnp::MallocMessageBuilder message;
    message.initRoot<schema::Block>().initEvents().initKernels().setRows(kMaxEventsPerBlock);
    const Words words = WordsOf(message);
    blocks.push_back(BlockOf(std::as_bytes(std::span(words)), i + 1, kMaxEventsPerBlock));
  }
  const auto bytes = FileOf(blocks);
  ASSERT_LT(bytes.size(), size_t{200} << 10);
  CaptureReader reader = MustRead(bytes);
  uint64_t events = 0;
  while (const auto batch = reader.Next()) events += batch->kernels.size();
  EXPECT_GE(events, uint64_t{1} << 18);
  EXPECT_LT(events, uint64_t{1} << 19);
  EXPECT_EQ(reader.problems().blocks_read + reader.problems().blocks_damaged, kBombs);
}

// The same blocks with as many zeros as events, which take next to nothing in the file.
TEST(Hostile, PaddedEventsAreBounded) {
  constexpr uint32_t kBombs = 500;
  std::vector<std::string> blocks;
  for (uint32_t i = 0; i < kBombs; ++i) {
    capnp::MallocMessageBuilder message;
    message.initRoot<schema::Block>().initEvents().initKernels().setRows(kMaxEventsPerBlock);
    Words words = WordsOf(message);
    words.resize(kMaxEventsPerBlock / sizeof(uint64_t));
    blocks.push_back(BlockOf(std::as_bytes(std::span(words)), i + 1, kMaxEventsPerBlock));
  }
  const auto bytes = FileOf(blocks);
  ASSERT_LT(bytes.size(), size_t{200} << 10);
  CaptureReader reader = MustRead(bytes);
  uint64_t events = 0;
  while (const auto batch = reader.Next()) events += batch->kernels.size();
  EXPECT_GT(events, uint64_t{1} << 20);
  EXPECT_LE(events, (uint64_t{2} << 20) + 4 * bytes.size());
}

// Every header claims a payload that goes over all that follow.
TEST(Hostile, ManyPayloadsOverOneAnother) {
  constexpr uint32_t kHeaders = 60'000;
  std::vector<std::string> blocks;
  for (uint32_t i = 0; i < kHeaders; ++i) {
    blocks.push_back(RawBlock({.capture_id = kCaptureId,
                               .sequence = i + 1,
                               .stored_bytes = (kHeaders - i - 1) * 64,
                               .payload_checksum = i},
                              ""));
  }
  const auto bytes = FileOf(blocks);
  CaptureReader reader = MustRead(bytes);
  EXPECT_FALSE(reader.Next().has_value());  // 110 GB of checksums without a bound
  EXPECT_EQ(reader.problems().bytes_skipped, kHeaders * 64);
}

// Ours counts from no column whose values are all the same; another writer may.
TEST(Hostile, AColumnCountedFromOneOfEqualValues) {
  const auto bytes = CaptureWith(3, [](schema::Block::Builder block) {
    auto kernels = block.initEvents().initKernels();
    kernels.setRows(3);
    kernels.initStartNs().setBase(100);
    auto end = kernels.initEndNs();
    end.setOrigin(schema::Column::Origin::COLUMN_BEFORE);
    end.setBase(7);
    auto after = kernels.initCompletedNs();  // from a column that counts itself
    after.setOrigin(schema::Column::Origin::COLUMN_BEFORE);
    after.setBase(1);
  });
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->kernels.size(), 3u);
  for (const Kernel& kernel : batch->kernels) {
    EXPECT_EQ(kernel.start_ns, 100u);
    EXPECT_EQ(kernel.end_ns, 107u);
    EXPECT_EQ(kernel.completed_ns, 108u);
  }
}

// ---- definitions --------------------------------------------------------------------------------

TEST(Hostile, StringSizes) {
  const auto strings = [](uint32_t count, uint64_t each, unsigned bytes) {
    return [=](schema::Block::Builder block) {
      auto target = block.initStrings();
      target.setFirstId(2);
      target.setCount(count);
      target.initLengths().setBase(each);
      target.initBytes(bytes);
    };
  };
  EXPECT_TRUE(IsRead(0, strings(3, 2, 6)));
  EXPECT_FALSE(IsRead(0, strings(3, 2, 5)));
  EXPECT_FALSE(IsRead(0, strings(3, 2, 7)));
  EXPECT_FALSE(IsRead(0, strings(3, UINT64_MAX, 6)));
}

TEST(Hostile, IdsThatCannotBeDefined) {
  const auto define = [](uint32_t first, uint32_t count) {
    return [=](schema::Block::Builder block) {
      auto stacks = block.initStacks();
      stacks.setFirstId(first);
      stacks.setCount(count);
    };
  };
  EXPECT_FALSE(IsRead(0, define(0, 1))) << "none";
  EXPECT_FALSE(IsRead(0, define(1, 1))) << "lost";
  EXPECT_TRUE(IsRead(0, define(2, 1)));
  EXPECT_TRUE(IsRead(0, define(UINT32_MAX - 10, 10)));
  EXPECT_FALSE(IsRead(0, define(UINT32_MAX - 10, 11)));
}

TEST(Hostile, IdsAreNotDefinedTwice) {
  std::vector<std::string> blocks;
  for (uint32_t first : {2, 12, 11, 22}) {
    capnp::MallocMessageBuilder message;
    auto strings = message.initRoot<schema::Block>().initStrings();
    strings.setFirstId(first);
    strings.setCount(10);
    const Words words = WordsOf(message);
    blocks.push_back(BlockOf(std::as_bytes(std::span(words)), blocks.size() + 1, 0));
  }
  const ReadBack back = ReadLines(FileOf(blocks));
  EXPECT_EQ(back.problems.blocks_read, 3u);
  EXPECT_EQ(back.problems.blocks_damaged, 1u);
}

// Three nodes whose callers are: the node itself or later ones (not expressible), none that exists,
// and one in a gap. Then samples with each of them, and ids of nothing.
TEST(Hostile, CallersAndIdsThatDoNotExist) {
  constexpr uint32_t kFirst = 100;
  const auto bytes = CaptureWith(5, [](schema::Block::Builder block) {
    auto stacks = block.initStacks();
    stacks.setFirstId(kFirst);
    stacks.setCount(3);
    stacks.initAddress().setBase(0x42);
    auto distances = stacks.initCallerDistance();
    distances.setOrigin(schema::Column::Origin::EARLIER_ROW);
    distances.setFirst(kFirst);     // id 0 as if it were a node
    distances.setBase(UINT64_MAX);  // then 99, 98: ids 2 and 4
    auto samples = block.initEvents().initCpuSamples();
    samples.setRows(5);
    auto stack = samples.initStack();
    stack.setOrigin(schema::Column::Origin::EARLIER_ROW);
    stack.setFirst(kFirst - 1);
    stack.setBase(1);  // 99, 100, ..., 103
  });
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->cpu_samples.size(), 5u);
  EXPECT_EQ(batch->cpu_samples[0].stack, kLostStack);
  EXPECT_EQ(batch->cpu_samples[4].stack, kLostStack);
  for (size_t i = 1; i < 4; ++i) {
    const StackId id = batch->cpu_samples[i].stack;
    EXPECT_EQ(id.value, 1 + i);  // ids of readers have no gaps
    EXPECT_EQ(StackText(reader, id), "u42;[lost]");
    EXPECT_FALSE(reader.IsLost(id));
  }
  EXPECT_EQ(reader.stack_bound(), 5u);
  EXPECT_EQ(reader.problems().references_lost, 5u);
  EXPECT_TRUE(reader.IsLost(StackId{77}));
  EXPECT_EQ(reader.Stack(StackId{77}).size(), 0u);
  EXPECT_EQ(reader.String(StringId{77}), "[lost]");
}

TEST(Hostile, StacksAreNotDeeperThanTheLimit) {
  constexpr uint32_t kNodes = 10'000;
  const auto bytes = CaptureWith(1, [](schema::Block::Builder block) {
    auto stacks = block.initStacks();
    stacks.setFirstId(2);
    stacks.setCount(kNodes);
    auto distances = stacks.initCallerDistance();
    distances.setOrigin(schema::Column::Origin::EARLIER_ROW);
    distances.setFirst(0);
    auto later = distances.initPlanes(1).init(0, kNodes);
    later[1] = 1;  // 0, 1, 1, 1, ...
    auto samples = block.initEvents().initCpuSamples();
    samples.setRows(1);
    samples.initStack().setBase(kNodes + 1);
  });
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_LE(reader.Stack(batch->cpu_samples.at(0).stack).size(), 2048u);
  EXPECT_EQ(reader.problems().references_lost, 1u);
  size_t deepest = 0;
  for (uint32_t id = 0; id < reader.stack_bound(); ++id) {
    EXPECT_LT(reader.Node(StackId{id}).caller.value, std::max(id, 1u));
    deepest = std::max(deepest, reader.Stack(StackId{id}).size());
  }
  EXPECT_EQ(deepest, 2048u);
}

// ---- columns ------------------------------------------------------------------------------------

TEST(Hostile, InstancesThatAreNotListed) {
  const auto place = [](uint64_t number) {
    return [number](schema::Block::Builder block) {
      block.initInstances(2);
      auto kernels = block.initEvents().initKernels();
      kernels.setRows(1);
      kernels.initInstance().setBase(number);
    };
  };
  EXPECT_TRUE(IsRead(1, place(0)));
  EXPECT_TRUE(IsRead(1, place(2)));
  EXPECT_FALSE(IsRead(1, place(3)));
  EXPECT_FALSE(IsRead(1, place(UINT64_MAX)));
}

TEST(Hostile, UnknownValuesOfEnumsAreKept) {
  const auto bytes = CaptureWith(1, [](schema::Block::Builder block) {
    auto events = block.initEvents().initProcessEvents();
    events.setRows(1);
    events.initKind().setBase(200);
    events.initPid().setBase(uint64_t{1} << 40);  // more bits than the field has
  });
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(static_cast<uint32_t>(batch->process_events.at(0).kind), 200u);
  EXPECT_EQ(batch->process_events.at(0).pid, 0u);
}

// ---- newer writers ------------------------------------------------------------------------------

TEST(Newer, UnknownListsAndColumnsAreSkipped) {
  static const auto lists_there = static_cast<unsigned>(kKinds + 2);
  constexpr unsigned kKernelColumns = FieldCount<Kernel>() + 3;
  const auto bytes = CaptureWith(12, [](schema::Block::Builder block) {
    auto events = capnp::AnyStruct::Builder(kj::mv(block))
                      .getPointerSection()[3]
                      .initAsAnyStruct(0, lists_there);
    auto lists = events.getPointerSection();
    lists[kKinds].initAs<schema::Kernel>().setRows(10);  // a list of ten of some new event
    size_t place = 0;
    size_t of_kernels = 0;
    EventBatch batch;
    VisitLists(batch, [&](std::string_view name, auto&) {
      if (name == "kernels") of_kernels = place;
      ++place;
    });
    auto kernels = lists[static_cast<unsigned>(of_kernels)].initAsAnyStruct(2, kKernelColumns);
    kernels.getDataSection()[0] = 2;  // rows
    auto columns = kernels.getPointerSection();
    columns[2].initAs<schema::Column>().setBase(77);                   // start_ns
    columns[kKernelColumns - 1].initAs<schema::Column>().setBase(99);  // unknown
  });
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(CountEvents(*batch), 2u);
  ASSERT_EQ(batch->kernels.size(), 2u);
  EXPECT_EQ(batch->kernels[1].start_ns, 77u);
  EXPECT_EQ(batch->kernels[1].end_ns, 0u);
  EXPECT_EQ(reader.problems().unknown_events, 10u);
  EXPECT_EQ(reader.problems().blocks_damaged, 0u);
}

TEST(Newer, OlderFilesHaveFewerColumns) {
  const auto bytes = CaptureWith(1, [](schema::Block::Builder block) {
    auto events =
        capnp::AnyStruct::Builder(kj::mv(block)).getPointerSection()[3].initAsAnyStruct(0, 2);
    auto info = events.getPointerSection()[0].initAsAnyStruct(1, 1);
    info.getDataSection()[0] = 1;
    info.getPointerSection()[0].initAs<schema::Column>().setBase(5);
  });
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->recording_info.size(), 1u);
  EXPECT_EQ(batch->recording_info[0].start_ns, 5u);
  EXPECT_EQ(batch->recording_info[0].cpu_count, 0u);
}

TEST(Newer, BlocksOfANewerGenerationAreSkipped) {
  const std::string payload = Zstd("");
  const auto bytes = FileOf({RawBlock({.capture_id = kCaptureId,
                                       .sequence = 1,
                                       .events = 3,
                                       .generation = kReaderGeneration + 1,
                                       .stored_bytes = static_cast<uint32_t>(payload.size()),
                                       .payload_checksum = Xxh3(payload)},
                                      payload)});
  const ReadBack back = ReadLines(bytes);
  EXPECT_EQ(back.problems.unknown_events, 3u);
  EXPECT_EQ(back.problems.blocks_damaged, 0u);
}

// ---- after the checksums -----------------------------------------------------------------------

// Every byte of a message flipped, each in one of three ways, with checksums made for it.
TEST(Hostile, FlipInEveryByteOfAMessage) {
  const FilledFile file = FilledCapture(1, 2);
  const auto header = ParseBlockHeader(std::span(file.bytes).subspan(file.ends[0]));
  ASSERT_TRUE(header.has_value());
  BlockDecoder decoder;
  const auto message =
      decoder.Decode(*header, std::span(file.bytes).subspan(file.ends[0] + kBlockHeaderBytes));
  ASSERT_TRUE(message.has_value());
  std::vector<uint64_t> words(message->size() / 8);
  std::copy(message->begin(), message->end(), std::as_writable_bytes(std::span(words)).begin());
  const auto bytes = std::as_writable_bytes(std::span(words));
  for (size_t i = 0; i < bytes.size(); i += kStep) {
    SCOPED_TRACE(i);
    const std::byte bits = std::array{std::byte{0x01}, std::byte{0x40}, std::byte{0xff}}[i % 3];
    bytes[i] ^= bits;
    const auto content = DecodeMessage(bytes, header->events);
    bytes[i] ^= bits;
    EXPECT_TRUE(!content || CountEvents(content->events) <= header->events);
  }
}

TEST(Hostile, MessagesThatAreNone) {
  for (size_t size : {0, 8, 16, 64, 4096}) {
    for (int byte : {0x00, 0x01, 0x7f, 0xff}) {
      const std::vector<std::byte> content(size, static_cast<std::byte>(byte));
      std::vector<uint64_t> words(size / 8);
      std::copy(content.begin(), content.end(), std::as_writable_bytes(std::span(words)).begin());
      const auto decoded = DecodeMessage(std::as_bytes(std::span(words)), 100);
      EXPECT_TRUE(!decoded || CountEvents(decoded->events) == 0);
    }
  }
}

}  // namespace
}  // namespace xpu::test
