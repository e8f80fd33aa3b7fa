#include "symbolize/unwind/cfi_section.h"

#include <algorithm>

#include <elf.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/symbolize/cfi_builder.h"

namespace xpu {
namespace {

using test::BuildTable;
using test::CfiBuilder;
using test::CfiElf;
using test::Sleb;
using test::U16;
using test::U32;
using test::U64;
using test::U8;
using test::Uleb;

constexpr UnwindRule kRsp16{.cfa = UnwindCfa::kRsp, .cfa_offset = 16};
const std::string kSixteen = "\x0e\x10";  // DW_CFA_def_cfa_offset 16

void ExpectFunction(const Result<UnwindTableBytes>& built, uint64_t begin, uint64_t size) {
  ASSERT_TRUE(built.ok()) << built.error().message;
  const UnwindTable table = built.value().view();
  EXPECT_EQ(table.Find(CfiElf::kText + begin - 1), UnwindRule{});
  EXPECT_EQ(table.Find(CfiElf::kText + begin), kRsp16);
  EXPECT_EQ(table.Find(CfiElf::kText + begin + size - 1), kRsp16);
  EXPECT_EQ(table.Find(CfiElf::kText + begin + size), UnwindRule{});
}

TEST(CfiSection, LengthsOfEightBytes) {
  for (const bool is_eh_frame : {true, false}) {
    CfiBuilder frames(is_eh_frame);
    frames.Wide().Cie(CfiBuilder::UsualCie(), is_eh_frame ? "zR" : "");
    frames.Fde(0x100, 0x80, kSixteen);
    ExpectFunction(BuildTable(frames), 0x100, 0x80);
  }
}

TEST(CfiSection, DebugFrameWhereThereIsNoEhFrame) {
  for (const int version : {1, 3, 4}) {
    CfiBuilder frames(false);
    frames.Raw(std::string(8, '\0'));
    frames.Cie(CfiBuilder::UsualCie(), "", "", version);
    frames.Fde(0x100, 0x80, kSixteen);
    ExpectFunction(BuildTable(frames), 0x100, 0x80);
  }
}

// A program compiled without .eh_frame, linked with startup files that have it.
TEST(CfiSection, DebugFrameBesideEhFrame) {
  CfiBuilder eh_frame;
  eh_frame.Cie();
  eh_frame.Fde(0x100, 0x80, kSixteen);
  CfiBuilder debug_frame(false);
  debug_frame.Cie(CfiBuilder::UsualCie(), "");
  debug_frame.Fde(0x100, 0x80).Fde(0x200, 0x80, "\x0e\x18");
  CfiElf elf{.content = eh_frame.bytes()};
  elf.debug_frame = debug_frame.bytes();
  const auto built = BuildTable(elf.Build());
  ExpectFunction(built, 0x100, 0x80);
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x200).cfa_offset, 24);
}

// As assemblers may write it: the CIE after its FDE.
TEST(CfiSection, ACieAfterItsFunctions) {
  CfiBuilder cie(false);
  cie.Cie(CfiBuilder::UsualCie(), "");
  const std::string cie_bytes = cie.bytes();
  const std::string body =
      U32(28) + U64(CfiElf::kText + 0x100) + U64(0x80) + kSixteen + U8(0) + U8(0);
  CfiBuilder frames(false);
  frames.Raw(U32(body.size()) + body + cie_bytes);
  ASSERT_EQ(body.size(), 24u);
  ExpectFunction(BuildTable(frames), 0x100, 0x80);
}

std::string Compressed(uint32_t type, uint64_t size_bytes, const std::string& content) {
  return U32(type) + U32(0) + U64(size_bytes) + U64(8) + content;
}

std::string Zlib(const std::string& content) {
  std::string made(::compressBound(content.size()), 0);
  uLongf size = made.size();
  ::compress(reinterpret_cast<Bytef*>(made.data()), &size,
             reinterpret_cast<const Bytef*>(content.data()), content.size());
  return made.substr(0, size);
}

std::string Zstd(const std::string& content) {
  std::string made(ZSTD_compressBound(content.size()), 0);
  return made.substr(0, ZSTD_compress(made.data(), made.size(), content.data(), content.size(), 1));
}

TEST(CfiSection, CompressedDebugFrames) {
  constexpr uint32_t kZstd = 2;
  CfiBuilder frames(false);
  frames.Cie(CfiBuilder::UsualCie(), "");
  frames.Fde(0x100, 0x80, kSixteen);
  const std::string& plain = frames.bytes();
  CfiElf elf{.name = ".debug_frame", .content = {}};
  elf.section_flags = SHF_COMPRESSED;
  elf.content = Compressed(ELFCOMPRESS_ZLIB, plain.size(), Zlib(plain));
  ExpectFunction(BuildTable(elf.Build()), 0x100, 0x80);
  elf.content = Compressed(kZstd, plain.size(), Zstd(plain));
  ExpectFunction(BuildTable(elf.Build()), 0x100, 0x80);
  elf.section_flags = 0;
  elf.name = ".zdebug_frame";
  std::string size = U64(plain.size());
  std::reverse(size.begin(), size.end());
  elf.content = "ZLIB" + size + Zlib(plain);
  ExpectFunction(BuildTable(elf.Build()), 0x100, 0x80);
}

