#include "symbolize/demangle.h"

#include <gtest/gtest.h>

extern "C" [[gnu::weak]] int __gcclibcxx_demangle_callback(const char*,
                                                           void (*)(const char*, size_t, void*),
                                                           void*);

namespace xpu {
namespace {

TEST(Demangle, NamesOfFunctions) {
  EXPECT_EQ(Demangle("_ZN16TransformerLayer7forwardEi"), "TransformerLayer::forward(int)");
  EXPECT_EQ(Demangle("_Z7softmaxIfEvPT_i"), "void softmax<float>(float*, int)");
}

TEST(Demangle, OtherTextStaysAsItIs) {
  EXPECT_EQ(Demangle("main"), "main");
  EXPECT_EQ(Demangle(""), "");
  EXPECT_EQ(Demangle("_Z"), "_Z");
  EXPECT_EQ(Demangle("_Z7softmaxIf"), "_Z7softmaxIf");
  EXPECT_EQ(Demangle(std::string("_Z3f\0o", 6)), std::string("_Z3f\0o", 6));
}

TEST(Demangle, EntriesOfTheProcedureLinkageTable) {
  EXPECT_EQ(Demangle("_ZdlPv@plt"), "operator delete(void*)@plt");
  EXPECT_EQ(Demangle("malloc@plt"), "malloc@plt");
  EXPECT_EQ(Demangle("_Z3foov" + std::string(5000, '@')), "foo()" + std::string(5000, '@'));
}

// The expected texts are those of llvm-cxxfilt, but for the hashes, which we leave out.
TEST(Demangle, RustLegacy) {
  EXPECT_EQ(Demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(Demangle("_ZN50_$LT$a..Point$LT$T$GT$$u20$as$u20$a..Shape$LT$T$GT$$GT$4area"
                     "17h0123456789abcdefE"),
            "_ZN50_$LT$a..Point$LT$T$GT$$u20$as$u20$a..Shape$LT$T$GT$$GT$4area"
            "17h0123456789abcdefE");  // a length that is wrong
  EXPECT_EQ(Demangle("_ZN55_$LT$a..Point$LT$T$GT$$u20$as$u20$a..Shape$LT$T$GT$$GT$4area"
                     "17h0123456789abcdefE"),
            "<a::Point<T> as a::Shape<T>>::area");
  EXPECT_EQ(Demangle("_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.123"),
            "main::{{closure}}");
  EXPECT_EQ(Demangle("_ZN3foo3barEv"), "foo::bar()");  // no hash: C++
}

TEST(Demangle, RustV0) {
  EXPECT_EQ(Demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(Demangle("_RNCNvC1a4main0B3_"), "a::main::{closure#0}");
  EXPECT_EQ(Demangle("_RINvC1a3genSAxj2_EB2_"), "a::gen::<[[i64; 2]]>");
  EXPECT_EQ(Demangle("_RINvC1a3genThReEEB2_"), "a::gen::<(u8, &str)>");
  EXPECT_EQ(Demangle("_RINvC1a3genTlEEB2_"), "a::gen::<(i32,)>");
  EXPECT_EQ(Demangle("_RINvC1a4flagKb1_Kc7a_EB2_"), "a::flag::<true, 'z'>");
  EXPECT_EQ(Demangle("_RINvC1a3genFKCmEhEB2_"), "a::gen::<extern \"C\" fn(u32) -> u8>");
  EXPECT_EQ(Demangle("_RINvC1a3genDNtB2_5ShapeEL_EB2_"), "a::gen::<dyn a::Shape>");
  EXPECT_EQ(Demangle("_RNvMC1aINtB2_5PointlE3new"), "<a::Point<i32>>::new");
  EXPECT_EQ(Demangle("_RNvXC1aINtB2_5PointlENtB2_5Shape4area"),
            "<a::Point<i32> as a::Shape>::area");
}

TEST(Demangle, RustV0NamesBeyondAscii) {
  EXPECT_EQ(Demangle("_RNvNtC1au8nave_6pau9gre_6ka8i"), "a::na\u00efve::gr\u00f6\u00dfe");
  EXPECT_EQ(Demangle("_RNvC1au4zzzz"), "a::punycode{zzzz}");
}

TEST(Demangle, DamagedAndEndlessRustNamesStay) {
  for (const char* name : {"_R", "_RN", "_RNvC1a", "_RNvC9a3foo", "_R0NvC1a3foo", "_RNvB_3foo",
                           "_RINvC1a3genS", "_RNvC1a3foo!", "_RINvC1a3genKb9E"}) {
    EXPECT_EQ(Demangle(name), name);
  }
  // Each tuple holds the one before twice.
  std::string doubling = "_RINvC1a3genTll";
  for (int i = 0; i < 60; ++i) doubling += "ETB8_B8_";
  EXPECT_EQ(Demangle(doubling), doubling);
  const std::string deep = "_RINvC1a3gen" + std::string(10'000, 'S') + "lE";
  EXPECT_EQ(Demangle(deep), deep);
}

// void f(pair<A, A>, pair<that, that>, ...): each parameter doubles the text of the one before.
std::string Doubling(int levels) {
  std::string name = "_Z1f4pairI1AS0_E";
  for (int last = 1; last <= levels; ++last) {  // the substitution that the parameter before made
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string id = "S";
    if (last >= 36) id += kDigits[static_cast<size_t>(last / 36)];
    id += kDigits[static_cast<size_t>(last % 36)];
    id += '_';
    name += "S_I" + id + id + "E";
  }
  return name;
}

TEST(Demangle, ATextWithoutEndIsNotBuilt) {
  EXPECT_EQ(Demangle(Doubling(1)), "f(pair<A, A>, pair<pair<A, A>, pair<A, A> >)");
  if (__gcclibcxx_demangle_callback == nullptr) {
    GTEST_SKIP() << "a dynamic libstdc++ has no demangler that can be stopped";
  }
  EXPECT_EQ(Demangle(Doubling(60)), Doubling(60));
}

TEST(Demangle, AVeryLongNameStays) {
  const std::string name = "_Z20000" + std::string(20000, 'a') + "v";
  EXPECT_EQ(Demangle(name), name);
}

}  // namespace
}  // namespace xpu
