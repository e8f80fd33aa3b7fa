#include "record/options/user_probes.h"

#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/base/nearest_names.h"
#include "record/probes/probe_locations.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::TempDirectory;

std::string Read(ProbeKind kind, std::string_view text) {
  auto probe = ParseUserProbe(kind, text);
  return probe.ok() ? probe->Text() : probe.error().message;
}

TEST(UserProbes, Words) {
  EXPECT_EQ(Read(ProbeKind::kUprobe, "libc.so.6:malloc"), "uprobe libc.so.6:malloc");
  EXPECT_EQ(Read(ProbeKind::kUprobe, "./app:ns::f+16"), "uprobe ./app:ns::f+0x10");
  EXPECT_EQ(Read(ProbeKind::kUprobe, "./app:ns::operator+"), "uprobe ./app:ns::operator+");
  EXPECT_EQ(Read(ProbeKind::kUretprobe, "libc:free"), "uretprobe libc:free");
  EXPECT_EQ(Read(ProbeKind::kKprobe, "do_exit+0x4"), "kprobe do_exit+0x4");
  EXPECT_EQ(Read(ProbeKind::kKretprobe, "do_exit"), "kretprobe do_exit");
  EXPECT_EQ(Read(ProbeKind::kTracepoint, "sched:sched_switch"), "tracepoint sched:sched_switch");
}

TEST(UserProbes, InvalidValuesAreRefused) {
  EXPECT_EQ(Read(ProbeKind::kUprobe, "malloc"),
            "--uprobe malloc: expected LIBRARY:FUNCTION or LIBRARY:FUNCTION+OFFSET");
  EXPECT_EQ(Read(ProbeKind::kUprobe, ":f"),
            "--uprobe :f: expected LIBRARY:FUNCTION or LIBRARY:FUNCTION+OFFSET");
  EXPECT_EQ(Read(ProbeKind::kUretprobe, "libc:"), "--uretprobe libc:: expected LIBRARY:FUNCTION");
  EXPECT_EQ(Read(ProbeKind::kUretprobe, "libc:f+4"),
            "--uretprobe libc:f+4: expected LIBRARY:FUNCTION");
  EXPECT_EQ(Read(ProbeKind::kKprobe, ""), "--kprobe : expected FUNCTION or FUNCTION+OFFSET");
  EXPECT_EQ(Read(ProbeKind::kTracepoint, "sched"), "--tracepoint sched: expected CATEGORY:NAME");
}

// Offsets within the text, or the error.
std::string Attach(const std::string& bytes, std::string_view text, bool* is_slow = nullptr) {
  auto image = ElfImage::Parse(std::as_bytes(std::span(bytes)), "test");
  auto probe = ParseUserProbe(ProbeKind::kUprobe, text);
  if (!image.ok() || !probe.ok()) return "not parsed";
  auto place = FindProbeLocation(*image, *probe, "file");
  if (!place.ok()) return place.error().message;
  if (is_slow != nullptr) *is_slow = place->is_slow;
  std::string found = place->function;
  for (const uint64_t offset : place->file_offsets) {
    found += " " + std::to_string(offset - ElfBuilder::kTextOffset);
  }
  return found;
}

TEST(ProbeLocations, BySymbolAndByDemangledName) {
  ElfBuilder elf("id");
  elf.Symbol("plain", 0x10, 8)
      .Symbol("_ZN2ns3oneEi", 0x20, 8)
      .Symbol("_ZN2ns3twoEi", 0x30, 8)
      .Symbol("_ZN2ns3twoEd", 0x40, 8)
      .Symbol("_ZN2ns5threeEv", 0x50, 8)
      .Symbol("twin", 0x60, 8)
      .Symbol("twin", 0x70, 8);
  const std::string bytes = elf.Build();
  EXPECT_EQ(Attach(bytes, "l:plain"), "plain 16");
  EXPECT_EQ(Attach(bytes, "l:plain+3"), "plain 19");
  EXPECT_EQ(Attach(bytes, "l:ns::one"), "_ZN2ns3oneEi 32");
  EXPECT_EQ(Attach(bytes, "l:ns::two(int)"), "_ZN2ns3twoEi 48");
  EXPECT_EQ(Attach(bytes, "l:ns::th"), "_ZN2ns5threeEv 80");
  EXPECT_EQ(Attach(bytes, "l:_ZN2ns3twoEd"), "_ZN2ns3twoEd 64");
  EXPECT_EQ(Attach(bytes, "l:twin"), "twin 96 112");
  EXPECT_EQ(Attach(bytes, "l:ns::two"), "uprobe l:ns::two: matches 2 functions of file");
  EXPECT_EQ(Attach(bytes, "l:four"), "uprobe l:four: file has no function of this name");
}

