#include "api/commands/page/page_document.h"

#include "engine/formats/sha256.h"

namespace tandem::api {
namespace {

/// What is between the first tag that begins so and its end.
std::string_view content_of(std::string_view document, std::string_view tag) {
  const std::size_t open = document.find("<" + std::string(tag));
  const std::size_t start = document.find('>', open);
  const std::size_t end = document.find("</" + std::string(tag) + ">", start);
  if (end == std::string_view::npos) return {};
  return document.substr(start + 1, end - start - 1);
}

/// The hash of a text as browsers write it: its 32 bytes in base 64.
std::string source_hash(std::string_view text) {
  const std::string digits = sha256(text.data(), text.size());
  std::string bits;
  for (const char digit : digits) {
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    for (int bit = 3; bit >= 0; --bit) bits += (value >> bit & 1) != 0 ? '1' : '0';
  }
  std::string hash;
  while (bits.size() % 6 != 0) bits += '0';
  for (std::size_t i = 0; i < bits.size(); i += 6) {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    hash += letters[std::stoul(bits.substr(i, 6), nullptr, 2)];
  }
  return "'sha256-" + hash + "='";  // 256 bits always end in one sign of padding
}

}  // namespace

std::string content_security_policy(std::string_view document) {
  return "default-src 'none'; script-src " + source_hash(content_of(document, "script")) +
         "; style-src " + source_hash(content_of(document, "style")) +
         "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
         "require-trusted-types-for 'script'; trusted-types 'none'";
}

}  // namespace tandem::api
