// Stacks of Python as the injected library sends them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cupti_inject/wire_stacks.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu {
namespace {

constexpr uint64_t Raw(uint32_t code, uint32_t offset, bool is_entry = false) {
  return uint64_t{code} << 32 | (is_entry ? wire::kPythonEntry : 0) | offset;
}

class InlinePythonTest : public test::PeerTest {
 protected:
  void SendCode(uint32_t code, std::string_view name, std::string_view path, uint32_t more = 0) {
    const std::string table = "\x80\x02";
    wire::PythonCodeMessage message{};
    message.code = code;
    message.version = 0x30c;
    message.first_line = 7;
    message.name_bytes = static_cast<uint32_t>(name.size());
    message.name_kind = 1;
    message.path_bytes = static_cast<uint32_t>(path.size());
    message.path_kind = 1;
    message.line_table_bytes = static_cast<uint32_t>(table.size()) + more;
    const std::string texts = std::string(name) + std::string(path) + table;
    ASSERT_TRUE(
        producer_.Send(wire::MessageKind::kPythonCode, message, texts.data(), texts.size()));
  }
  void SendStack(uint32_t number, const std::vector<uint64_t>& frames,
                 uint32_t stop = XPU_PYTHON_COMPLETE, uint32_t more = 0) {
    wire::PythonStackMessage message{};
    message.stack = number;
    message.frame_count = static_cast<uint32_t>(frames.size()) + more;
    message.stop = stop;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kPythonStack, message, frames.data(),
                               frames.size() * sizeof(uint64_t)));
  }
  void SendLaunch(uint32_t correlation_id, uint32_t python_stack) {
    wire::StackMessage native{};
    native.stack = 1;
    native.frame_count = 1;
    const uint64_t frame = 0x1010;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kStack, native, &frame, sizeof(frame)));
    wire::LaunchMessage message{};
    message.call.time_ns = 1000 + correlation_id;
    message.call.correlation_id = correlation_id;
    message.call.python_stack = python_stack;
    message.stack = 1;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kLaunch, message));
  }
  std::vector<PythonFrame> FramesOf(const LaunchStack& launch) {
    std::vector<PythonFrame> frames;
    for (const Frame& frame : reader_->Stack(launch.python_stack)) {
      EXPECT_EQ(frame.kind, FrameKind::kPython);
      frames.push_back(PythonFrame::OfBits(frame.address));
    }
    return frames;
  }
};

TEST_F(InlinePythonTest, LaunchesHaveTheStackThatTheyName) {
  MakePeer();
  SendCode(9, "forward", "/app/model.py");
  SendCode(4, "main", "/app/train.py");
  SendStack(1, {Raw(9, 24), Raw(4, 6, true)});
  SendLaunch(5, 1);
  SendLaunch(6, 0);
  SendLaunch(7, 1);
  peer_->Drain(*sink_);
  EXPECT_EQ(sink_->losses().total(), 0u);
  const EventBatch events = Events();
  ASSERT_EQ(events.python_codes.size(), 2u);
  EXPECT_EQ(reader_->String(events.python_codes[0].name), "forward");
  EXPECT_EQ(reader_->String(events.python_codes[1].path), "/app/train.py");
  EXPECT_EQ(reader_->String(events.python_codes[1].line_table), "\x80\x02");
  EXPECT_EQ(events.python_codes[1].first_line, 7u);
  EXPECT_EQ(events.python_codes[1].version, 0x30cu);
  ASSERT_EQ(events.launch_stacks.size(), 3u);
  const auto frames = FramesOf(events.launch_stacks[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].code, events.python_codes[0].code);
  EXPECT_EQ(frames[0].offset, 24u);
  EXPECT_FALSE(frames[0].is_entry);
  EXPECT_EQ(frames[1].code, events.python_codes[1].code);
  EXPECT_TRUE(frames[1].is_entry);
  EXPECT_FALSE(events.launch_stacks[1].python_stack);
  EXPECT_EQ(events.launch_stacks[2].python_stack, events.launch_stacks[0].python_stack);
}

TEST_F(InlinePythonTest, ALoopThatRunsNoFunctionIsNotCountedAsMissing) {
  MakePeer();
  SendCode(9, "forward", "/app/model.py");
  SendStack(1, {Raw(0, XPU_PYTHON_NO_FUNCTION, true), Raw(9, 24, true)});
  SendLaunch(5, 1);
  peer_->Drain(*sink_);
  EXPECT_EQ(sink_->losses().total(), 0u);
  const EventBatch events = Events();
  ASSERT_EQ(events.launch_stacks.size(), 1u);
  const auto frames = FramesOf(events.launch_stacks[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].code, 0u);
  EXPECT_EQ(PythonGap{frames[0].offset}, PythonGap::kNoFunction);
  EXPECT_TRUE(frames[0].is_entry);
  EXPECT_EQ(frames[1].code, events.python_codes[0].code);
}

TEST_F(InlinePythonTest, MissingStacksAreCounted) {
  MakePeer();
  SendStack(1, {Raw(3, 24, true)}, XPU_PYTHON_DEPTH);
  SendStack(2, {}, XPU_PYTHON_UNREADABLE);
  SendLaunch(5, 1);
  SendLaunch(6, 2);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kPythonCodeMissing), 1u);
  EXPECT_EQ(Lost(LossKind::kPythonCut), 1u);
  EXPECT_EQ(Lost(LossKind::kPythonUnreadable), 1u);
  const EventBatch events = Events();
  const auto first = FramesOf(events.launch_stacks.at(0));
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].code, 0u);
  EXPECT_TRUE(first[0].is_entry);
  EXPECT_EQ(first[0].offset, static_cast<uint32_t>(PythonGap::kCodeMissing));
  EXPECT_EQ(first[1].offset, static_cast<uint32_t>(PythonGap::kDepth));
  const auto second = FramesOf(events.launch_stacks.at(1));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].offset, static_cast<uint32_t>(PythonGap::kUnreadable));
}

TEST_F(InlinePythonTest, InvalidMessagesAreRefused) {
  MakePeer();
  SendCode(0, "f", "g");
  SendCode(1, "f", "g", 1000);
  SendStack(0, {Raw(1, 0)});
  SendStack(1, {Raw(1, 0)}, XPU_PYTHON_COMPLETE, 100);
  SendStack(1, std::vector<uint64_t>(XPU_MAX_PYTHON_FRAMES + 1));
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 5u);
  EXPECT_TRUE(Events().python_codes.empty());
}

TEST_F(InlinePythonTest, AStackOfOneLaunchIsNotKept) {
  MakePeer();
  SendStack(wire::kFirstSingleStack, {Raw(1, 0, true)});
  SendLaunch(5, wire::kFirstSingleStack);
  SendLaunch(6, wire::kFirstSingleStack);
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  EXPECT_TRUE(events.launch_stacks.at(0).python_stack);
  EXPECT_FALSE(events.launch_stacks.at(1).python_stack);
}

}  // namespace
}  // namespace xpu
