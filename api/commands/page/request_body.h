// The members of a request's body, each checked for its type.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/commands/page/page_error.h"

namespace tandem::api {

/// All members but those of the list, and all types but the asked one, are PageError "bad_request".
class RequestBody {
 public:
  RequestBody(const PageJson& body, std::initializer_list<std::string_view> members);

  bool has(const char* key) const { return body_.contains(key); }
  int integer(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key) const;
  const PageJson& object(const char* key) const;
  std::vector<int> integers(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  /// An object of texts; numbers become texts, null no value.
  std::vector<std::pair<std::string, std::optional<std::string>>> values(const char* key) const;

 private:
  const PageJson& member(const char* key) const;

  const PageJson& body_;
};

[[noreturn]] void bad_request(const std::string& what);

}  // namespace tandem::api
