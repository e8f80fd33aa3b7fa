// Open files for another process.
#pragma once

#include <cstring>
#include <span>

#include <sys/socket.h>

namespace xpu {

// Sends `size` bytes in one message, with at most two descriptors beside them; does not wait.
inline bool SendWithFiles(int socket, const void* bytes, size_t size, std::span<const int> fds) {
  iovec content{.iov_base = const_cast<void*>(bytes), .iov_len = size};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

}  // namespace xpu
