// The recorder's side of an attach, in the process itself: it starts the thread that a recorder
// starts by ptrace, and takes the socket with dup where that takes it with pidfd_getfd.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cupti_inject/attach_request.h"
#include "fake_recorder.h"

namespace xpu::inject {

using AttachFunction = void* (*)(void*);

// The memory that a recorder maps into the program. The library unmaps it.
class RequestArea {
 public:
  RequestArea();
  wire::AttachRequest& request() { return *request_; }
  // On a thread of its own, as the recorder does.
  void Start(AttachFunction attach);
  // Waits; the state that is not kLoading.
  wire::AttachState WaitForAnswer();

 private:
  wire::AttachRequest* request_;
};

// What came through the ring of one session.
struct SessionRecords {
  struct Launch {
    uint64_t time_ns;
    uint32_t correlation_id;
    uint32_t tid;
  };
  struct Kernel {
    uint32_t correlation_id;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t graph_node_id;
  };
  std::vector<Launch> launches;
  std::vector<uint32_t> returned;  // correlation ids
  std::vector<Kernel> kernels;
  std::vector<uint32_t> waits;  // the calls that waited for the GPU
  std::vector<Kernel> replays;  // as intervals; their nodes are 0
  std::vector<std::string> notes;
  std::string dormant_reason;
  wire::Hello hello{};
  wire::State state{};
  uint64_t lost = 0;  // by all counters of losses
};

// A session with the library, from the request to the end.
class AttachingRecorder {
 public:
  explicit AttachingRecorder(uint32_t settings = wire::kSettingInlineStacks | wire::kSettingMayEnd |
                                                 wire::kSettingPauses | wire::kSettingGraphNodes);
  ~AttachingRecorder();
  AttachingRecorder(const AttachingRecorder&) = delete;
  AttachingRecorder& operator=(const AttachingRecorder&) = delete;

  // The libcupti to use; to be said before the connection is taken.
  void ChooseCupti(std::string path) { cupti_library_ = std::move(path); }
  // Each returns whether it worked.
  bool Take(AttachFunction attach);  // the connection
  bool ReadHello();
  bool Answer();  // with the ring
  void StartReading();
  bool WaitUntil(wire::State state);
  bool WaitForLaunches(size_t count);
  bool Begin(AttachFunction attach);  // all of it, until the library records

  void AskForEnd();      // as at the end of `-d`
  void HangUp();         // as when the recorder is killed
  bool WaitUntilLeft();  // the library has closed its end
  // All of it. What the session recorded.
  SessionRecords End();
  // What is in the ring, of a process that has ended.
  SessionRecords ReadRest();

  const std::string& error() const { return error_; }
  wire::RingHeader& header() { return ring_.header(); }

 private:
  void Read();
  void Note(const Received& message);

  TestRing ring_;
  UniqueFd arena_;
  UniqueFd socket_;
  std::string cupti_library_;
  std::string error_;
  std::atomic<bool> stop_{false};
  std::atomic<size_t> launches_{0};
  std::thread reader_;
  SessionRecords records_;
};

}  // namespace xpu::inject
