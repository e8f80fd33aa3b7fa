#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cupti_raw.h"

namespace xpu::cupti_raw {
namespace {

size_t Padded(size_t size) { return (size + 7) & ~size_t{7}; }

// Takes pieces off the front of an entry's payload; once something was missing it stays failed.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <typename T>
  bool Read(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::span<const uint8_t> piece;
    if (!Take(sizeof(T), &piece)) return false;
    std::memcpy(value, piece.data(), sizeof(T));
    return true;
  }

  bool Take(uint64_t size, std::span<const uint8_t>* piece) {
    if (size > rest_.size()) return false;
    *piece = rest_.first(size);
    rest_ = rest_.subspan(size);
    return true;
  }

  bool TakePadded(uint64_t size, std::span<const uint8_t>* piece) {
    std::span<const uint8_t> padding;
    return Take(size, piece) && Take(Padded(size) - size, &padding);
  }

  bool ReadString(std::string* text) {
    const void* end = rest_.empty() ? nullptr : std::memchr(rest_.data(), 0, rest_.size());
    if (end == nullptr) return false;
    const auto length = static_cast<size_t>(static_cast<const uint8_t*>(end) - rest_.data());
    text->assign(reinterpret_cast<const char*>(rest_.data()), length);
    rest_ = rest_.subspan(length + 1);
    return true;
  }

 private:
  std::span<const uint8_t> rest_;
};

bool ParseRecordOffsets(Cursor* cursor, Buffer* buffer) {
  const BufferCompletedPayload& info = buffer->info;
  std::span<const uint8_t> piece;
  if (!cursor->TakePadded(uint64_t{info.record_count} * sizeof(uint32_t), &piece)) return false;
  buffer->record_offsets.resize(info.record_count);
  if (!piece.empty()) std::memcpy(buffer->record_offsets.data(), piece.data(), piece.size());
  for (size_t i = 0; i < buffer->record_offsets.size(); ++i) {
    const uint32_t offset = buffer->record_offsets[i];
    if (uint64_t{offset} + sizeof(uint32_t) > info.valid_size) return false;
    if (i > 0 && offset <= buffer->record_offsets[i - 1]) return false;
  }
  return true;
}

bool ParseSideTable(Cursor* cursor, Buffer* buffer) {
  for (uint32_t i = 0; i < buffer->info.side_count; ++i) {
    SideHeader side;
    std::span<const uint8_t> piece;
    if (!cursor->Read(&side) || !cursor->TakePadded(side.length, &piece)) return false;
    std::string content(piece.begin(), piece.end());
    switch (static_cast<SideKind>(side.kind)) {
      case SideKind::kString:
        buffer->strings[side.pointer] = std::move(content);
        break;
      case SideKind::kOverheadData:
        buffer->overhead_data[side.pointer] = std::move(content);
        break;
    }
  }
  return true;
}

bool ParseBuffer(Cursor* cursor, Buffer* buffer) {
  std::span<const uint8_t> piece;
  if (!cursor->Read(&buffer->info) || !ParseRecordOffsets(cursor, buffer) ||
      !ParseSideTable(cursor, buffer) || !cursor->TakePadded(buffer->info.valid_size, &piece)) {
    return false;
  }
  buffer->bytes.assign(piece.begin(), piece.end());
  return true;
}

enum class Parsed { kYes, kUnknown, kBad };

Parsed ParsePayload(Cursor cursor, Entry* entry, Capture* capture) {
  bool good = false;
  switch (entry->type) {
    case EntryType::kInfo:
      good = cursor.ReadString(&entry->key) && cursor.ReadString(&entry->text);
      if (good) capture->info[entry->key] = entry->text;
      break;
    case EntryType::kSetup:
      good = cursor.Read(&entry->setup) && cursor.ReadString(&entry->text);
      break;
    case EntryType::kApiCallback:
      good = cursor.Read(&entry->api);
      break;
    case EntryType::kResourceCallback:
      good = cursor.Read(&entry->resource);
      break;
    case EntryType::kCallbackName:
      good = cursor.Read(&entry->callback_name) && cursor.ReadString(&entry->text);
      if (good) {
        const CallbackNamePayload& name = entry->callback_name;
        capture->callback_names[{name.domain, name.cbid}] = entry->text;
      }
      break;
    case EntryType::kSymbolName:
      good = cursor.Read(&entry->symbol_name) && cursor.ReadString(&entry->text);
      if (good) capture->symbols[entry->symbol_name.pointer] = entry->text;
      break;
    case EntryType::kThread:
      good = cursor.Read(&entry->thread) && cursor.ReadString(&entry->text);
      break;
    case EntryType::kBufferRequested:
      good = cursor.Read(&entry->buffer_requested);
      break;
    case EntryType::kBufferCompleted: {
      Buffer buffer;
      good = ParseBuffer(&cursor, &buffer);
      if (good) {
        entry->buffer_index = capture->buffers.size();
        capture->buffers.push_back(std::move(buffer));
      }
      break;
    }
    case EntryType::kFlush:
      good = cursor.Read(&entry->flush);
      break;
    case EntryType::kClockPair:
      good = cursor.Read(&entry->clock_pair);
      break;
    case EntryType::kSummary:
      good = cursor.Read(&entry->summary);
      break;
    default:
      return Parsed::kUnknown;
  }
  return good ? Parsed::kYes : Parsed::kBad;
}

}  // namespace

std::span<const uint8_t> Buffer::Record(size_t index) const {
  if (index >= record_offsets.size()) return {};
  const size_t begin = record_offsets[index];
  const size_t end = index + 1 < record_offsets.size() ? record_offsets[index + 1] : bytes.size();
  return std::span<const uint8_t>(bytes).subspan(begin, end - begin);
}

bool Parse(std::span<const uint8_t> bytes, Capture* capture, std::string* error) {
  *capture = {};
  Cursor file(bytes);
  if (!file.Read(&capture->header) ||
      std::memcmp(capture->header.magic, kMagic, sizeof(kMagic)) != 0) {
    *error = "not a raw CUPTI capture (no header)";
    return false;
  }
  if (capture->header.version != kVersion) {
    *error = "raw CUPTI capture of version " + std::to_string(capture->header.version) +
             ", this reader knows version " + std::to_string(kVersion);
    return false;
  }
  EntryHeader header;
  std::span<const uint8_t> payload;
  size_t consumed = sizeof(FileHeader);
  while (consumed < bytes.size()) {
    if (!file.Read(&header) || !file.Take(header.size, &payload)) {
      capture->truncated = true;
      return true;
    }
    Entry entry{};
    entry.type = static_cast<EntryType>(header.type);
    entry.monotonic_ns = header.monotonic_ns;
    entry.tid = header.tid;
    switch (ParsePayload(Cursor(payload), &entry, capture)) {
      case Parsed::kYes:
        capture->entries.push_back(std::move(entry));
        break;
      case Parsed::kUnknown:
        ++capture->unknown_entries;
        break;
      case Parsed::kBad:
        *error = "entry at offset " + std::to_string(consumed) + " of type " +
                 std::to_string(header.type) + " contradicts itself";
        return false;
    }
    consumed += sizeof(header) + header.size;
  }
  return true;
}

bool Load(const std::string& path, Capture* capture, std::string* error) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    *error = "open " + path + ": " + std::strerror(errno);
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) {
    *error = "read " + path + ": " + std::strerror(errno);
    return false;
  }
  return Parse({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, capture, error);
}

}  // namespace xpu::cupti_raw
