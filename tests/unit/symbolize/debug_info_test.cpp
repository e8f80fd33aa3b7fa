#include "symbolize/dwarf/debug_info.h"

#include <fstream>

#include <dwarf.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "format/base/text.h"
#include "tests/unit/symbolize/dwarf_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::Abbreviation;
using test::DebugElf;
using test::EndSequence;
using test::FramesAt;
using test::LinesOf;
using test::SetAddress;
using test::SpecialOpcode;
using test::Text;
using test::U16;
using test::U32;
using test::U64;
using test::U8;
using test::Uleb;
using test::UnitOf;

std::string FramesAt(const DebugElf& elf, uint64_t link_address) {
  const std::string bytes = elf.Build();
  auto info = DebugInfo::Parse(bytes, "test");
  return info.ok() ? FramesAt(info.value(), link_address) : info.error().message;
}

// A file that the tests change: run [0x1000, 0x1100) with `outer` inlined at [0x1010, 0x1040) and
// `inner` in that at [0x1020, 0x1030), entry by entry.
struct Program {
  int version = 4;
  std::string before;  // entries before the function
  std::string within;  // entries in it, after the inlined ones
  std::string behind;  // entries after it
  std::string abbreviations;

  static constexpr uint8_t kAbstract = 2;
  static constexpr uint8_t kFunction = 3;
  static constexpr uint8_t kInlined = 4;
  static constexpr uint8_t kInlinedLeaf = 5;
  static constexpr uint8_t kUser = 6;  // the tests' own

  // Where an entry of `before` begins, counted from the unit.
  uint64_t BeforeAt() const { return (version >= 5 ? 12 : 11) + UnitEntry().size(); }

  static std::string AbstractEntry(std::string_view linkage_name) {
    return Uleb(kAbstract) + Text(linkage_name);
  }
  static std::string Code(uint64_t begin, uint64_t end) { return U64(begin) + U32(end - begin); }
  std::string UnitEntry() const {
    return Uleb(1) + Text("a.cpp") + Text("/src") + U32(0) + Code(0x1000, 0x2000);
  }

  DebugElf Build() const {
    const std::string abstract = AbstractEntry("_Z5innerv") + AbstractEntry("_Z5outerv");
    const uint64_t inner_at = BeforeAt();
    const uint64_t outer_at = inner_at + AbstractEntry("_Z5innerv").size();
    std::string entries = UnitEntry() + abstract + before;
    entries += Uleb(kFunction) + Text("_Z3runv") + Code(0x1000, 0x1100);
    entries += Uleb(kInlined) + U32(outer_at) + Code(0x1010, 0x1040) + U8(1) + U8(12);
    entries += Uleb(kInlinedLeaf) + U32(inner_at) + Code(0x1020, 0x1030) + U8(2) + U8(34);
    entries += U8(0) + within + U8(0) + behind + U8(0);
    DebugElf elf;
    elf[".debug_info"] = UnitOf(version, entries);
    elf[".debug_abbrev"] = Abbreviations();
    elf[".debug_line"] = Lines();
    return elf;
  }

  std::string Abbreviations() const {
    const test::Layout code = {{DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4}};
    const auto with_code = [&](test::Layout layout) {
      layout.insert(layout.end(), code.begin(), code.end());
      return layout;
    };
    test::Layout call = with_code({{DW_AT_abstract_origin, DW_FORM_ref4}});
    call.emplace_back(DW_AT_call_file, DW_FORM_data1);
    call.emplace_back(DW_AT_call_line, DW_FORM_data1);
    return Abbreviation(
               1, DW_TAG_compile_unit, true,
               with_code({{DW_AT_name, DW_FORM_string},
                          {DW_AT_comp_dir, DW_FORM_string},
                          {DW_AT_stmt_list, version < 4 ? DW_FORM_data4 : DW_FORM_sec_offset}})) +
           Abbreviation(kAbstract, DW_TAG_subprogram, false,
                        {{DW_AT_linkage_name, DW_FORM_string}}) +
           Abbreviation(kFunction, DW_TAG_subprogram, true,
                        with_code({{DW_AT_linkage_name, DW_FORM_string}})) +
           Abbreviation(kInlined, DW_TAG_inlined_subroutine, true, call) +
           Abbreviation(kInlinedLeaf, DW_TAG_inlined_subroutine, false, call) + abbreviations +
           U8(0);
  }

