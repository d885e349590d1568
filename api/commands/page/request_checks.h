// Which requests a page's server answers at all, decided before any of them is read further.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/commands/page/page_error.h"

namespace tandem::api {

/// What the checks see of a request. A header that comes several times is refused.
struct RequestHead {
  std::string method, path;
  std::vector<std::string> host, origin, fetch_site, content_type, token;
};

/// 32 hexadecimal digits from the system's random numbers.
std::string new_token();

/// Whether two texts are equal, in a time that depends only on the length of the second one.
bool equal_in_constant_time(std::string_view given, std::string_view secret);

class RequestChecks {
 public:
  RequestChecks(int port, std::string token);

  /// Why the request is refused; nothing where it may be answered. The first of: a host that is
  /// not this machine's own address, another method than GET and POST, a request of another page,
  /// a missing token, a body that is not JSON. The document itself, `/`, needs no token.
  std::optional<PageError> refuse(const RequestHead& head) const;

 private:
  std::vector<std::string> hosts_;
  std::string token_;
};

/// The headers of every answer. `policy`: the document's Content-Security-Policy.
std::vector<std::pair<std::string, std::string>> safe_headers(const std::string& policy);

}  // namespace tandem::api