TEST(CfiSection, CompressedDebugFramesThatCannotBeInflated) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x80, kSixteen);
  const std::string zeros(1 << 20, 0);
  // Damaged, cut, of another kind, of another size, a bomb.
  for (const std::string& content :
       {Compressed(ELFCOMPRESS_ZLIB, 64, "no stream"), std::string("short"),
        Compressed(77, 8, "whatever"), Compressed(ELFCOMPRESS_ZLIB, 9, Zlib("four")),
        Compressed(ELFCOMPRESS_ZLIB, zeros.size(), Zlib(zeros)),
        Compressed(2, uint64_t{1} << 60, Zstd(zeros))}) {
    CfiElf alone{.name = ".debug_frame", .content = content};
    alone.section_flags = SHF_COMPRESSED;
    EXPECT_EQ(BuildTable(alone.Build()).error().message,
              ".debug_frame is compressed and cannot be inflated");
    EXPECT_EQ(BuildTable(alone.Build()).error().kind, ErrorKind::kUnsupported);
    CfiElf beside{.content = frames.bytes(), .debug_frame = content};
    beside.debug_frame_flags = SHF_COMPRESSED;
    UnwindStats stats;
    ExpectFunction(BuildTable(beside.Build(), &stats), 0x100, 0x80);
    EXPECT_EQ(stats.problem, ".debug_frame is compressed and cannot be inflated");
  }
}

TEST(CfiSection, DebugFrameOfASeparateFile) {
  CfiBuilder frames(false);
  frames.Cie(CfiBuilder::UsualCie(), "");
  frames.Fde(0x100, 0x80, kSixteen);
  const CfiElf separate{.name = ".debug_frame", .content = frames.bytes()};
  // A file of CfiElf always has the section, be it empty.
  std::string file = CfiElf{.name = ".text", .content = "nothing here"}.Build();
  file.replace(file.find(".debug_frame"), 12, ".other_frame");
  const std::string debug_file = separate.Build();
  const auto image = ElfImage::Parse(std::as_bytes(std::span(file)), "file");
  const auto debug = ElfImage::Parse(std::as_bytes(std::span(debug_file)), "debug");
  EXPECT_FALSE(HasDebugFrame(image.value()));
  EXPECT_TRUE(HasDebugFrame(debug.value()));
  ExpectFunction(BuildUnwindTable(image.value(), nullptr, &debug.value()), 0x100, 0x80);
}

TEST(CfiSection, ThroughTheHeaderWithoutSectionNames) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x80, kSixteen).Raw(U32(0));
  CfiElf elf{.content = frames.bytes(), .with_sections = false, .with_header = true};
  ExpectFunction(BuildTable(elf.Build()), 0x100, 0x80);
  // The zero is the end: what follows in the segment is something else.
  frames.Fde(0x300, 0x80, kSixteen);
  elf.content = frames.bytes();
  EXPECT_EQ(BuildTable(elf.Build()).value().view().Find(CfiElf::kText + 0x300), UnwindRule{});
  elf.with_header = false;
  EXPECT_EQ(BuildTable(elf.Build()).error().kind, ErrorKind::kNotFound);
}

TEST(CfiSection, AZeroBetweenEntries) {
  CfiBuilder frames;
  frames.Cie();
  frames.Raw(U32(0)).Fde(0x100, 0x80, kSixteen);
  ExpectFunction(BuildTable(frames), 0x100, 0x80);
}

TEST(CfiSection, TwoCies) {
  CfiBuilder frames;
  frames.Cie("\x0c\x07\x18\x90\x01");
  frames.Fde(0x200, 0x10);
  frames.Cie();
  frames.Fde(0x100, 0x10);
  const auto built = BuildTable(frames);
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x100).cfa_offset, 8);
  EXPECT_EQ(built.value().view().Find(CfiElf::kText + 0x200).cfa_offset, 24);
}

// How an address may be written, and what stands for CfiElf::kText + 0x100 with it.
struct Encoding {
  uint8_t encoding;
  bool is_relative;
  std::string (*write)(uint64_t);
  std::string size;
};

