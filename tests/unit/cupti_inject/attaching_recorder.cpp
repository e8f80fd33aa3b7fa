#include "attaching_recorder.h"

#include <chrono>
#include <new>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/wire_stacks.h"

namespace xpu::inject {
namespace {

constexpr size_t kAreaBytes = 64 << 10;
constexpr size_t kArenaBytes = 64 << 10;
constexpr auto kPatience = std::chrono::seconds(60);

template <typename IsDone>
bool WaitFor(IsDone&& is_done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!is_done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

bool WaitReadable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, std::chrono::milliseconds(kPatience).count()) == 1;
}

}  // namespace

RequestArea::RequestArea() {
  void* area =
      mmap(nullptr, kAreaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  request_ = new (area) wire::AttachRequest{};
  request_->version = wire::kAttachVersion;
  request_->socket.store(-1);
  request_->area_start = reinterpret_cast<uint64_t>(area);
  request_->area_bytes = kAreaBytes;
  request_->session = FakeRecorder::kSession;
}

void RequestArea::Start(AttachFunction attach) {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, attach, request_), 0);
}

wire::AttachState RequestArea::WaitForAnswer() {
  WaitFor([&] { return request_->state.load() != wire::AttachState::kLoading; });
  return request_->state.load();
}

AttachingRecorder::AttachingRecorder(uint32_t settings)
    : ring_(64 << 20), arena_(memfd_create("test-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  ring_.header().settings = settings;
  EXPECT_EQ(ftruncate(arena_.get(), kArenaBytes), 0);
  EXPECT_EQ(fcntl(arena_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
}

AttachingRecorder::~AttachingRecorder() {
  stop_ = true;
  if (reader_.joinable()) reader_.join();
}

bool AttachingRecorder::Take(AttachFunction attach) {
  RequestArea area;
  wire::AttachRequest& request = area.request();
  cupti_library_.copy(request.cupti_library, sizeof(request.cupti_library) - 1);
  area.Start(attach);
  const wire::AttachState answer = area.WaitForAnswer();
  if (answer == wire::AttachState::kOffered) {
    socket_.reset(fcntl(request.socket.load(), F_DUPFD_CLOEXEC, 0));
  } else {
    error_ = request.error;
    if (error_.empty()) error_ = "answer " + std::to_string(static_cast<uint32_t>(answer));
  }
  request.state.store(wire::AttachState::kTaken);
  return static_cast<bool>(socket_);
}

bool AttachingRecorder::ReadHello() {
  return WaitReadable(socket_.get()) && recv(socket_.get(), &records_.hello, sizeof(wire::Hello),
                                             MSG_WAITALL) == sizeof(wire::Hello);
}

bool AttachingRecorder::Answer() {
  const wire::HelloReply reply{wire::kVersion, 1, ring_.capacity_bytes(), kArenaBytes};
  const int fds[] = {ring_.memfd(), arena_.get()};
  SendReply(socket_.get(), reply, sizeof(reply), fds, 2);
  return true;
}

void AttachingRecorder::StartReading() {
  reader_ = std::thread([this] { Read(); });
}

bool AttachingRecorder::WaitUntil(wire::State state) {
  return WaitFor([&] { return ring_.header().state.load() == state; });
}

bool AttachingRecorder::WaitForLaunches(size_t count) {
  return WaitFor([&] { return launches_ >= count; });
}

bool AttachingRecorder::Begin(AttachFunction attach) {
  if (!Take(attach)) return false;
  if (!ReadHello() || !Answer()) {
    error_ = "there was no handshake";
    return false;
  }
  StartReading();
  const auto state = [this] { return ring_.header().state.load(); };
  WaitFor([&] { return state() == wire::State::kActive || state() == wire::State::kDormant; });
  if (state() == wire::State::kActive) return true;
  stop_ = true;
  reader_.join();
  error_ = "it is in state " + std::to_string(static_cast<uint32_t>(state())) + ", " +
           records_.dormant_reason;
  return false;
}

void AttachingRecorder::AskForEnd() {
  ring_.header().gate.store(wire::kGatePaused | wire::kGateEnds);
}

void AttachingRecorder::HangUp() { socket_.reset(); }

bool AttachingRecorder::WaitUntilLeft() {
  return WaitFor([&] {
    char bytes[64];  // that it sends to wake us
    const ssize_t n = recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  });
}

SessionRecords AttachingRecorder::End() {
  AskForEnd();
  EXPECT_TRUE(WaitUntilLeft());
  stop_ = true;
  reader_.join();
  return ReadRest();
}

SessionRecords AttachingRecorder::ReadRest() {
  for (const Received& message : ring_.Drain()) Note(message);
  records_.state = ring_.header().state.load();
  for (const wire::Counter counter :
       {wire::kCounterActivitiesDropped, wire::kCounterCallsDropped, wire::kCounterOthersDropped,
        wire::kCounterCuptiDropped, wire::kCounterCuptiErrors, wire::kCounterWalksDropped,
        wire::kCounterCallsLost}) {
    records_.lost += ring_.counter(counter);
  }
  EXPECT_EQ(ring_.counter(wire::kCounterMarkers), 0U);
  return std::move(records_);
}

// Until the session is over and the ring empty.
void AttachingRecorder::Read() {
  while (true) {
    const bool last = stop_.load();
    for (const Received& message : ring_.Drain()) Note(message);
    if (last) return;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

void AttachingRecorder::Note(const Received& message) {
  switch (message.kind) {
    case wire::MessageKind::kCodeFile: {
      const uint32_t file = message.As<wire::CodeFileMessage>().file;
      ring_.header().tables[file].store(wire::kTableNone);
      if (ring_.header().code_files_seen.load() <= file) {
        ring_.header().code_files_seen.store(file + 1);
      }
      break;
    }
    case wire::MessageKind::kOtherCode:
      ring_.header().other_code_answers.fetch_add(1);
      break;
    case wire::MessageKind::kLaunch: {
      const auto& call = message.As<wire::LaunchMessage>().call;
      records_.launches.push_back({call.time_ns, call.correlation_id, call.tid});
      ++launches_;
      break;
    }
    case wire::MessageKind::kStackCopy: {
      const auto& call = message.As<wire::StackCopyMessage>().call;
      records_.launches.push_back({call.time_ns, call.correlation_id, call.tid});
      ++launches_;
      break;
    }
    case wire::MessageKind::kApiCall:
      records_.returned.push_back(message.As<wire::ApiCallMessage>().correlation_id);
      break;
    case wire::MessageKind::kActivity: {
      const auto& activity = message.As<wire::ActivityMessage>();
      const auto kernel = cupti::Load<cupti::Kernel>(message.bytes.data() + sizeof(activity),
                                                     activity.record_size_bytes);
      if (kernel.kind == cupti::kKindConcurrentKernel) {
        records_.kernels.push_back(
            {kernel.correlation_id, kernel.start_ns, kernel.end_ns, kernel.graph_node_id});
      }
      const auto wait = cupti::Load<cupti::Synchronization>(message.bytes.data() + sizeof(activity),
                                                            activity.record_size_bytes);
      if (wait.kind == cupti::kKindSynchronization) records_.waits.push_back(wait.correlation_id);
      const auto replay = cupti::Load<cupti::GraphTrace>(message.bytes.data() + sizeof(activity),
                                                         activity.record_size_bytes);
      if (replay.kind == cupti::kKindGraphTrace) {
        records_.replays.push_back({replay.correlation_id, replay.start_ns, replay.end_ns, 0});
      }
      break;
    }
    case wire::MessageKind::kDetail: {
      const auto& detail = message.As<wire::DetailMessage>();
      std::string text = message.Text<wire::DetailMessage>(detail.text_bytes);
      if (detail.detail == wire::DetailKind::kNote) records_.notes.push_back(std::move(text));
      if (detail.detail == wire::DetailKind::kDormantReason) records_.dormant_reason = text;
      break;
    }
    default:
      break;
  }
}

}  // namespace xpu::inject
