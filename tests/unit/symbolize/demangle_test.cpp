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
