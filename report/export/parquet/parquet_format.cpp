#include "report/export/parquet/parquet_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

namespace xpu {
namespace {

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendZigzag(std::string& out, int64_t value) {
  AppendVarint(out, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

// A multiple of 8 values, each in `bit_width` bits, the lowest first.
template <typename Value>
void AppendPacked(std::string& out, std::span<const Value> values, int bit_width) {
  unsigned __int128 bits = 0;
  int held = 0;
  for (const Value value : values) {
    bits |= static_cast<unsigned __int128>(value) << held;
    held += bit_width;
    for (; held >= 8; held -= 8) {
      out += static_cast<char>(bits);
      bits >>= 8;
    }
  }
}

using apache::thrift::protocol::T_BOOL;
using apache::thrift::protocol::T_I32;
using apache::thrift::protocol::T_I64;
using apache::thrift::protocol::T_LIST;
using apache::thrift::protocol::T_STRING;
using apache::thrift::protocol::T_STRUCT;
using apache::thrift::transport::TMemoryBuffer;
using Protocol = apache::thrift::protocol::TCompactProtocolT<TMemoryBuffer>;

constexpr int32_t kZstd = 6;      // CompressionCodec
constexpr int32_t kUtf8 = 0;      // ConvertedType
constexpr int32_t kOptional = 1;  // FieldRepetitionType

class MetadataWriter {
 public:
  MetadataWriter() : buffer_(std::make_shared<TMemoryBuffer>()), protocol_(buffer_) {}

  std::string Bytes() const { return buffer_->getBufferAsString(); }

  template <typename Write>
  void Struct(Write&& write) {
    protocol_.writeStructBegin("");
    write();
    protocol_.writeFieldStop();
    protocol_.writeStructEnd();
  }
  template <typename Write>
  void StructField(int16_t id, Write&& write) {
    protocol_.writeFieldBegin("", T_STRUCT, id);
    Struct(write);
    protocol_.writeFieldEnd();
  }
  template <typename Items, typename Write>
  void Structs(int16_t id, const Items& items, Write&& write) {
    protocol_.writeFieldBegin("", T_LIST, id);
    protocol_.writeListBegin(T_STRUCT, static_cast<uint32_t>(items.size()));
    for (const auto& item : items) Struct([&] { write(item); });
    protocol_.writeListEnd();
    protocol_.writeFieldEnd();
  }
  void I32(int16_t id, int32_t value) {
    protocol_.writeFieldBegin("", T_I32, id);
    protocol_.writeI32(value);
    protocol_.writeFieldEnd();
  }
  void I64(int16_t id, uint64_t value) {
    protocol_.writeFieldBegin("", T_I64, id);
    protocol_.writeI64(static_cast<int64_t>(value));
    protocol_.writeFieldEnd();
  }
  void Text(int16_t id, const std::string& text) {
    protocol_.writeFieldBegin("", T_STRING, id);
    protocol_.writeString(text);
    protocol_.writeFieldEnd();
  }
  void I32s(int16_t id, const std::vector<int32_t>& values) {
    protocol_.writeFieldBegin("", T_LIST, id);
    protocol_.writeListBegin(T_I32, static_cast<uint32_t>(values.size()));
    for (const int32_t value : values) protocol_.writeI32(value);
    protocol_.writeListEnd();
    protocol_.writeFieldEnd();
  }
  void OneText(int16_t id, const std::string& text) {
    protocol_.writeFieldBegin("", T_LIST, id);
    protocol_.writeListBegin(T_STRING, 1);
    protocol_.writeString(text);
    protocol_.writeListEnd();
    protocol_.writeFieldEnd();
  }

  void Chunk(const ParquetColumn& column, const ParquetChunk& chunk);

 private:
  std::shared_ptr<TMemoryBuffer> buffer_;
  Protocol protocol_;
};

// ColumnChunk
void MetadataWriter::Chunk(const ParquetColumn& column, const ParquetChunk& chunk) {
  I64(2, chunk.offset);
  StructField(3, [&] {
    I32(1, static_cast<int32_t>(column.type));
    I32s(2, {static_cast<int32_t>(ParquetEncoding::kPlain),
             static_cast<int32_t>(ParquetEncoding::kRle), static_cast<int32_t>(chunk.encoding)});
    OneText(3, column.name);
    I32(4, kZstd);
    I64(5, chunk.rows);
    I64(6, chunk.unpacked_bytes);
    I64(7, chunk.size_bytes);
    I64(9, chunk.data_offset);
    if (chunk.data_offset != chunk.offset) I64(11, chunk.offset);
  });
}

}  // namespace

int BitWidth(uint64_t most) { return std::bit_width(most); }

void AppendFixed32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

void AppendFixed64(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

void AppendRuns(std::string& out, std::span<const uint32_t> values, int bit_width) {
  constexpr size_t kGroup = 8;
  const auto run_at = [&](size_t at) {
    size_t end = at + 1;
    while (end < values.size() && values[end] == values[at]) ++end;
    return end - at;
  };
  size_t at = 0;
  while (at < values.size()) {
    if (const size_t run = run_at(at); run >= kGroup || bit_width == 0) {
      AppendVarint(out, run << 1);
      for (int shift = 0; shift < bit_width; shift += 8) {
        out += static_cast<char>(values[at] >> shift);
      }
      at += run;
      continue;
    }
    // Groups of 8 until one begins with a run.
    size_t end = at;
    do {
      end += kGroup;
    } while (end < values.size() && run_at(end) < kGroup);
    const size_t groups = (end - at) / kGroup;
    AppendVarint(out, groups << 1 | 1);
    for (size_t group = 0; group < groups; ++group) {
      std::array<uint32_t, kGroup> packed{};
      const size_t first = at + group * kGroup;
      const size_t last = std::min(first + kGroup, values.size());
      std::copy(values.begin() + static_cast<ptrdiff_t>(first),
                values.begin() + static_cast<ptrdiff_t>(last), packed.begin());
      AppendPacked<uint32_t>(out, packed, bit_width);
    }
    at = end;
  }
}

void AppendDeltas(std::string& out, std::span<const int64_t> values) {
  constexpr size_t kBlock = 128;
  constexpr size_t kMiniBlocks = 4;
  constexpr size_t kMiniBlock = kBlock / kMiniBlocks;
  AppendVarint(out, kBlock);
  AppendVarint(out, kMiniBlocks);
  AppendVarint(out, values.size());
  AppendZigzag(out, values.empty() ? 0 : values.front());
  std::array<uint64_t, kBlock> deltas{};
  for (size_t at = 1; at < values.size(); at += kBlock) {
    const size_t count = std::min(kBlock, values.size() - at);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < count; ++i) {
      // Modulo 2^64: numbers may be as far apart as numbers can be.
      deltas[i] = static_cast<uint64_t>(values[at + i]) - static_cast<uint64_t>(values[at + i - 1]);
      least = std::min(least, static_cast<int64_t>(deltas[i]));
    }
    for (size_t i = 0; i < kBlock; ++i) {
      deltas[i] = i < count ? deltas[i] - static_cast<uint64_t>(least) : 0;
    }
    AppendZigzag(out, least);
    std::array<int, kMiniBlocks> widths{};
    for (size_t mini = 0; mini < kMiniBlocks; ++mini) {
      uint64_t all = 0;
      for (size_t i = 0; i < kMiniBlock; ++i) all |= deltas[mini * kMiniBlock + i];
      widths[mini] = BitWidth(all);
      out += static_cast<char>(widths[mini]);
    }
    // Mini-blocks without a value are left out.
    for (size_t mini = 0; mini * kMiniBlock < count; ++mini) {
      AppendPacked<uint64_t>(out, std::span(deltas).subspan(mini * kMiniBlock, kMiniBlock),
                             widths[mini]);
    }
  }
}

std::string PageHeader(const ParquetPage& page) {
  constexpr int32_t kDataPage = 0;
  constexpr int32_t kDictionaryPage = 2;
  MetadataWriter writer;
  writer.Struct([&] {
    writer.I32(1, page.is_dictionary ? kDictionaryPage : kDataPage);
    writer.I32(2, static_cast<int32_t>(page.unpacked_bytes));
    writer.I32(3, static_cast<int32_t>(page.packed_bytes));
    writer.StructField(page.is_dictionary ? 7 : 5, [&] {
      writer.I32(1, static_cast<int32_t>(page.values));
      writer.I32(2, static_cast<int32_t>(page.encoding));
      if (page.is_dictionary) return;
      writer.I32(3, static_cast<int32_t>(ParquetEncoding::kRle));
      writer.I32(4, static_cast<int32_t>(ParquetEncoding::kRle));
    });
  });
  return writer.Bytes();
}

std::string FileMetadata(const std::vector<ParquetColumn>& columns,
                         const std::vector<ParquetGroup>& groups) {
  // The root of the schema, then its columns.
  std::vector<const ParquetColumn*> schema = {nullptr};
  for (const ParquetColumn& column : columns) schema.push_back(&column);
  uint64_t rows = 0;
  for (const ParquetGroup& group : groups) rows += group.rows;
  MetadataWriter writer;
  writer.Struct([&] {
    writer.I32(1, 1);  // version
    writer.Structs(2, schema, [&](const ParquetColumn* column) {
      if (column == nullptr) {
        writer.Text(4, "table");
        writer.I32(5, static_cast<int32_t>(columns.size()));
        return;
      }
      writer.I32(1, static_cast<int32_t>(column->type));
      writer.I32(3, kOptional);
      writer.Text(4, column->name);
      if (column->type == ParquetType::kByteArray) writer.I32(6, kUtf8);
    });
    writer.I64(3, rows);
    writer.Structs(4, groups, [&](const ParquetGroup& group) {
      std::vector<size_t> places(group.chunks.size());
      uint64_t bytes = 0;
      for (size_t i = 0; i < places.size(); ++i) {
        places[i] = i;
        bytes += group.chunks[i].unpacked_bytes;
      }
      writer.Structs(1, places,
                     [&](size_t place) { writer.Chunk(columns[place], group.chunks[place]); });
      writer.I64(2, bytes);
      writer.I64(3, group.rows);
    });
    // Spark's reader parses this form.
    writer.Text(6, "xpu-report version " XPU_VERSION);
  });
  return writer.Bytes();
}

}  // namespace xpu
