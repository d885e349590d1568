#include "api/commands/page/request_checks.h"

#include <algorithm>
#include <array>

#include <sys/random.h>

#include "engine/graph/error.h"

namespace tandem::api {
namespace {

/// The header's only value; nothing where it is missing or comes several times.
std::optional<std::string> only(const std::vector<std::string>& values) {
  return values.size() == 1 ? std::optional(values[0]) : std::nullopt;
}

bool is_json(const std::string& type) {
  std::string lower;
  for (const char c : type)
    if (c != ' ') lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower == "application/json" || lower == "application/json;charset=utf-8";
}

}  // namespace

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "the system gives no random numbers for the page's token"});
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    constexpr const char* digits = "0123456789abcdef";
    token += digits[byte >> 4];
    token += digits[byte & 15];
  }
  return token;
}

bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(c) ^ static_cast<unsigned char>(secret[i]);
  }
  return difference == 0;
}

RequestChecks::RequestChecks(int port, std::string token) : token_(std::move(token)) {
  for (const char* name : {"127.0.0.1:", "localhost:", "[::1]:"})
    hosts_.push_back(name + std::to_string(port));
}

std::optional<PageError> RequestChecks::refuse(const RequestHead& head) const {
  const auto host = only(head.host);
  if (!host || std::find(hosts_.begin(), hosts_.end(), *host) == hosts_.end()) {
    return PageError{403, "host", "this page is served on " + hosts_[0] + " only"};
  }
  const bool posts = head.method == "POST";
  if (!posts && head.method != "GET")
    return PageError{405, "method", "only GET and POST are answered"};
  if (!posts && head.path == "/") return std::nullopt;
  // Browsers say where a request comes from; pages of other origins cannot change it.
  const bool same_site = only(head.fetch_site) == "same-origin";
  if ((posts && !same_site) || (!head.fetch_site.empty() && !same_site))
    return PageError{403, "origin", "requests come from the page itself only (Sec-Fetch-Site)"};
  const bool same_origin = only(head.origin) == "http://" + *host;
  if ((posts && !same_origin) || (!head.origin.empty() && !same_origin))
    return PageError{403, "origin", "requests come from the page itself only (Origin)"};
  if (!equal_in_constant_time(only(head.token).value_or(""), token_))
    return PageError{401, "token", "open the page by the address that the program printed"};
  if (posts && !is_json(only(head.content_type).value_or("")))
    return PageError{415, "media_type", "POST takes application/json"};
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> safe_headers(const std::string& policy) {
  return {{"Content-Security-Policy", policy},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Frame-Options", "DENY"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

}  // namespace tandem::api
