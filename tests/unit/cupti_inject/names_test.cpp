#include "cupti_inject/names.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

struct Sink {
  std::vector<std::pair<uint32_t, std::string>> sent;
  bool full = false;
};

bool Send(void* context, uint32_t id, const char* text, size_t bytes) {
  auto* sink = static_cast<Sink*>(context);
  if (sink->full) return false;
  sink->sent.emplace_back(id, std::string(text, bytes));
  return true;
}

class NamesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(table_.Open()); }
  void TearDown() override { table_.Close(); }

  uint32_t IdOf(const std::string& text) {
    return table_.IdOf(text.c_str(), &Send, &sink_, &lost_);
  }

  NameTable table_;
  Sink sink_;
  bool lost_ = false;
};

TEST_F(NamesTest, SameContentIsSentOnce) {
  EXPECT_EQ(IdOf("_Z6kernelv"), 1u);
  EXPECT_EQ(IdOf("_Z5otherv"), 2u);
  EXPECT_EQ(IdOf(std::string("_Z6kernelv")), 1u);  // at another address
  const std::vector<std::pair<uint32_t, std::string>> expected = {{1, "_Z6kernelv"},
                                                                  {2, "_Z5otherv"}};
  EXPECT_EQ(sink_.sent, expected);
}

TEST_F(NamesTest, SameAddressNewContentIsANewName) {
  char buffer[] = "aaaa";
  EXPECT_EQ(table_.IdOf(buffer, &Send, &sink_, &lost_), 1u);
  buffer[0] = 'b';
  EXPECT_EQ(table_.IdOf(buffer, &Send, &sink_, &lost_), 2u);
  ASSERT_EQ(sink_.sent.size(), 2u);
  EXPECT_EQ(sink_.sent[1].second, "baaa");
}

TEST_F(NamesTest, NoNameIsNoLoss) {
  lost_ = true;
  EXPECT_EQ(table_.IdOf(nullptr, &Send, &sink_, &lost_), 0u);
  EXPECT_FALSE(lost_);
  EXPECT_TRUE(sink_.sent.empty());
}

TEST_F(NamesTest, WhatCouldNotBeSentIsTriedAgain) {
  sink_.full = true;
  EXPECT_EQ(IdOf("kernel"), 0u);
  EXPECT_TRUE(lost_);
  sink_.full = false;
  EXPECT_EQ(IdOf("kernel"), 1u);
  EXPECT_FALSE(lost_);
  EXPECT_EQ(sink_.sent.size(), 1u);
}

TEST_F(NamesTest, LongNamesAreCut) {
  EXPECT_EQ(IdOf(std::string(wire::kMaxNameBytes + 10, 'x')), 1u);
  ASSERT_EQ(sink_.sent.size(), 1u);
  EXPECT_EQ(sink_.sent[0].second.size(), wire::kMaxNameBytes);
}

TEST_F(NamesTest, ThousandsOfNamesAndThenNoMore) {
  for (uint32_t i = 1; i <= NameTable::kMaxNames; ++i) {
    ASSERT_EQ(IdOf("kernel_" + std::to_string(i)), i);
  }
  EXPECT_EQ(IdOf("one too many"), 0u);
  EXPECT_TRUE(lost_);
  EXPECT_EQ(IdOf("kernel_4711"), 4711u);
  EXPECT_FALSE(lost_);
  EXPECT_EQ(sink_.sent.size(), NameTable::kMaxNames);
}

TEST_F(NamesTest, TextMemoryIsBounded) {
  std::string text(wire::kMaxNameBytes, 'x');
  const size_t fits = NameTable::kTextBytes / wire::kMaxNameBytes;
  for (size_t i = 0; i < fits; ++i) {
    text[0] = static_cast<char>('a' + i % 16);
    text[1] = static_cast<char>('a' + i / 16 % 16);
    text[2] = static_cast<char>('a' + i / 256);
    ASSERT_EQ(IdOf(text), i + 1);
  }
  EXPECT_EQ(IdOf("short"), 0u);
  EXPECT_TRUE(lost_);
}

}  // namespace
}  // namespace xpu::inject