// The type of its result is part of the mangled name of a template's instance.
TEST(ProbeLocations, InstancesOfTemplates) {
  ElfBuilder elf("id");
  elf.Symbol("_ZN2ns1fIiEEvT_", 0x10, 8)   // void ns::f<int>(int)
      .Symbol("_ZN2ns1fIdEEvT_", 0x20, 8)  // void ns::f<double>(double)
      .Symbol("_ZN2nslsIiEERSt6vectorIT_SaIS2_EES5_S2_", 0x30, 8)
      .Symbol("_ZN12_GLOBAL__N_11gIiEEiv", 0x40, 8)  // int (anonymous namespace)::g<int>()
      .Symbol("_ZN2ns3addIiiEEDTplfp_fp0_ET_T0_", 0x50, 8);
  const std::string bytes = elf.Build();
  EXPECT_EQ(Attach(bytes, "l:ns::f<int>"), "_ZN2ns1fIiEEvT_ 16");
  EXPECT_EQ(Attach(bytes, "l:ns::f<double>(double)"), "_ZN2ns1fIdEEvT_ 32");
  EXPECT_EQ(Attach(bytes, "l:void ns::f<int>"), "_ZN2ns1fIiEEvT_ 16");
  EXPECT_EQ(Attach(bytes, "l:ns::f"), "uprobe l:ns::f: matches 2 functions of file");
  EXPECT_EQ(Attach(bytes, "l:ns::operator<<"), "_ZN2nslsIiEERSt6vectorIT_SaIS2_EES5_S2_ 48");
  EXPECT_EQ(Attach(bytes, "l:(anonymous namespace)::g<int>"), "_ZN12_GLOBAL__N_11gIiEEiv 64");
  EXPECT_EQ(Attach(bytes, "l:ns::add<int, int>"), "_ZN2ns3addIiiEEDTplfp_fp0_ET_T0_ 80");
}

TEST(UserProbes, RepeatedOption) {
  std::vector<UserProbe> probes;
  const auto add = [&](ProbeKind kind, std::string_view text) {
    probes.push_back(*ParseUserProbe(kind, text));
    const Status status = CheckNoneTwice(probes);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(add(ProbeKind::kUprobe, "libc:malloc"), "");
  EXPECT_EQ(add(ProbeKind::kUretprobe, "libc:malloc"), "");
  EXPECT_EQ(add(ProbeKind::kUprobe, "libc:malloc+4"), "");
  EXPECT_EQ(add(ProbeKind::kUprobe, "libc:malloc+0x4"), "--uprobe libc:malloc+0x4: given twice");
}

TEST(NearestNames, HeldOrOfFewOtherLetters) {
  const std::vector<std::string> names = {"sched_switch", "sched_waking", "sched_stat_wait", "x"};
  EXPECT_EQ(NearestNames(names, "sched_swich"), "sched_switch");
  EXPECT_EQ(NearestNames(names, "wa"), "sched_waking, sched_stat_wait");
  EXPECT_EQ(NearestNames(names, "something_else"), "");
  EXPECT_EQ(NearestNames({}, "xy"), "");
  const std::vector<std::string> short_names = {"dma", "ras", "x"};
  EXPECT_EQ(NearestNames(short_names, "a"), "");  // holds it, or differs by its one letter
}

TEST(ProbeLocations, LibrariesAsTheLoaderFindsThem) {
  TempDirectory directory;
  std::ofstream(directory / "libodd.so.3") << "x";
  const std::vector<std::string> environment = {"PATH=/bin", "LD_LIBRARY_PATH=" + directory.path()};
  for (const std::string& name :
       std::vector<std::string>{"libodd.so.3", "libodd", directory / "libodd.so.3"}) {
    auto found = FindLibrary(name, "sh", environment);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_TRUE(found->ends_with("/libodd.so.3")) << *found;
  }
  auto program = FindLibrary("sh", "sh", environment);
  ASSERT_TRUE(program.ok());
  auto missing = FindLibrary("libodd.so.4", "sh", environment);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "libodd.so.4: the loader finds no library of this name");
}

}  // namespace
}  // namespace xpu
