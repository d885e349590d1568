// The page's HTTP server: on this machine's own addresses, with four threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/commands/page/page_error.h"

namespace tandem::api {

/// A path below /api/ that the server answers. `answer` may throw PageError and Error.
struct PageRoute {
  std::string method, path;
  std::function<std::string(const PageJson& body)> answer;  // body: null for GET
};

class PageServer {
 public:
  /// Binds 127.0.0.1 and, where the machine has it, [::1] at one port; 0: a free one. Throws
  /// Error{usage} where the port is taken, and in builds without cpp-httplib.
  PageServer(std::string_view document, std::string token, std::vector<PageRoute> routes, int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  /// Answers requests from other threads until `is_over`, which is asked ten times a second with
  /// the seconds since the last request, says so.
  void run(const std::function<bool(double idle_seconds)>& is_over);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::api
