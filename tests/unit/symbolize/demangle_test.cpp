#include "symbolize/demangle.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

TEST(Demangle, NamesOfFunctions) {
  EXPECT_EQ(Demangle("_ZN16TransformerLayer7forwardEi"), "TransformerLayer::forward(int)");
  EXPECT_EQ(Demangle("_Z7softmaxIfEvPT_i"), "void softmax<float>(float*, int)");
  EXPECT_EQ(Demangle("_Z3addIiEN9enable_ifIXsr3std9is_signedIT_EE5valueEiE4typeES1_"),
            "enable_if<std::is_signed<int>::value, int>::type add<int>(int)");
  EXPECT_EQ(Demangle("_Z1fIJiiEEvDpT_"), "void f<int, int>(int, int)");
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
  EXPECT_EQ(Demangle("_ZN4core3fmt5write17h0123456789abcdefE.cold"), "core::fmt::write.cold");
  EXPECT_EQ(Demangle("_ZN3foo3barEv"), "foo::bar()");  // no hash: C++
}

TEST(Demangle, RustV0) {
  EXPECT_EQ(Demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(Demangle("_RNvC1a3foo.cold"), "a::foo.cold");
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
  EXPECT_EQ(Demangle(Doubling(60)), Doubling(60));
}

TEST(Demangle, WorkWithoutEndIsNotBegun) {
  // A pack expansion of something that doubles: libiberty looks for the pack in each copy.
  const std::string doubling = Doubling(60).substr(4);
  EXPECT_EQ(Demangle("_Z1fDpFv" + doubling + "E"), "_Z1fDpFv" + doubling + "E");
  EXPECT_EQ(Demangle("_Z1fDpFv" + Doubling(1).substr(4) + "E"),
            "f((void (pair<A, A>, pair<pair<A, A>, pair<A, A> >))...)");
  // Template arguments of a conversion's type are tried twice, those in them four times.
  std::string conversion = "_ZN1Acv";
  for (int i = 0; i < 60; ++i) conversion += "T_I";
  conversion += "i" + std::string(60, 'E') + "Ev";
  EXPECT_EQ(Demangle(conversion), conversion);
  // for<'a, 'b, ...> in the path of an impl, which is not printed.
  for (const char* name :
       {"_RNvMINvC1a3genFGzzzzzzz_EuEl3foo", "_RNvC1a3fooINvC1a3genDGzzzzzzz_EuE",
        "_RNvMINvC1a3genFGDGDGzz_8aEuEl3foo"}) {
    EXPECT_EQ(Demangle(name), name);
  }
  EXPECT_EQ(Demangle("_RNvMNtC1a3CFG10push_block"), "_RNvMNtC1a3CFG10push_block");
  EXPECT_EQ(Demangle("_RNvNtC1a3CFG10push_block"), "a::CFG::push_block");
  EXPECT_EQ(Demangle("_RNvCs1FGab2_1a3foo"), "a::foo");
}

TEST(Demangle, LambdasWithTemplateParameters) {
  EXPECT_EQ(Demangle("_ZZ12MakeFutureOnIiEvRT_ENKUlDpT_E_clIJiEEEDaS3_"),
            "auto MakeFutureOn<int>(int&)::{lambda((auto:1)...)#1}::operator()<int>(int) const");
  EXPECT_EQ(Demangle("_ZN8CallableIZ4mainEUlTyT_E_E4CallEv"),
            "Callable<main::{lambda<typename $T0>($T0)#1}>::Call()");
}

TEST(Demangle, LongNames) {
  std::string mangled = "_Z1f";
  std::string demangled = "f(";
  for (int i = 0; i < 100; ++i) {
    mangled += "5tupleI20" + std::string(20, 'a');
    demangled += "tuple<" + std::string(20, 'a') + ", ";
  }
  EXPECT_EQ(Demangle(mangled + "i" + std::string(100, 'E')).substr(0, demangled.size()), demangled);
}

TEST(Demangle, ANameThatNeedsMuchStackStays) {
  // Each reference to a parameter keeps a copy of the templates around it.
  std::string name = "_Z1fIiEv";
  for (int i = 0; i < 500; ++i) name += "1AIiE";
  for (int i = 0; i < 500; ++i) name += "RT_";
  EXPECT_EQ(Demangle(name), name);
}

TEST(Demangle, AVeryLongNameStays) {
  const std::string name = "_Z20000" + std::string(20000, 'a') + "v";
  EXPECT_EQ(Demangle(name), name);
}

}  // namespace
}  // namespace xpu