  // Lines 100, 110, 120 ... each 16 bytes; the files are 1: /src/a.cpp, 2: /inc/b.h.
  std::string Lines() const {
    std::string operations = SetAddress(0x1000) + U8(DW_LNS_advance_line) + test::Sleb(99);
    operations += U8(DW_LNS_copy);
    for (int i = 1; i < 8; ++i) {
      if (i == 2) operations += U8(DW_LNS_set_file) + Uleb(2);
      operations += U8(DW_LNS_advance_line) + test::Sleb(2) + SpecialOpcode(16, 8);
    }
    operations += EndSequence(16);
    if (version >= 5) {
      return LinesOf(5, {"/src", "/inc"}, {{"a.cpp", 0}, {"a.cpp", 0}, {"b.h", 1}}, operations);
    }
    return LinesOf(version, {"/inc"}, {{"a.cpp", 0}, {"b.h", 1}}, operations);
  }
};

TEST(DebugInfo, InlinedFunctionsAreFramesWithTheLinesOfTheirCalls) {
  for (const int version : {2, 3, 4, 5}) {
    Program program;
    program.version = version;
    const DebugElf elf = program.Build();
    EXPECT_EQ(FramesAt(elf, 0x1000), "_Z3runv /src/a.cpp:100\n") << version;
    EXPECT_EQ(FramesAt(elf, 0x100f), "_Z3runv /src/a.cpp:100\n");
    EXPECT_EQ(FramesAt(elf, 0x1010), "+_Z5outerv /src/a.cpp:110\n_Z3runv /src/a.cpp:12\n");
    EXPECT_EQ(FramesAt(elf, 0x102f),
              "+_Z5innerv /inc/b.h:120\n+_Z5outerv /inc/b.h:34\n_Z3runv /src/a.cpp:12\n");
    EXPECT_EQ(FramesAt(elf, 0x1030), "+_Z5outerv /inc/b.h:130\n_Z3runv /src/a.cpp:12\n");
    EXPECT_EQ(FramesAt(elf, 0x1040), "_Z3runv /inc/b.h:140\n");
    EXPECT_EQ(FramesAt(elf, 0x1080), "_Z3runv :0\n");  // after the last row
    EXPECT_EQ(FramesAt(elf, 0x1100), "");              // in the unit, in nothing of it
    EXPECT_EQ(FramesAt(elf, 0x2000), "");
    EXPECT_EQ(FramesAt(elf, 0xfff), "");
  }
}

TEST(DebugInfo, NamesComeFromWhatAnEntryRefersTo) {
  Program program;
  // A plain name; an instance of it; the declaration of a method with a linkage name; two entries
  // that refer to each other.
  program.abbreviations =
      Abbreviation(6, DW_TAG_subprogram, false, {{DW_AT_name, DW_FORM_string}}) +
      Abbreviation(7, DW_TAG_subprogram, false,
                   {{DW_AT_abstract_origin, DW_FORM_ref4},
                    {DW_AT_low_pc, DW_FORM_addr},
                    {DW_AT_high_pc, DW_FORM_addr}}) +
      Abbreviation(8, DW_TAG_subprogram, false,
                   {{DW_AT_specification, DW_FORM_ref4}, {DW_AT_name, DW_FORM_string}}) +
      Abbreviation(9, DW_TAG_subprogram, false,
                   {{DW_AT_name, DW_FORM_string}, {DW_AT_MIPS_linkage_name, DW_FORM_string}});
  const uint64_t plain_at = program.BeforeAt() + 2 * Program::AbstractEntry("_Z5innerv").size();
  const std::string plain = Uleb(6) + Text("plain");
  const uint64_t declared_at = plain_at + plain.size();
  const std::string declared = Uleb(9) + Text("Get") + Text("_ZN1A3GetEv");
  const uint64_t method_at = declared_at + declared.size();
  const std::string method = Uleb(8) + U32(declared_at) + Text("Other");
  const uint64_t circle_at = method_at + method.size();
  const std::string circle = Uleb(8) + U32(circle_at) + Text("circle");
  program.before = plain + declared + method + circle;
  const auto instance = [](uint64_t of, uint64_t begin) {
    return Uleb(7) + U32(of) + U64(begin) + U64(begin + 16);
  };
  program.behind = instance(plain_at, 0x1200) + instance(method_at, 0x1210) +
                   instance(circle_at, 0x1220) + instance(0xffffff, 0x1230);
  const DebugElf elf = program.Build();
  EXPECT_EQ(FramesAt(elf, 0x120f), "plain :0\n");
  EXPECT_EQ(FramesAt(elf, 0x1210), "_ZN1A3GetEv :0\n");
  EXPECT_EQ(FramesAt(elf, 0x1220), "circle :0\n");
  EXPECT_EQ(FramesAt(elf, 0x1230), " :0\n");
}

