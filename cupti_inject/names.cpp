#include "cupti_inject/names.h"

#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

// Multiply and fold, eight bytes at a time. Equal hashes are compared by content, so it need only
// spread.
uint64_t HashOf(const char* text, size_t bytes) {
  uint64_t hash = bytes + 0x9e3779b97f4a7c15;
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text + at, bytes - at < 8 ? bytes - at : 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

bool NameTable::Open() {
  entries_ = static_cast<Entry*>(MapZeroed(kSlots * sizeof(Entry)));
  return entries_ != nullptr;
}

void NameTable::Close() {
  if (entries_ != nullptr) munmap(entries_, kSlots * sizeof(Entry));
  for (size_t i = 0; i < piece_count_; ++i) munmap(pieces_[i], kPieceBytes);
  entries_ = nullptr;
  piece_count_ = 0;
}

uint32_t NameTable::IdOf(const char* text, SendName send, void* context, bool* lost) {
  *lost = false;
  if (text == nullptr) return 0;
  const size_t bytes = strnlen(text, wire::kMaxNameBytes);
  Entry* entry = FindOrAdd(text, bytes);
  if (entry != nullptr && !entry->sent) entry->sent = send(context, entry->id, text, bytes);
  *lost = entry == nullptr || !entry->sent;
  return *lost ? 0 : entry->id;
}

// nullptr: no memory, or enough of it is in use.
const char* NameTable::Keep(const char* text, size_t bytes) {
  static_assert(kPieceBytes >= wire::kMaxNameBytes);
  if (piece_count_ == 0 || kPieceBytes - used_bytes_ < bytes) {
    void* piece = piece_count_ == kPieces ? nullptr : MapZeroed(kPieceBytes);
    if (piece == nullptr) return nullptr;
    pieces_[piece_count_++] = static_cast<char*>(piece);
    used_bytes_ = 0;
  }
  char* kept = pieces_[piece_count_ - 1] + used_bytes_;
  std::memcpy(kept, text, bytes);
  used_bytes_ += bytes;
  return kept;
}

NameTable::Entry* NameTable::FindOrAdd(const char* text, size_t bytes) {
  const uint64_t hash = HashOf(text, bytes);
  for (size_t slot = hash & (kSlots - 1);; slot = (slot + 1) & (kSlots - 1)) {
    Entry& entry = entries_[slot];
    if (entry.id == 0) {
      const char* kept = count_ == kMaxNames ? nullptr : Keep(text, bytes);
      if (kept == nullptr) return nullptr;
      entry = {hash, ++count_, static_cast<uint32_t>(bytes), kept, false};
      return &entry;
    }
    if (entry.hash == hash && entry.bytes == bytes && std::memcmp(entry.text, text, bytes) == 0) {
      return &entry;
    }
  }
}

}  // namespace xpu::inject
