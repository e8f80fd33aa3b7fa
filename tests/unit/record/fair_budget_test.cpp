#include "record/base/fair_budget.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace xpu {
namespace {

constexpr uint64_t kShared = 1'000'000;
constexpr uint64_t kOwn = 1'000;
constexpr uint64_t kStep = 100;

// What it has when it takes all that it can.
uint64_t Fill(FairBudget::Account& account) {
  while (account.Take(kStep)) {
  }
  return account.bytes();
}

TEST(FairBudgetTest, OneProcessTakesHalf) {
  const FairBudget budget(kShared, kOwn);
  FairBudget::Account account(budget);
  EXPECT_EQ(Fill(account), kShared / 2 + kOwn);
}

TEST(FairBudgetTest, ProcessesThatTakeAtOnceHaveTheSameAndLeaveAsMuch) {
  const FairBudget budget(kShared, 0);
  std::vector<std::unique_ptr<FairBudget::Account>> accounts;
  for (int i = 0; i < 16; ++i) accounts.push_back(std::make_unique<FairBudget::Account>(budget));
  for (bool any = true; any;) {
    any = false;
    for (const auto& account : accounts) any = account->Take(kStep) || any;
  }
  uint64_t total = 0;
  for (const auto& account : accounts) {
    EXPECT_NEAR(static_cast<double>(account->bytes()), kShared / 17.0, 2 * kStep);
    total += account->bytes();
  }
  EXPECT_LE(total, kShared);
  FairBudget::Account newcomer(budget);
  EXPECT_NEAR(static_cast<double>(Fill(newcomer)), kShared / 34.0, 2 * kStep);
}

TEST(FairBudgetTest, EachHasItsShareWhenNothingIsFree) {
  const FairBudget budget(kShared, kOwn);
  std::vector<std::unique_ptr<FairBudget::Account>> accounts;
  uint64_t total = 0;
  for (int i = 0; i < 100; ++i) {
    accounts.push_back(std::make_unique<FairBudget::Account>(budget));
    EXPECT_GE(Fill(*accounts.back()), kOwn);
    total += accounts.back()->bytes();
  }
  EXPECT_LE(total, kShared + 100 * kOwn);
}

TEST(FairBudgetTest, ReturnedMemoryIsAvailableAgain) {
  const FairBudget budget(kShared, kOwn);
  FairBudget::Account account(budget);
  const uint64_t most = Fill(account);
  account.Give(most);
  EXPECT_EQ(account.bytes(), 0u);
  for (int i = 0; i < 3; ++i) {
    FairBudget::Account other(budget);
    EXPECT_EQ(Fill(other), most);
  }
  EXPECT_EQ(Fill(account), most);
}

TEST(FairBudgetTest, InvalidSizesAreRefused) {
  const FairBudget budget(kShared, kOwn);
  FairBudget::Account account(budget);
  ASSERT_TRUE(account.Take(kStep));
  EXPECT_FALSE(account.Take(UINT64_MAX));
  EXPECT_FALSE(account.Take(UINT64_MAX - kStep));
  EXPECT_FALSE(account.Take(kShared + kOwn));
  EXPECT_EQ(account.bytes(), kStep);
}

}  // namespace
}  // namespace xpu
