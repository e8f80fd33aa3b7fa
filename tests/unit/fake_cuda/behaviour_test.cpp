// How the real CUPTI behaves, as its captures show, and the simulated one like it: when and where
// buffers come and go, threads, correlation ids, clocks.
#include <algorithm>
#include <regex>
#include <set>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "cupti.h"
#include "recordings.h"
#include "views.h"

namespace xpu::fake_cuda_test {
namespace {

using cupti_raw::Buffer;
using cupti_raw::Capture;
using cupti_raw::Entry;
using cupti_raw::EntryType;

// ---- when and where buffers come and go --------------------------------------------------------

std::set<uint32_t> Completers(const Capture& capture) {
  std::set<uint32_t> threads;
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kBufferCompleted) threads.insert(entry.tid);
  }
  return threads;
}

std::set<uint32_t> Callers(const Capture& capture) {
  std::set<uint32_t> threads;
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kApiCallback) threads.insert(entry.tid);
  }
  return threads;
}

std::set<uint32_t> StreamsIn(const Buffer& buffer) {
  std::set<uint32_t> streams;
  for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
    const auto record = buffer.Record(i);
    if (FieldOf<uint32_t>(record, 0) == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      streams.insert(FieldOf<uint32_t>(record, cupti_raw::record_offset::kKernelStreamId));
    }
  }
  return streams;
}

void ExpectOneBufferPerThread(const Capture& capture) {
  EXPECT_EQ(Completers(capture).size(), 1U) << "one thread hands all buffers back";
  const std::set<uint32_t> callers = Callers(capture);
  EXPECT_FALSE(callers.contains(*Completers(capture).begin())) << "and it is none of the program's";
  uint64_t with_kernels = 0;
  for (const Buffer& buffer : capture.buffers) {
    EXPECT_EQ(buffer.info.context_pointer, 0U);
    const std::set<uint32_t> streams = StreamsIn(buffer);
    EXPECT_LE(streams.size(), 1U) << "each thread of this program has its own stream";
    if (streams.empty()) continue;
    ++with_kernels;
    EXPECT_TRUE(callers.contains(buffer.info.stream_id)) << "the thread's id, not a stream";
  }
  EXPECT_EQ(with_kernels, 3U);
}

TEST(Delivery, OneBufferPerThreadFromAnotherThread) {
  ExpectOneBufferPerThread(LoadReal("transformer_threads"));
  ExpectOneBufferPerThread(RecordOne(With(kTransformer, {"--threads", "3"})));
}

// How many buffers came before the only flush.
uint64_t BuffersBeforeFlush(const Capture& capture) {
  uint64_t before = 0;
  uint64_t flush_ns = 0;
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kFlush) flush_ns = entry.monotonic_ns;
  }
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kBufferCompleted && entry.monotonic_ns < flush_ns) ++before;
  }
  return before;
}

TEST(Delivery, BufferOfAThreadThatEndsComesWithoutFlush) {
  const Strings never = {"CUPTI_RAW_FLUSH_MS=0"};
  EXPECT_EQ(BuffersBeforeFlush(LoadReal("transformer_threads")), 3U);
  const Strings threads_that_end = {"--threads", "3", "--linger-ms", "500"};
  EXPECT_EQ(BuffersBeforeFlush(RecordOne(With(kTransformer, threads_that_end), never)), 3U);
}

bool IsKernelCalled(const Buffer& buffer, size_t index, const std::string& name) {
  const auto record = buffer.Record(index);
  if (FieldOf<uint32_t>(record, 0) != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return false;
  return buffer.strings.at(FieldOf<uint64_t>(record, cupti_raw::record_offset::kKernelName)) ==
         name;
}

struct LongKernel {
  uint64_t records = 0;  // of long_kernel; the program launches it twice
  uint64_t without_times = 0;
  uint64_t kernels_before_its_end = 0;  // handed back while the second one ran
};

// CLOCK_MONOTONIC of the end of the last long_kernel, or, where its record has none, of the last
// wait for it.
uint64_t EndOfLongKernel(const Capture& capture) {
  uint64_t end_ns = 0;
  for (const Buffer& buffer : capture.buffers) {
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      if (!IsKernelCalled(buffer, i, "_Z11long_kernely")) continue;
      const auto end = FieldOf<uint64_t>(buffer.Record(i), cupti_raw::record_offset::kKernelEnd);
      end_ns = end == 0 ? 0 : end - capture.header.realtime_ns + capture.header.monotonic_ns;
    }
  }
  if (end_ns != 0) return end_ns;
  for (const Entry& entry : capture.entries) {
    constexpr uint32_t kStreamSynchronize = 131;
    if (entry.type == EntryType::kApiCallback && entry.api.domain == 2 &&
        entry.api.cbid == kStreamSynchronize) {
      end_ns = entry.monotonic_ns;
    }
  }
  return end_ns;
}