TEST(CfiSection, PointerEncodings) {
  const Encoding encodings[] = {
      {0x00, false, U64, U64(0x80)},
      {0x01, false, Uleb, Uleb(0x80)},
      {0x03, false, U32, U32(0x80)},
      {0x04, false, U64, U64(0x80)},
      {0x0b, false, U32, U32(0x80)},
      {0x0c, false, U64, U64(0x80)},
      {0x10, true, U64, U64(0x80)},
      {0x14, true, U64, U64(0x80)},
      {0x1b, true, U32, U32(0x80)},
      {0x1c, true, U64, U64(0x80)},
      {0x09, false, [](uint64_t value) { return Sleb(static_cast<int64_t>(value)); }, Uleb(0x80)},
      {0x19, true, [](uint64_t value) { return Sleb(static_cast<int64_t>(value)); }, Uleb(0x80)},
  };
  for (const Encoding& each : encodings) {
    SCOPED_TRACE(static_cast<int>(each.encoding));
    CfiBuilder frames;
    frames.Cie(CfiBuilder::UsualCie(), "zR", U8(each.encoding));
    const uint64_t base = each.is_relative ? frames.AddressOf(8) : 0;
    frames.RawFde(each.write(CfiElf::kText + 0x100 - base) + each.size + Uleb(0), kSixteen);
    ExpectFunction(BuildTable(frames), 0x100, 0x80);
  }
}

TEST(CfiSection, AddressesOfTwoBytes) {
  for (const uint8_t encoding : {0x02, 0x0a}) {
    CfiBuilder frames;
    frames.Cie(CfiBuilder::UsualCie(), "zR", U8(encoding));
    frames.RawFde(U16(0x1100) + U16(0x80) + Uleb(0), kSixteen);
    CfiElf elf{.content = frames.bytes()};
    std::string file = elf.Build();
    // The text at 0x1000.
    const uint64_t address = 0x1000;
    file.replace(sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr), 8, U64(address));
    const auto built = BuildTable(file);
    ASSERT_TRUE(built.ok());
    EXPECT_EQ(built.value().view().Find(0x1100), kRsp16);
    EXPECT_EQ(built.value().view().Find(0x1180), UnwindRule{});
  }
}

TEST(CfiSection, PointersThatAreRefused) {
  // Indirect, relative to text, data, function, aligned; a size that does not exist; none at all.
  for (const int encoding : {0x9b, 0x2b, 0x3b, 0x4b, 0x50, 0x0d, 0xff}) {
    CfiBuilder frames;
    frames.Cie(CfiBuilder::UsualCie(), "zR", U8(static_cast<uint64_t>(encoding)));
    frames.Fde(0x100, 0x80);
    UnwindStats stats;
    EXPECT_EQ(BuildTable(frames, &stats).error().kind, ErrorKind::kNotFound) << encoding;
    EXPECT_EQ(stats.invalid, 1u);
  }
}

TEST(CfiSection, Augmentations) {
  struct Case {
    std::string letters, data;
  };
  const Case cases[] = {
      {"zR", U8(0x1b)},
      {"zPLR", U8(0x9b) + U32(1) + U8(0x1b) + U8(0x1b)},
      {"zPR", U8(0xff) + U8(0x1b)},
      {"zRB", U8(0x1b)},
      {"zRG", U8(0x1b)},
      {"zRx", U8(0x1b) + U32(7)},  // not known, but its size is
  };
  for (const Case& each : cases) {
    CfiBuilder frames;
    frames.Cie(CfiBuilder::UsualCie(), each.letters, each.data);
    frames.Fde(0x100, 0x80, kSixteen);
    SCOPED_TRACE(each.letters);
    ExpectFunction(BuildTable(frames), 0x100, 0x80);
  }
  for (const char* letters : {"eh", "R", "x"}) {  // nobody can tell where the instructions begin
    CfiBuilder frames;
    frames.Cie(CfiBuilder::UsualCie(), letters);
    frames.Fde(0x100, 0x80);
    EXPECT_FALSE(BuildTable(frames).ok()) << letters;
  }
}

TEST(CfiSection, CiesThatAreRefused) {
  for (const int version : {0, 2, 5}) {
    CfiBuilder frames;
    frames.Cie(CfiBuilder::UsualCie(), "zR", U8(0x1b), version);
    frames.Fde(0x100, 0x80);
    UnwindStats stats;
    EXPECT_FALSE(BuildTable(frames, &stats).ok()) << version;
    EXPECT_EQ(stats.invalid, 2u);  // the CIE and its function
  }
}

// Only the beginning of an entry is a CIE, whatever the bytes inside look like.
TEST(CfiSection, ACieInsideOfAnotherEntry) {
  CfiBuilder inner;
  inner.Cie();
  CfiBuilder frames;
  frames.Entry(false, std::string(4, '\0') + inner.bytes());
  frames.Entry(false, std::string(4, '\0'));
  CfiSection section{.bytes = std::as_bytes(std::span(frames.bytes()))};
  const CfiEntries entries = ReadEntries(section);
  EXPECT_EQ(entries.cies.size(), 0u);
  EXPECT_EQ(entries.fdes.size(), 0u);
  EXPECT_EQ(entries.invalid, 2u);
}

TEST(CfiSection, ALengthThatLeadsOutEndsTheSection) {
  CfiBuilder frames;
  frames.Cie();
  frames.Fde(0x100, 0x80, kSixteen).Raw(U32(0x1000) + U32(1) + std::string(40, '\0'));
  UnwindStats stats;
  ExpectFunction(BuildTable(frames, &stats), 0x100, 0x80);
  EXPECT_EQ(stats.invalid, 1u);
}

}  // namespace
}  // namespace xpu
