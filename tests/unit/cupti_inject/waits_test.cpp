#include "cupti_inject/waits.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

using cupti::kDomainDriver;
using cupti::kDomainRuntime;
constexpr uint32_t kNone = UINT32_MAX;

WaitCalls::Call CallOf(uint32_t domain, const char* name) {
  WaitCalls calls;
  calls.Add(domain, 7, name);
  EXPECT_EQ(calls.Of(domain, 6).kind, WaitKind::kNone);
  EXPECT_EQ(calls.Of(domain == kDomainDriver ? kDomainRuntime : kDomainDriver, 7).kind,
            WaitKind::kNone);
  return calls.Of(domain, 7);
}

TEST(WaitCalls, ByName) {
  EXPECT_EQ(CallOf(kDomainDriver, "cuCtxSynchronize").kind, WaitKind::kContext);
  EXPECT_EQ(CallOf(kDomainDriver, "cuStreamSynchronize").kind, WaitKind::kStream);
  EXPECT_EQ(CallOf(kDomainDriver, "cuEventSynchronize").kind, WaitKind::kEvent);
  EXPECT_EQ(CallOf(kDomainDriver, "cuStreamWaitEvent_ptsz").kind, WaitKind::kStreamForEvent);
  EXPECT_EQ(CallOf(kDomainRuntime, "cudaDeviceSynchronize_v3020").kind, WaitKind::kContext);
  EXPECT_EQ(CallOf(kDomainRuntime, "cudaThreadSynchronize_v3020").kind, WaitKind::kContext);
  EXPECT_EQ(CallOf(kDomainRuntime, "cudaStreamSynchronize_v3020").kind, WaitKind::kStream);
  EXPECT_EQ(CallOf(kDomainRuntime, "cudaEventSynchronize_v3020").kind, WaitKind::kEvent);
  EXPECT_EQ(CallOf(kDomainRuntime, "cudaStreamWaitEvent_v3020").kind, WaitKind::kStreamForEvent);
}

TEST(WaitCalls, WhatWaitsForNothing) {
  for (const char* name : {"cuLaunchKernel", "cuStreamQuery", "cuStreamWaitValue32_v2",
                           "cuEventRecord", "cuMemcpyDtoH_v2", "synchronize", "c", ""}) {
    EXPECT_EQ(CallOf(kDomainDriver, name).kind, WaitKind::kNone) << name;
  }
  EXPECT_EQ(CallOf(kDomainRuntime, "cudaMemcpy_v3020").kind, WaitKind::kNone);
  EXPECT_EQ(CallOf(kDomainRuntime, "cu").kind, WaitKind::kNone);
  EXPECT_EQ(CallOf(kDomainRuntime, "cuStreamSynchronize").kind, WaitKind::kNone);
  WaitCalls calls;
  calls.Add(kDomainDriver, 4096, "cuCtxSynchronize");
  calls.Add(0, 7, "cuCtxSynchronize");
  calls.Add(3, 7, "cuCtxSynchronize");
  EXPECT_EQ(calls.Of(kDomainDriver, 4096).kind, WaitKind::kNone);
  EXPECT_EQ(calls.Of(0, 7).kind, WaitKind::kNone);
  EXPECT_EQ(calls.Of(3, 7).kind, WaitKind::kNone);
}

TEST(WaitCalls, WhatNamesMean) {
  EXPECT_TRUE(CallOf(kDomainRuntime, "cudaStreamSynchronize_ptsz_v7000").per_thread);
  EXPECT_TRUE(CallOf(kDomainDriver, "cuStreamSynchronize_ptsz").per_thread);
  EXPECT_FALSE(CallOf(kDomainDriver, "cuStreamSynchronize").per_thread);
  EXPECT_TRUE(CallOf(kDomainDriver, "cuCtxSynchronize_v2").names_context);
  EXPECT_FALSE(CallOf(kDomainDriver, "cuCtxSynchronize").names_context);
  EXPECT_FALSE(CallOf(kDomainRuntime, "cudaDeviceSynchronize_v3020").names_context);
}