LongKernel LookForLongKernel(const Capture& capture) {
  LongKernel found;
  const uint64_t end_ns = EndOfLongKernel(capture);
  for (const Entry& entry : capture.entries) {
    if (entry.type != EntryType::kBufferCompleted) continue;
    const Buffer& buffer = capture.buffers[entry.buffer_index];
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      const auto record = buffer.Record(i);
      if (FieldOf<uint32_t>(record, 0) != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
      if (entry.monotonic_ns < end_ns) ++found.kernels_before_its_end;
      if (!IsKernelCalled(buffer, i, "_Z11long_kernely")) continue;
      ++found.records;
      const auto start = FieldOf<uint64_t>(record, cupti_raw::record_offset::kKernelStart);
      const auto end = FieldOf<uint64_t>(record, cupti_raw::record_offset::kKernelEnd);
      if (start == 0 && end == 0) ++found.without_times;
    }
  }
  return found;
}

TEST(Delivery, BuffersWaitForTheirUnfinishedRecords) {
  for (const Capture& capture :
       {LoadReal("in_flight"), LoadReal("in_flight_small_buffers"),
        RecordOne({"long_kernel", "--long-ms", "600", "--launches", "12"})}) {
    const LongKernel found = LookForLongKernel(capture);
    EXPECT_EQ(found.records, 2U);
    EXPECT_EQ(found.without_times, 0U);
    EXPECT_EQ(found.kernels_before_its_end, 0U) << "several flushes, no kernel";
  }
}

TEST(Delivery, ForcedFlushGivesUnfinishedKernelsWithoutTimesAndNeverAgain) {
  for (const Capture& capture : {LoadReal("in_flight_forced"),
                                 RecordOne({"long_kernel", "--long-ms", "600", "--launches", "12"},
                                           {"CUPTI_RAW_FORCE_AT_MS=300"})}) {
    const LongKernel found = LookForLongKernel(capture);
    EXPECT_EQ(found.records, 2U);
    EXPECT_EQ(found.without_times, 1U);
    EXPECT_GT(found.kernels_before_its_end, 10U);
  }
}

// The records of a killed or abruptly ended program are those of its last flush.
void ExpectCutShort(const Capture& capture) {
  const std::map<std::string, int> counts = RecordCounts(capture);
  EXPECT_EQ(counts.at("kind 10/0 of 216 bytes"), 50);
  EXPECT_FALSE(std::any_of(capture.entries.begin(), capture.entries.end(),
                           [](const Entry& entry) { return entry.type == EntryType::kSummary; }));
}

TEST(Exit, KilledAfterItsLastFlush) {
  int status = 0;
  ExpectCutShort(LoadReal("exit_sigkill"));
  ExpectCutShort(LoadReal("exit_underscore"));
  const std::vector<Capture> killed = RecordFake(
      {"exit_styles", "--how=sigkill", "--launches", "50", "--linger-ms", "250"}, {}, &status);
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_TRUE(WIFSIGNALED(status));
  ExpectCutShort(killed[0]);
}

// ---- what is there at the end ------------------------------------------------------------------

// The sum of all "kernels":{"name":n,...} in the line that the workload printed.
uint64_t LaunchesIn(const std::string& json) {
  uint64_t launches = 0;
  const std::regex object("\"kernels\":\\{([^}]*)\\}");
  const std::regex number(":([0-9]+)");
  for (std::sregex_iterator it(json.begin(), json.end(), object), end; it != end; ++it) {
    const std::string kernels = (*it)[1];
    for (std::sregex_iterator n(kernels.begin(), kernels.end(), number); n != end; ++n) {
      launches += std::stoull((*n)[1]);
    }
  }
  return launches;
}

class KernelCounts : public testing::TestWithParam<const char*> {};

// CUPTI lost nothing: as many kernel records as the program counted launches.
TEST_P(KernelCounts, AreTheLaunchesThatTheProgramCounted) {
  const uint64_t launches = LaunchesIn(LoadRealJson(GetParam()));
  EXPECT_GT(launches, 0U);
  EXPECT_EQ(static_cast<uint64_t>(RecordCounts(LoadReal(GetParam()))["kind 10/0 of 216 bytes"]),
            launches);
}

INSTANTIATE_TEST_SUITE_P(Captures, KernelCounts,
                         testing::Values("vector_add", "transformer_shared", "transformer_static",
                                         "transformer_threads", "transformer_api_records",
                                         "transformer_chosen_api", "transformer_default_tid",
                                         "transformer_event_time", "two_kernels_threads",
                                         "empty_launches", "graph_nodes", "driver_api", "in_flight",
                                         "in_flight_small_buffers", "in_flight_forced",
                                         "exit_return", "exit_underscore", "exit_sigkill",
                                         "subscribe_v2"));