TEST(DebugInfo, AFunctionInAFunctionKeepsItsOwn) {
  Program program;
  // A local function at [0x1050, 0x1060) of the outer one, with `inner` inlined into it.
  program.within = Uleb(Program::kFunction) + Text("_Z5localv") + Program::Code(0x1050, 0x1060) +
                   Uleb(Program::kInlinedLeaf) + U32(program.BeforeAt()) +
                   Program::Code(0x1058, 0x1060) + U8(1) + U8(77) + U8(0);
  const DebugElf elf = program.Build();
  EXPECT_EQ(FramesAt(elf, 0x1050), "_Z5localv /inc/b.h:150\n");
  EXPECT_EQ(FramesAt(elf, 0x1058), "+_Z5innerv /inc/b.h:150\n_Z5localv /src/a.cpp:77\n");
  EXPECT_EQ(FramesAt(elf, 0x1060), "_Z3runv /inc/b.h:160\n");
}

TEST(DebugInfo, FunctionsThatTheLinkerDroppedHideNothing) {
  Program program;
  program.behind = Uleb(Program::kFunction) + Text("_Z4deadv") + Program::Code(0, 0x1800) + U8(0);
  EXPECT_EQ(FramesAt(program.Build(), 0x1000), "_Z3runv /src/a.cpp:100\n");
}

TEST(DebugInfo, TheFirstOfSeveralUnitsCounts) {
  Program program;
  DebugElf elf = program.Build();
  DebugElf second = program.Build();
  std::string& info = second[".debug_info"];
  info.replace(info.find("_Z3runv"), 7, "_Z3othv");
  elf[".debug_info"] += info;
  EXPECT_EQ(FramesAt(elf, 0x1000), "_Z3runv /src/a.cpp:100\n");
}

TEST(DebugInfo, RangesOfOldFiles) {
  Program program;
  program.abbreviations =
      Abbreviation(6, DW_TAG_subprogram, false,
                   {{DW_AT_name, DW_FORM_string}, {DW_AT_ranges, DW_FORM_sec_offset}});
  program.behind = Uleb(6) + Text("split") + U32(16);
  DebugElf elf = program.Build();
  // From the unit's address, then from another base, then the end.
  elf[".debug_ranges"] = U64(0) + U64(0) + U64(0x200) + U64(0x210) + U64(UINT64_MAX) + U64(0x1f00) +
                         U64(0x10) + U64(0x20) + U64(0) + U64(0) + U64(0x300) + U64(0x310);
  EXPECT_EQ(FramesAt(elf, 0x1200), "split :0\n");
  EXPECT_EQ(FramesAt(elf, 0x1210), "");
  EXPECT_EQ(FramesAt(elf, 0x1f1f), "split :0\n");
  EXPECT_EQ(FramesAt(elf, 0x1f20), "");
  EXPECT_EQ(FramesAt(elf, 0x1300), "");
}

