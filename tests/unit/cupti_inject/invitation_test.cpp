#include "cupti_inject/invitation.h"

#include <string>

#include <gtest/gtest.h>

namespace xpu::inject {
namespace {

constexpr char kSecret[] = "000102030405060708090A0b0c0d0eff";

TEST(Invitation, WellFormed) {
  Invitation invitation{};
  const std::string text = std::string("xpu-12ab:") + kSecret + ":fedcba9876543210";
  ASSERT_TRUE(ParseInvitation(text.c_str(), &invitation));
  EXPECT_EQ(std::string(invitation.socket_name, invitation.socket_name_bytes), "xpu-12ab");
  const uint8_t secret[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(invitation.secret), 16),
            std::string(reinterpret_cast<const char*>(secret), 16));
  EXPECT_EQ(invitation.session, 0xfedcba9876543210u);
}

TEST(Invitation, ShortSession) {
  Invitation invitation{};
  ASSERT_TRUE(ParseInvitation((std::string("n:") + kSecret + ":7").c_str(), &invitation));
  EXPECT_EQ(invitation.session, 7u);
}

TEST(Invitation, LongestName) {
  Invitation invitation{};
  const std::string tail = std::string(":") + kSecret + ":1";
  EXPECT_TRUE(ParseInvitation((std::string(107, 'n') + tail).c_str(), &invitation));
  EXPECT_EQ(invitation.socket_name_bytes, 107u);
  EXPECT_FALSE(ParseInvitation((std::string(108, 'n') + tail).c_str(), &invitation));
}

TEST(Invitation, AbsentOrMalformed) {
  Invitation invitation{};
  EXPECT_FALSE(ParseInvitation(nullptr, &invitation));
  const std::string secret = kSecret;
  for (const std::string& text : {
           std::string(),
           std::string(":"),
           std::string("name"),
           "name:" + secret,
           "name:" + secret + ":",
           ":" + secret + ":1",
           "name:" + secret.substr(1) + ":1",
           "name:" + secret + "0:1",
           "name:" + secret.substr(2) + "0g:1",
           "name:" + secret + ":g",
           "name:" + secret + ":1 ",
           "name:" + secret + ":0x1",
           "name:" + secret + ":12345678901234567",
           "name:" + secret + ";1",
       }) {
    EXPECT_FALSE(ParseInvitation(text.c_str(), &invitation)) << text;
  }
}

TEST(Invitation, EveryCutIsRefused) {
  Invitation invitation{};
  const std::string whole = std::string("name:") + kSecret + ":1";
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseInvitation(whole.substr(0, length).c_str(), &invitation)) << length;
  }
}

}  // namespace
}  // namespace xpu::inject
