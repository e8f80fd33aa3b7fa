// The helper's end of the socket: packets to the recorder, from any thread.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include <sys/socket.h>

#include "record/gpu_metrics/metrics_packets.h"

namespace xpu::gpu_metrics {

class PacketSender {
 public:
  explicit PacketSender(int socket) : socket_(socket) {}

  // Waits while the recorder has no room. False: it is gone.
  template <typename Item>
  bool Send(PacketKind kind, std::span<const Item> items) const {
    constexpr size_t kMost = (kMaxPacketBytes - sizeof(PacketHeader)) / sizeof(Item);
    std::vector<char> bytes;
    do {
      const auto some = items.first(std::min(items.size(), kMost));
      const PacketHeader header{kind, static_cast<uint32_t>(some.size())};
      bytes.resize(sizeof(header) + some.size_bytes());
      std::memcpy(bytes.data(), &header, sizeof(header));
      if (!some.empty()) std::memcpy(bytes.data() + sizeof(header), some.data(), some.size_bytes());
      if (!SendBytes(bytes)) return false;
      items = items.subspan(some.size());
    } while (!items.empty());
    return true;
  }
  template <typename Item>
  bool SendOne(PacketKind kind, const Item& item) const {
    return Send(kind, std::span(&item, 1));
  }

 private:
  bool SendBytes(std::span<const char> bytes) const {
    while (true) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) return true;
      if (errno != EINTR) return false;
    }
  }

  const int socket_;
};

}  // namespace xpu::gpu_metrics
