// Samples of GPU code and the modules that they are in, from messages to events.
#include "record/gpu/gpu_samples.h"

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "symbolize/elf/elf_image.h"
#include "tests/unit/record/peer_testing.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

constexpr uint64_t kChecksum = 0x7e0018b8;
constexpr uint32_t kFunction = 21;

class GpuSamplesTest : public test::PeerTest {
 protected:
  void SendReason(uint32_t reason, std::string_view text) {
    wire::StallReasonMessage message{};
    message.context_id = 1;
    message.reason = reason;
    message.text_bytes = static_cast<uint32_t>(text.size());
    producer_.Send(wire::MessageKind::kStallReason, message, text.data(), text.size());
  }
  void SendFunction(uint32_t index, std::string_view text) {
    wire::GpuFunctionMessage message{};
    message.cubin_crc = kChecksum;
    message.function_index = index;
    message.text_bytes = static_cast<uint32_t>(text.size());
    producer_.Send(wire::MessageKind::kGpuFunction, message, text.data(), text.size());
  }
  void SendSamples(uint32_t index, uint64_t offset, uint32_t reason, uint32_t samples) {
    wire::GpuSamplesMessage message{};
    message.time_ns = 5;
    message.cubin_crc = kChecksum;
    message.offset = offset;
    message.context_id = 1;
    message.function_index = index;
    message.reason_count = 1;
    const wire::ReasonSamples count{reason, samples};
    producer_.Send(wire::MessageKind::kGpuSamples, message, &count, sizeof(count));
  }
  void SendCubin(const std::string& cubin, size_t begin, size_t end) {
    wire::CubinMessage message{};
    message.cubin_crc = kChecksum;
    message.cubin_bytes = cubin.size();
    message.offset = begin;
    message.piece_bytes = static_cast<uint32_t>(end - begin);
    producer_.Send(wire::MessageKind::kCubin, message, cubin.data() + begin, end - begin);
  }
  std::string Cubin() {
    return ReadFile(TestsDirectory() + "/captures/cubins/inlines.cubin").value();
  }
  EventBatch Finished() {
    peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
    return Events();
  }
};

TEST_F(GpuSamplesTest, SamplesHaveTheNamesOfFunctionAndReason) {
  MakePeer();
  SendReason(36, "smsp__pcsamp_warps_issue_stalled_wait");
  SendFunction(kFunction, "_Z9fma_chainPfi");
  SendSamples(kFunction, 0xc0, 36, 12);
  const EventBatch events = Finished();
  ASSERT_EQ(events.gpu_samples.size(), 1u);
  const GpuSample& sample = events.gpu_samples.front();
  EXPECT_EQ(Text(sample.function), "_Z9fma_chainPfi");
  EXPECT_EQ(Text(sample.stall_reason), "smsp__pcsamp_warps_issue_stalled_wait");
  EXPECT_EQ(sample.samples, 12u);
  EXPECT_EQ(sample.offset, 0xc0u);
  EXPECT_EQ(sample.cubin_crc, kChecksum);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 0u);
}

TEST_F(GpuSamplesTest, WhatWasNotDefinedIsInvalid) {
  MakePeer();
  SendSamples(kFunction, 0, 36, 1);  // no function
  SendFunction(kFunction, "f");
  SendFunction(kFunction, "g");      // again
  SendSamples(kFunction, 0, 36, 1);  // no reason
  SendCubin(Cubin(), 5, 10);         // not from the beginning
  EXPECT_TRUE(Finished().gpu_samples.empty());
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 4u);
}

TEST_F(GpuSamplesTest, CodeOfTheFunctionsThatWereHitIsStored) {
  MakePeer();
  const std::string cubin = Cubin();
  SendFunction(kFunction, "_Z9fma_chainPfi");
  SendCubin(cubin, 0, 5000);
  SendCubin(cubin, 5000, cubin.size());
  const EventBatch events = Finished();
  ASSERT_EQ(events.cubin_slices.size(), 1u);
  const std::string bytes = Text(events.cubin_slices.front().bytes);
  auto image = ElfImage::Parse(std::as_bytes(std::span(bytes)), "slice");
  ASSERT_TRUE(image.ok());
  const auto symbols = image->CodeSymbols();
  ASSERT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols.front().name, "_Z9fma_chainPfi");
  EXPECT_EQ(Lost(LossKind::kGpuCodeMissing), 0u);
}

TEST_F(GpuSamplesTest, CodeThatIsNoneIsCounted) {
  MakePeer();
  SendFunction(kFunction, "_Z9fma_chainPfi");
  SendCubin("no cubin", 0, 8);
  EXPECT_TRUE(Finished().cubin_slices.empty());
  EXPECT_EQ(Lost(LossKind::kGpuCodeMissing), 1u);
}

TEST_F(GpuSamplesTest, DroppedSamplesAreLosses) {
  MakePeer();
  wire::GpuSamplingMessage message{};
  message.period_cycles = 32;
  message.samples = 100;
  message.dropped_samples = 7;
  message.buffer_was_full = 1;
  producer_.Send(wire::MessageKind::kGpuSampling, message);
  producer_.Count(wire::kCounterSamplesDropped, 5);
  const EventBatch events = Finished();
  ASSERT_EQ(events.gpu_samplings.size(), 1u);
  EXPECT_EQ(events.gpu_samplings.front().period, 32u);
  EXPECT_EQ(Lost(LossKind::kGpuSamplesDropped), 13u);
}

TEST_F(GpuSamplesTest, AClaimIsAnsweredOnce) {
  MakePeer();
  wire::GpuClaimMessage message{};
  message.uuid[0] = 1;
  message.number = 1;
  producer_.Send(wire::MessageKind::kGpuClaim, message);
  peer_->Drain(*sink_);
  EXPECT_EQ(peer_->claimed_gpu().size(), 16u);
  EXPECT_EQ(header_->claim_answer.load(), 0u);
  peer_->AnswerClaim(true);
  EXPECT_EQ(header_->claim_answer.load(), 3u);
  EXPECT_TRUE(peer_->claimed_gpu().empty());
}

}  // namespace
}  // namespace xpu
