#include "cupti_inject/nvtx_texts.h"

#include <string>

#include <gtest/gtest.h>

#include "cupti_inject/wire.h"

namespace xpu::inject {
namespace {

std::string Text(TextView view) { return {view.text, view.bytes}; }

TEST(NvtxTexts, Registered) {
  static RegisteredTexts texts;
  std::string text = "forward";
  const void* first = texts.Add(ViewOf(text.c_str()));
  text = "overwritten";
  const void* second = texts.Add(ViewOf("backward pass"));
  const void* empty = texts.Add(ViewOf(""));
  EXPECT_EQ(Text(texts.Find(first)), "forward");
  EXPECT_EQ(Text(texts.Find(second)), "backward pass");
  EXPECT_EQ(texts.Find(empty).bytes, 0u);
}

TEST(NvtxTexts, AnyHandleMayBeAskedFor) {
  static RegisteredTexts texts;
  EXPECT_EQ(texts.Find(nullptr).bytes, 0u);
  const auto handle = reinterpret_cast<uintptr_t>(texts.Add(ViewOf("x")));
  for (const uintptr_t other :
       {uintptr_t{0}, handle + 1, handle + 8, uintptr_t{1} << 40, ~uintptr_t{0}}) {
    EXPECT_EQ(texts.Find(reinterpret_cast<const void*>(other)).bytes, 0u) << other;
  }
}

TEST(NvtxTexts, FullIsNoHandle) {
  static RegisteredTexts texts;
  const std::string large(wire::kMaxNameBytes, 'x');
  size_t count = 0;
  while (texts.Add(ViewOf(large.c_str())) != nullptr) ++count;
  EXPECT_EQ(count, RegisteredTexts::kBytes / (wire::kMaxNameBytes + 8));
}

TEST(NvtxTexts, CutAndNull) {
  EXPECT_EQ(ViewOf(nullptr).bytes, 0u);
  EXPECT_EQ(ViewOf(std::string(wire::kMaxNameBytes + 9, 'x').c_str()).bytes, wire::kMaxNameBytes);
}

TEST(NvtxTexts, WideTextsAreUtf8) {
  EXPECT_EQ(Text(NarrowText(L"a\u00fc\u20ac\U0001f600").view()),
            "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
  const wchar_t no_characters[] = {0xd800, 0x7fffffff, 'z', 0};
  EXPECT_EQ(Text(NarrowText(no_characters).view()), "\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(NarrowText(nullptr).view().bytes, 0u);
  // Whole characters only.
  EXPECT_EQ(NarrowText(std::wstring(2000, L'\u20ac').c_str()).view().bytes, 1023u);
}

}  // namespace
}  // namespace xpu::inject
