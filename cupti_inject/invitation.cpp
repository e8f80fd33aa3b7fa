#include "cupti_inject/invitation.h"

#include <cstring>

namespace xpu::inject {
namespace {

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool ParseSecret(const char* text, uint8_t* secret) {
  for (size_t i = 0; i < wire::kSecretBytes; ++i) {
    const int high = DigitOf(text[2 * i]);
    if (high < 0) return false;  // also the end of the text
    const int low = DigitOf(text[2 * i + 1]);
    if (low < 0) return false;
    secret[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

bool ParseSession(const char* text, uint64_t* session) {
  const size_t digits = std::strlen(text);
  if (digits < 1 || digits > 16) return false;
  *session = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int digit = DigitOf(text[i]);
    if (digit < 0) return false;
    *session = *session << 4 | static_cast<uint64_t>(digit);
  }
  return true;
}

}  // namespace

bool ParseInvitation(const char* text, Invitation* invitation) {
  if (text == nullptr) return false;
  const char* colon = std::strchr(text, ':');
  if (colon == nullptr || colon == text) return false;
  const auto name_bytes = static_cast<size_t>(colon - text);
  // One byte of sun_path is the leading zero of an abstract name.
  if (name_bytes > sizeof(invitation->socket_name) - 1) return false;
  std::memcpy(invitation->socket_name, text, name_bytes);
  invitation->socket_name_bytes = name_bytes;
  const char* secret = colon + 1;
  if (!ParseSecret(secret, invitation->secret)) return false;
  const char* session = secret + 2 * wire::kSecretBytes;
  return *session == ':' && ParseSession(session + 1, &invitation->session);
}

}  // namespace xpu::inject
