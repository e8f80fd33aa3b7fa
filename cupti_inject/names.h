// Names of kernels and devices as ids: each text is sent once per process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/wire.h"

namespace xpu::inject {

// By content: CUPTI frees names after the buffer that held them, and reuses their addresses. Memory
// is our own, for texts mapped as they come; when there is no more, new names get no id. One thread
// at a time.
class NameTable {
 public:
  static constexpr size_t kMaxNames = 48 << 10;
  static constexpr size_t kTextBytes = size_t{32} << 20;

  // Called with the text to define as `id`; false: it could not be sent, the next use tries again.
  using SendName = bool (*)(void* context, uint32_t id, const char* text, size_t bytes);

  bool Open();
  void Close();

  // The id of `text`, cut at wire::kMaxNameBytes; 0: there is none, because the table is full or
  // the definition was not sent. `text` of nullptr is 0 without a loss; `*lost` is set otherwise.
  uint32_t IdOf(const char* text, SendName send, void* context, bool* lost);

 private:
  struct Entry {
    uint64_t hash;
    uint32_t id;  // 0: free
    uint32_t bytes;
    const char* text;
    bool sent;
  };
  static constexpr size_t kSlots = 64 << 10;  // a power of two, at most 3/4 used

  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr size_t kPieces = kTextBytes / kPieceBytes;

  Entry* FindOrAdd(const char* text, size_t bytes);
  const char* Keep(const char* text, size_t bytes);

  Entry* entries_ = nullptr;
  char* pieces_[kPieces] = {};
  size_t piece_count_ = 0;
  size_t used_bytes_ = 0;  // of the last piece
  uint32_t count_ = 0;
};

}  // namespace xpu::inject