// A unit of DWARF 5 all of whose texts, addresses and range lists are written as indices.
DebugElf IndexedProgram() {
  DebugElf elf;
  elf[".debug_abbrev"] =
      Abbreviation(1, DW_TAG_compile_unit, true,
                   {{DW_AT_str_offsets_base, DW_FORM_sec_offset},
                    {DW_AT_addr_base, DW_FORM_sec_offset},
                    {DW_AT_rnglists_base, DW_FORM_sec_offset},
                    {DW_AT_name, DW_FORM_strx1},
                    {DW_AT_low_pc, DW_FORM_addrx},
                    {DW_AT_ranges, DW_FORM_rnglistx}}) +
      Abbreviation(2, DW_TAG_subprogram, false,
                   {{DW_AT_name, DW_FORM_strx2}, {DW_AT_ranges, DW_FORM_rnglistx}}) +
      Abbreviation(3, DW_TAG_subprogram, false,
                   {{DW_AT_name, DW_FORM_line_strp},
                    {DW_AT_low_pc, DW_FORM_addrx1},
                    {DW_AT_high_pc, DW_FORM_udata}}) +
      U8(0);
  elf[".debug_info"] =
      UnitOf(5, Uleb(1) + U32(8) + U32(8) + U32(12) + U8(0) + Uleb(0) + Uleb(0) + Uleb(2) + U16(1) +
                    Uleb(1) + Uleb(3) + U32(1) + U8(2) + Uleb(8) + U8(0));
  elf[".debug_str_offsets"] = U32(12) + U16(5) + U16(0) + U32(0) + U32(4);
  elf[".debug_str"] = Text("a.c") + Text("first");
  elf[".debug_line_str"] = Text("") + Text("second");
  elf[".debug_addr"] = U32(44) + U16(5) + U8(8) + U8(0) + U64(0x1000) + U64(0x1800) + U64(0x1900) +
                       U64(0x1100) + U64(0x1200);
  const std::string all = U8(DW_RLE_start_end) + U64(0x1000) + U64(0x2000) + U8(0);
  const std::string first = U8(DW_RLE_offset_pair) + Uleb(0x10) + Uleb(0x20) +
                            U8(DW_RLE_base_addressx) + Uleb(1) + U8(DW_RLE_offset_pair) + Uleb(0) +
                            Uleb(8) + U8(DW_RLE_startx_endx) + Uleb(3) + Uleb(4) +
                            U8(DW_RLE_startx_length) + Uleb(4) + Uleb(4) + U8(DW_RLE_base_address) +
                            U64(0x1a00) + U8(DW_RLE_offset_pair) + Uleb(1) + Uleb(2) +
                            U8(DW_RLE_start_length) + U64(0x1b00) + Uleb(1) + U8(0);
  elf[".debug_rnglists"] =
      test::Counted(U16(5) + U8(8) + U8(0) + U32(2) + U32(8) + U32(8 + all.size()) + all + first);
  return elf;
}

TEST(DebugInfo, TextsAddressesAndRangesByIndex) {
  const DebugElf elf = IndexedProgram();
  for (const uint64_t inside :
       {0x1010, 0x101f, 0x1800, 0x1807, 0x1100, 0x11ff, 0x1203, 0x1a01, 0x1b00}) {
    EXPECT_EQ(FramesAt(elf, inside), "first :0\n") << std::hex << inside;
  }
  for (const uint64_t outside : {0x1000, 0x1020, 0x1808, 0x10ff, 0x1204, 0x1a00, 0x1b01}) {
    EXPECT_EQ(FramesAt(elf, outside), "") << std::hex << outside;
  }
  EXPECT_EQ(FramesAt(elf, 0x1907), "second :0\n");
}

