// Fields of protobuf messages, one after the other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <google/protobuf/io/coded_stream.h>

#include "report/output/byte_buffer.h"

namespace xpu {

// An event of a trace has some 20 small messages. As objects of the library, which are filled,
// asked for their sizes and then written, they took three times as long.
class WireBuffer : public ByteBuffer {
 public:
  // What fits into a byte of length.
  static constexpr size_t kMostShortBytes = 127;

  void PutVarint(int field, uint64_t value) {
    PutKey(field, kVarint);
    PutNumber(value);
  }
  void PutFixed64(int field, uint64_t value) {
    PutKey(field, kFixed64);
    char* const at = Room(sizeof(value));
    google::protobuf::io::CodedOutputStream::WriteLittleEndian64ToArray(
        value, reinterpret_cast<uint8_t*>(at));
  }
  void PutDouble(int field, double value) { PutFixed64(field, std::bit_cast<uint64_t>(value)); }
  void PutBytes(int field, std::string_view bytes) {
    PutKey(field, kBytes);
    PutNumber(bytes.size());
    PutRaw(bytes);
  }
  // A message of `head`, which are whole fields, and one more field of bytes.
  void PutMessage(int field, std::string_view head, int last_field, std::string_view last) {
    PutKey(field, kBytes);
    PutNumber(head.size() + SizeOf(KeyOf(last_field, kBytes)) + SizeOf(last.size()) + last.size());
    PutRaw(head);
    PutBytes(last_field, last);
  }
  void PutRaw(std::string_view bytes) { Append(bytes); }
  // A message of at most kMostShortBytes begins; its fields are put next. Returns its place.
  size_t BeginShort(int field) {
    PutKey(field, kBytes);
    *Room(1) = 0;
    return size();
  }
  void EndShort(size_t place) { At(place - 1) = static_cast<char>(size() - place); }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

  static uint32_t KeyOf(int field, WireType type) {
    return static_cast<uint32_t>(field) << 3 | type;
  }
  static size_t SizeOf(uint64_t number) {
    return google::protobuf::io::CodedOutputStream::VarintSize64(number);
  }
  void PutKey(int field, WireType type) { PutNumber(KeyOf(field, type)); }
  void PutNumber(uint64_t value) {
    constexpr size_t kMostBytes = 10;
    auto* const begin = reinterpret_cast<uint8_t*>(Room(kMostBytes));
    EndAt(reinterpret_cast<const char*>(
        google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, begin)));
  }
};

}  // namespace xpu
