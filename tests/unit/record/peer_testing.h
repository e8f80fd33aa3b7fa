// A peer whose process is this one, a producer on its ring, and the capture it writes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti_inject/ring_producer.h"
#include "format/reader.h"
#include "record/gpu/gpu_peer.h"

namespace xpu::test {

inline constexpr uint64_t kInstance = 0x1122334455667788;

class PeerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/xpu-peer-test-XXXXXX";
    UniqueFd fd(::mkstemp(name));
    ASSERT_TRUE(fd);
    path_ = name;
    auto writer = CaptureWriter::Create(std::move(fd), path_);
    ASSERT_TRUE(writer.ok());
    sink_.emplace(*std::move(writer));
    sink_->AddObserver(&processes_);
    sink_->SetLiveState(&processes_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // `pid`: what the peer is said to be.
  void MakePeer(const InlineStacks::Settings& stacks = {}, pid_t pid = 4711) {
    auto ring = RingReader::Create();
    ASSERT_TRUE(ring.ok());
    header_ = &ring->header();
    producer_.Attach(header_, ring->capacity_bytes());
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    peer_.emplace(InjectPeer{pid, 1, kInstance, std::move(pidfd), *std::move(ring)}, *sink_,
                  stacks);
  }

  uint64_t Lost(LossKind kind) { return sink_->losses().total(kind); }

  // Everything written, read back. The reader stays for its strings and stacks.
  EventBatch Events() {
    sink_->Close(RecordingEnd{});
    reader_.emplace(*CaptureReader::Open(path_));
    EventBatch all;
    while (auto batch = reader_->Next()) {
      VisitLists(all, [&](std::string_view name, auto& list) {
        VisitLists(*batch, [&](std::string_view other, auto& more) {
          if constexpr (std::is_same_v<decltype(list), decltype(more)>) {
            if (name == other) list.insert(list.end(), more.begin(), more.end());
          }
        });
      });
    }
    return all;
  }
  std::string Text(StringId id) { return std::string(reader_->String(id)); }

  std::string path_;
  ProcessTable processes_;
  std::optional<EventSink> sink_;
  wire::RingHeader* header_ = nullptr;
  inject::RingProducer producer_;
  std::optional<GpuPeer> peer_;
  std::optional<CaptureReader> reader_;
};

}  // namespace xpu::test