// Contexts and streams by their addresses: a context begins at a thousand, its streams are in it.
void* Handle(uintptr_t value) { return reinterpret_cast<void*>(value); }
uintptr_t Value(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

cupti::Result Timestamp(uint64_t* timestamp) {
  *timestamp = 50'000;
  return cupti::kSuccess;
}
cupti::Result NoTimestamp(uint64_t* timestamp) {
  *timestamp = 0;
  return cupti::kSuccess;
}
cupti::Result IdOfContext(void* context, uint32_t* id) {
  *id = static_cast<uint32_t>(Value(context) / 1000);
  return cupti::kSuccess;
}
cupti::Result IdOfStream(void* context, void* stream, uint8_t per_thread, uint32_t* id) {
  if (Value(stream) > 2 && Value(stream) / 1000 != Value(context) / 1000) return 20;
  *id = static_cast<uint32_t>(Value(stream) % 1000 + (per_thread != 0 ? 500 : 0));
  return cupti::kSuccess;
}
int ContextOfStream(void* stream, void** context) {
  *context = Handle(Value(stream) / 1000 * 1000);
  return 0;
}
int RefusesStream(void* /*stream*/, void** /*context*/) { return 400; }

class WaitDescriberTest : public testing::Test {
 protected:
  WaitDescriberTest() {
    functions_.get_timestamp = &Timestamp;
    functions_.get_context_id = &IdOfContext;
    functions_.get_stream_id = &IdOfStream;
    teller_.Open(&functions_, &ContextOfStream);
  }

  // With context 1 as the current one.
  cupti::Synchronization Tell(uint32_t domain, const char* name, std::array<void*, 2> handles) {
    cupti::CallbackData data{};
    data.parameters = handles.data();
    data.return_value = &return_value_;
    data.context = Handle(1000);
    data.context_uid = 1;
    data.correlation_id = 33;
    cupti::Synchronization record;
    std::memset(&record, 0xee, sizeof(record));
    EXPECT_TRUE(teller_.Describe(data, CallOf(domain, name), 20'000, &record)) << name;
    EXPECT_EQ(record.kind, cupti::kKindSynchronization);
    EXPECT_EQ(record.start_ns, 30'000u);
    EXPECT_EQ(record.end_ns, 50'000u);
    EXPECT_EQ(record.correlation_id, 33u);
    EXPECT_EQ(record.return_value, static_cast<uint32_t>(return_value_));
    EXPECT_EQ(record.padding_52[0], 0);
    return record;
  }

  int32_t return_value_ = 0;
  cupti::Functions functions_;
  WaitDescriber teller_;
};

TEST_F(WaitDescriberTest, OfAContext) {
  const auto record = Tell(kDomainRuntime, "cudaDeviceSynchronize_v3020", {Handle(9999), nullptr});
  EXPECT_EQ(record.type, 4u);
  EXPECT_EQ(record.context_id, 1u);
  EXPECT_EQ(record.stream_id, kNone);
  EXPECT_EQ(record.event_id, kNone);
  EXPECT_EQ(record.event_sync_id, kNone);
  EXPECT_EQ(Tell(kDomainDriver, "cuCtxSynchronize_v2", {Handle(2000), nullptr}).context_id, 2u);
  EXPECT_EQ(Tell(kDomainDriver, "cuCtxSynchronize_v2", {nullptr, nullptr}).context_id, 1u);
}

TEST_F(WaitDescriberTest, OfAStream) {
  auto record = Tell(kDomainRuntime, "cudaStreamSynchronize_v3020", {Handle(1014), Handle(9999)});
  EXPECT_EQ(record.type, 3u);
  EXPECT_EQ(record.context_id, 1u);
  EXPECT_EQ(record.stream_id, 14u);
  EXPECT_EQ(record.event_id, kNone);
  record =
      Tell(kDomainDriver, "cuStreamSynchronize", {Handle(2015), nullptr});  // of another device
  EXPECT_EQ(record.context_id, 2u);
  EXPECT_EQ(record.stream_id, 15u);
  EXPECT_EQ(Tell(kDomainDriver, "cuStreamSynchronize", {nullptr, nullptr}).stream_id, 0u);
  EXPECT_EQ(Tell(kDomainDriver, "cuStreamSynchronize_ptsz", {nullptr, nullptr}).stream_id, 500u);
  EXPECT_EQ(Tell(kDomainDriver, "cuStreamSynchronize", {Handle(2), nullptr}).stream_id, 2u);
}

TEST_F(WaitDescriberTest, OfEvents) {
  auto record = Tell(kDomainDriver, "cuStreamWaitEvent", {Handle(1014), Handle(0x5550)});
  EXPECT_EQ(record.type, 2u);
  EXPECT_EQ(record.stream_id, 14u);
  EXPECT_EQ(record.event_id, 0x555u);
  record = Tell(kDomainRuntime, "cudaEventSynchronize_v3020", {Handle(0x5560), nullptr});
  EXPECT_EQ(record.type, 1u);
  EXPECT_EQ(record.context_id, 1u);
  EXPECT_EQ(record.stream_id, kNone);
  EXPECT_EQ(record.event_id, 0x556u);
}

TEST_F(WaitDescriberTest, HandlesThatWereRefusedAreNotAskedFor) {
  return_value_ = 400;
  const auto record = Tell(kDomainDriver, "cuStreamWaitEvent", {Handle(2014), Handle(0x5550)});
  EXPECT_EQ(record.context_id, 1u);
  EXPECT_EQ(record.stream_id, kNone);
  EXPECT_EQ(record.event_id, kNone);
}

TEST_F(WaitDescriberTest, DriversAndLibrariesThatReportLess) {
  teller_.Open(&functions_, &RefusesStream);
  EXPECT_EQ(Tell(kDomainDriver, "cuStreamSynchronize", {Handle(1014), nullptr}).stream_id, 14u);
  EXPECT_EQ(Tell(kDomainDriver, "cuStreamSynchronize", {Handle(2014), nullptr}).stream_id, kNone);
  functions_.get_context_id = nullptr;
  functions_.get_stream_id = nullptr;
  teller_.Open(&functions_, nullptr);
  const auto record = Tell(kDomainDriver, "cuStreamSynchronize", {Handle(1014), nullptr});
  EXPECT_EQ(record.context_id, 1u);
  EXPECT_EQ(record.stream_id, kNone);
  EXPECT_EQ(Tell(kDomainDriver, "cuCtxSynchronize_v2", {Handle(2000), nullptr}).context_id, 1u);
}

TEST_F(WaitDescriberTest, NothingWithoutATime) {
  functions_.get_timestamp = &NoTimestamp;
  cupti::Synchronization record;
  EXPECT_FALSE(teller_.Describe({}, CallOf(kDomainDriver, "cuCtxSynchronize"), 20'000, &record));
}

}  // namespace
}  // namespace xpu::inject