// ---- threads, correlation ids, clocks
// ----------------------------------------------------------------

// Every record of work has the id of one outermost call: the driver callback inside a runtime call
// has that id too, so either finds it.
void ExpectIdsOfCalls(const Capture& capture, uint64_t expected_records) {
  std::set<uint32_t> driver_ids;
  std::set<uint32_t> runtime_ids;
  for (const Entry& entry : capture.entries) {
    if (entry.type != EntryType::kApiCallback) continue;
    (entry.api.domain == 1 ? driver_ids : runtime_ids).insert(entry.api.correlation_id);
  }
  const std::map<uint32_t, size_t> offsets = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, cupti_raw::record_offset::kKernelCorrelationId},
      {CUPTI_ACTIVITY_KIND_MEMCPY, cupti_raw::record_offset::kMemcpyCorrelationId},
      {CUPTI_ACTIVITY_KIND_MEMSET, cupti_raw::record_offset::kMemsetCorrelationId},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, cupti_raw::record_offset::kSyncCorrelationId}};
  uint64_t records = 0;
  for (const Buffer& buffer : capture.buffers) {
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      const auto found = offsets.find(FieldOf<uint32_t>(buffer.Record(i), 0));
      if (found == offsets.end()) continue;
      ++records;
      const auto id = FieldOf<uint32_t>(buffer.Record(i), found->second);
      EXPECT_TRUE(driver_ids.contains(id)) << id;
      EXPECT_TRUE(runtime_ids.contains(id)) << id;
    }
  }
  EXPECT_EQ(records, expected_records);
}

TEST(Correlation, RecordsHaveTheIdOfRuntimeAndDriverCallback) {
  ExpectIdsOfCalls(LoadReal("transformer_shared"), 48);
  ExpectIdsOfCalls(RecordOne(kTransformer), 48);
}

// The calls of other threads take ids too: the recorder's flusher asks for the driver's version.
void ExpectOneIdTakenElsewhere(const Capture& capture) {
  std::set<uint32_t> ids;
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kApiCallback) ids.insert(entry.api.correlation_id);
  }
  EXPECT_EQ(*ids.begin(), 1U);
  EXPECT_EQ(*ids.rbegin() - ids.size(), 1U);
}

TEST(Correlation, IdsAreConsecutiveButForCallsNobodyShows) {
  ExpectOneIdTakenElsewhere(LoadReal("transformer_shared"));
  // Long kernels, so that the flusher gets to run before the last call.
  ExpectOneIdTakenElsewhere(RecordOne({"transformer", "--requests", "2", "--kernel-us", "3000"}));
}

// Without cuptiSetThreadIdType API records have the low half of pthread_self.
void ExpectThreadIdsOfPthread(const Capture& capture) {
  std::set<uint32_t> expected;
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kThread) {
      expected.insert(static_cast<uint32_t>(entry.thread.pthread_self));
    }
  }
  uint64_t records = 0;
  for (const Buffer& buffer : capture.buffers) {
    EXPECT_TRUE(expected.contains(buffer.info.stream_id));
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      const auto kind = FieldOf<uint32_t>(buffer.Record(i), 0);
      if (kind != CUPTI_ACTIVITY_KIND_RUNTIME) continue;
      ++records;
      EXPECT_TRUE(expected.contains(
          FieldOf<uint32_t>(buffer.Record(i), cupti_raw::record_offset::kApiThreadId)));
    }
  }
  EXPECT_GT(records, 100U);
}

TEST(ThreadIds, AreOfPthreadByDefault) {
  ExpectThreadIdsOfPthread(LoadReal("transformer_default_tid"));
  ExpectThreadIdsOfPthread(
      RecordOne(With(kTransformer, {"--threads", "2"}),
                {"CUPTI_RAW_THREAD_ID=default", "CUPTI_RAW_KINDS=default,driver,runtime"}));
}

void ExpectRealtimeClock(const Capture& capture) {
  uint64_t pairs = 0;
  for (const Entry& entry : capture.entries) {
    if (entry.type != EntryType::kClockPair) continue;
    ++pairs;
    EXPECT_EQ(entry.clock_pair.result, 0);
    const auto ahead = static_cast<int64_t>(entry.clock_pair.realtime_ns) -
                       static_cast<int64_t>(entry.clock_pair.cupti_timestamp);
    EXPECT_LT(std::abs(ahead), 5'000'000) << "CLOCK_REALTIME, read just after";
  }
  EXPECT_GE(pairs, 2U);
}

TEST(Clock, IsRealtime) {
  ExpectRealtimeClock(LoadReal("in_flight"));
  ExpectRealtimeClock(RecordOne({"long_kernel", "--long-ms", "50", "--launches", "2"}));
}

}  // namespace
}  // namespace xpu::fake_cuda_test