std::string Compressed(const std::string& bytes, bool zstd) {
  std::string out(bytes.size() + 1000, '\0');
  uLongf size = out.size();
  if (zstd) {
    size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  } else {
    ::compress(reinterpret_cast<Bytef*>(out.data()), &size,
               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  out.resize(size);
  return out;
}

TEST(DebugInfo, CompressedSections) {
  for (const bool zstd : {false, true}) {
    DebugElf elf = Program().Build();
    for (auto& section : elf.sections) {
      section.flags = SHF_COMPRESSED;
      section.bytes = U32(zstd ? 2 : 1) + U32(0) + U64(section.bytes.size()) + U64(1) +
                      Compressed(section.bytes, zstd);
    }
    EXPECT_EQ(FramesAt(elf, 0x1000), "_Z3runv /src/a.cpp:100\n");
    // A size that the content does not have, and one that no content has.
    for (const uint64_t size : {uint64_t{5}, uint64_t{1} << 40}) {
      DebugElf lying = elf;
      lying[".debug_info"].replace(8, 8, U64(size));
      EXPECT_EQ(FramesAt(lying, 0x1000), "test: no debug information");
    }
  }
  // What does not get smaller is not compressed: of split units .debug_info, too.
  DebugElf small = Program().Build();
  small[".debug_line"] = U32(2) + U32(0) + U64(small[".debug_line"].size()) + U64(1) +
                         Compressed(small[".debug_line"], true);
  for (auto& section : small.sections) {
    if (section.name == ".debug_line") section.flags = SHF_COMPRESSED;
  }
  EXPECT_EQ(FramesAt(small, 0x1000), "_Z3runv /src/a.cpp:100\n");
  DebugElf elf = Program().Build();
  for (auto& section : elf.sections) {
    std::string size = U64(section.bytes.size());
    section.bytes =
        "ZLIB" + std::string(size.rbegin(), size.rend()) + Compressed(section.bytes, false);
    section.name.insert(1, 1, 'z');
  }
  EXPECT_EQ(FramesAt(elf, 0x1000), "_Z3runv /src/a.cpp:100\n");
}

void WriteTo(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(DebugInfo, OnlyRegularFilesAreOpened) {
  const test::TempDirectory directory;
  const std::string pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(DebugInfo::Open(pipe, {}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(DebugInfo::Open(directory / "none", {}).error().kind, ErrorKind::kNotFound);
  WriteTo(directory / "empty", "");
  EXPECT_EQ(DebugInfo::Open(directory / "empty", {}).error().kind, ErrorKind::kInvalid);
  WriteTo(directory / "bare", DebugElf().Build());
  EXPECT_EQ(DebugInfo::Open(directory / "bare", {}).error().kind, ErrorKind::kNotFound);
  WriteTo(directory / "good", Program().Build().Build());
  auto good = DebugInfo::Open(directory / "good", {});
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(FramesAt(good.value(), 0x1000), "_Z3runv /src/a.cpp:100\n");
}

// Two skeletons; the unit of one is in a file beside the program, that of the other is nowhere.
TEST(DebugInfo, SplitUnits) {
  const test::TempDirectory directory;
  DebugElf split;
  split[".debug_abbrev.dwo"] =
      Abbreviation(1, DW_TAG_compile_unit, true, {{DW_AT_GNU_dwo_id, DW_FORM_data8}}) +
      Abbreviation(2, DW_TAG_subprogram, false,
                   {{DW_AT_name, DW_FORM_GNU_str_index},
                    {DW_AT_low_pc, DW_FORM_GNU_addr_index},
                    {DW_AT_high_pc, DW_FORM_data4}}) +
      U8(0);
  split[".debug_info.dwo"] =
      UnitOf(4, Uleb(1) + U64(77) + Uleb(2) + Uleb(1) + Uleb(1) + U32(0x10) + U8(0));
  split[".debug_str.dwo"] = Text("no") + Text("far");
  split[".debug_str_offsets.dwo"] = U32(0) + U32(3);
  WriteTo(directory / "there.dwo", split.Build());

  DebugElf elf;
  elf[".debug_abbrev"] = Abbreviation(1, DW_TAG_compile_unit, false,
                                      {{DW_AT_GNU_dwo_name, DW_FORM_string},
                                       {DW_AT_comp_dir, DW_FORM_string},
                                       {DW_AT_GNU_dwo_id, DW_FORM_data8},
                                       {DW_AT_GNU_addr_base, DW_FORM_sec_offset},
                                       {DW_AT_low_pc, DW_FORM_addr},
                                       {DW_AT_high_pc, DW_FORM_data4}}) +
                         U8(0);
  const auto skeleton = [](const char* name, uint64_t id, uint64_t begin) {
    return UnitOf(
        4, Uleb(1) + Text(name) + Text("/nowhere") + U64(id) + U32(8) + U64(begin) + U32(0x100));
  };
  elf[".debug_info"] = skeleton("there.dwo", 77, 0x1000) + skeleton("gone.dwo", 78, 0x1100);
  elf[".debug_addr"] = U64(0) + U64(0x1050) + U64(0x1020);
  WriteTo(directory / "program", elf.Build());
  auto info = DebugInfo::Open(directory / "program", {});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(FramesAt(info.value(), 0x1020), "far :0\n");
  EXPECT_EQ(FramesAt(info.value(), 0x1030), "");
  // Opening a pipe would wait.
  ASSERT_EQ(::mkfifo((directory / "gone.dwo").c_str(), 0600), 0);
  EXPECT_EQ(FramesAt(info.value(), 0x1100), "");
  // Another build's unit under the same name.
  split[".debug_info.dwo"].replace(12, 8, U64(99));
  WriteTo(directory / "there.dwo", split.Build());
  auto other = DebugInfo::Open(directory / "program", {});
  EXPECT_EQ(FramesAt(other.value(), 0x1020), "");
}

TEST(DebugInfo, SharedEntriesOfDwz) {
  const test::TempDirectory directory;
  DebugElf shared;
  shared[".debug_abbrev"] =
      Abbreviation(1, 0x3c, true, {}) +  // DW_TAG_partial_unit
      Abbreviation(2, DW_TAG_subprogram, false, {{DW_AT_name, DW_FORM_strp}}) + U8(0);
  shared[".debug_info"] = UnitOf(4, Uleb(1) + Uleb(2) + U32(3) + U8(0));
  shared[".debug_str"] = Text("ab") + Text("shared");
  WriteTo(directory / "shared", shared.Build());
  Program program;
  program.abbreviations = Abbreviation(6, DW_TAG_subprogram, false,
                                       {{DW_AT_abstract_origin, DW_FORM_GNU_ref_alt},
                                        {DW_AT_low_pc, DW_FORM_addr},
                                        {DW_AT_high_pc, DW_FORM_data4}}) +
                          Abbreviation(7, DW_TAG_subprogram, false,
                                       {{DW_AT_name, DW_FORM_GNU_strp_alt},
                                        {DW_AT_low_pc, DW_FORM_addr},
                                        {DW_AT_high_pc, DW_FORM_data4}});
  program.behind = Uleb(6) + U32(12) + Program::Code(0x1200, 0x1210) + Uleb(7) + U32(0) +
                   Program::Code(0x1210, 0x1220);
  WriteTo(directory / "program", program.Build().Build());
  auto info = DebugInfo::Open(directory / "program", {.alternate_path = directory / "shared"});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(FramesAt(info.value(), 0x1200), "shared :0\n");
  EXPECT_EQ(FramesAt(info.value(), 0x1210), "ab :0\n");
  auto without = DebugInfo::Open(directory / "program", {});
  EXPECT_EQ(FramesAt(without.value(), 0x1200), " :0\n");
  EXPECT_EQ(FramesAt(without.value(), 0x1000), "_Z3runv /src/a.cpp:100\n");
}

TEST(DebugInfo, DamagedFilesEndWell) {
  for (const DebugElf& elf : {Program().Build(), IndexedProgram()}) {
    const std::string bytes = elf.Build();
    const auto ask = [](const std::string& damaged) {
      auto info = DebugInfo::Parse(damaged, "test");
      if (!info.ok()) return;
      for (uint64_t at = 0x1000; at < 0x1100; at += 8) static_cast<void>(info.value().At(at));
    };
    for (size_t size = 0; size < bytes.size(); ++size) ask(bytes.substr(0, size));
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
        std::string damaged = bytes;
        damaged[at] = value;
        ask(damaged);
      }
    }
  }
}

}  // namespace
}  // namespace xpu
