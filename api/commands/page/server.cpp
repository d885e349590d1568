#include "api/commands/page/server.h"

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>

#include "api/commands/page/page_document.h"
#include "api/commands/page/request_checks.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

constexpr std::size_t threads = 4, most_waiting = 64, most_body = std::size_t{1} << 20;
constexpr time_t seconds_to_read = 30, seconds_between = 5;

/// The threads of all addresses together. `open`: connections that they answer or that wait.
class SharedThreads final : public httplib::TaskQueue {
 public:
  SharedThreads(httplib::ThreadPool& pool, std::atomic<int>& open) : pool_(pool), open_(open) {}
  bool enqueue(std::function<void()> work) override {
    ++open_;
    const bool takes = pool_.enqueue([open = &open_, work = std::move(work)] {
      work();
      --*open;
    });
    if (!takes) --open_;
    return takes;
  }
  void shutdown() override {}  // the pool outlives each address

 private:
  httplib::ThreadPool& pool_;
  std::atomic<int>& open_;
};

std::vector<std::string> values_of(const httplib::Request& request, const char* name) {
  std::vector<std::string> values;
  const auto range = request.headers.equal_range(name);
  for (auto header = range.first; header != range.second; ++header)
    values.push_back(header->second);
  return values;
}

RequestHead head_of(const httplib::Request& request) {
  return {request.method,
          request.path,
          values_of(request, "Host"),
          values_of(request, "Origin"),
          values_of(request, "Sec-Fetch-Site"),
          values_of(request, "Content-Type"),
          values_of(request, "X-Tandem-Token")};
}

constexpr const char* json_type = "application/json";

void refuse(const PageError& error, httplib::Response& response) {
  response.status = error.status;
  response.set_content(page_text(error_json(error)), json_type);
}

void answer(const PageRoute& route, const httplib::Request& request, httplib::Response& response) {
  try {
    PageJson body;
    if (route.method == "POST") {
      body = PageJson::parse(request.body, nullptr, false);
      if (!body.is_object()) throw PageError{400, "bad_request", "the body is no JSON object"};
    }
    response.set_content(route.answer(body), json_type);
  } catch (const PageError& error) {
    refuse(error, response);
  } catch (const Error& error) {
    refuse(refused_by(error), response);
  } catch (const std::exception& error) {
    refuse({500, "internal", error.what()}, response);
  }
}

/// Ends the connections at this port. With `how` = SHUT_RD no thread waits for the rest of a
/// request any more; with SHUT_RDWR none waits for a client to take its answer, either.
void end_connections(int port, int how) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int connection = std::atoi(entry.path().filename().c_str());
    sockaddr_storage own{}, other{};
    socklen_t size = sizeof own;
    if (getsockname(connection, reinterpret_cast<sockaddr*>(&own), &size) != 0) continue;
    const in_port_t at =
        own.ss_family == AF_INET    ? reinterpret_cast<const sockaddr_in&>(own).sin_port
        : own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                    : in_port_t{0};
    size = sizeof other;
    if (ntohs(at) == port &&
        getpeername(connection, reinterpret_cast<sockaddr*>(&other), &size) == 0)
      ::shutdown(connection, how);
  }
}

/// What the library itself refuses: unknown paths, long lines and bodies, broken requests.
void fill_refusal(httplib::Response& response) {
  if (!response.body.empty()) return;
  const auto is = [&](int status) { return response.status == status; };
  const char* code = is(404)                 ? "not_found"
                     : is(413)               ? "too_large"
                     : is(415)               ? "media_type"
                     : response.status < 500 ? "bad_request"
                                             : "internal";
  refuse({response.status, code, httplib::status_message(response.status)}, response);
}

}  // namespace

struct PageServer::Impl {
  Impl(std::string_view text, std::string secret, std::vector<PageRoute> all)
      : document(text),
        token(std::move(secret)),
        routes(std::move(all)),
        pool(threads, threads, most_waiting) {}

  void set_up(httplib::Server& server) {
    httplib::Headers headers;
    for (const auto& [name, value] : safe_headers(content_security_policy(document)))
      headers.emplace(name, value);
    server.set_default_headers(headers);
    server.new_task_queue = [this] { return new SharedThreads(pool, open); };
    server.set_payload_max_length(most_body);
    server.set_read_timeout(seconds_to_read);
    server.set_write_timeout(seconds_to_read);
    server.set_keep_alive_timeout(seconds_between);
    server.set_keep_alive_max_count(1);  // a thread never waits for a page that is only open
    server.set_socket_options(
        [](socket_t socket) { httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1); });
    server.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          last_request = now();
          const auto refusal = checks->refuse(head_of(request));
          if (!refusal) return httplib::Server::HandlerResponse::Unhandled;
          refuse(*refusal, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    server.set_error_handler(
        [](const httplib::Request&, httplib::Response& response) { fill_refusal(response); });
    server.Get("/", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(document, "text/html; charset=utf-8");
    });
    for (const PageRoute& route : routes) {
      const auto handler = [&route](const httplib::Request& request, httplib::Response& response) {
        answer(route, request, response);
      };
      if (route.method == "GET")
        server.Get(route.path, handler);
      else
        server.Post(route.path, handler);
    }
  }

  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  const std::string document, token;
  const std::vector<PageRoute> routes;
  std::atomic<int> open{0};
  httplib::ThreadPool pool;
  httplib::Server of_ipv4, of_ipv6;
  bool has_ipv6 = false;
  int port = 0;
  std::optional<RequestChecks> checks;
  std::atomic<double> last_request{now()};
};

PageServer::PageServer(std::string_view document, std::string token, std::vector<PageRoute> routes,
                       int port)
    : impl_(std::make_unique<Impl>(document, std::move(token), std::move(routes))) {
  for (httplib::Server* server : {&impl_->of_ipv4, &impl_->of_ipv6}) impl_->set_up(*server);
  if (port != 0 && impl_->of_ipv4.bind_to_port("127.0.0.1", port))
    impl_->port = port;
  else if (port == 0)
    impl_->port = impl_->of_ipv4.bind_to_any_port("127.0.0.1");
  if (impl_->port <= 0) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "the page cannot be served at this port",
                                             .file = "--port",
                                             .expected = "a free port, or 0 for any",
                                             .got = std::to_string(port)});
  }
  impl_->has_ipv6 = impl_->of_ipv6.bind_to_port("::1", impl_->port);
  impl_->checks.emplace(impl_->port, impl_->token);
}

PageServer::~PageServer() = default;

int PageServer::port() const { return impl_->port; }

void PageServer::run(const std::function<bool(double idle_seconds)>& is_over) {
  std::vector<std::thread> listening;
  listening.emplace_back([this] { impl_->of_ipv4.listen_after_bind(); });
  if (impl_->has_ipv6) listening.emplace_back([this] { impl_->of_ipv6.listen_after_bind(); });
  impl_->last_request = Impl::now();
  while (!is_over(Impl::now() - impl_->last_request))
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  impl_->of_ipv4.stop();
  impl_->of_ipv6.stop();
  for (std::thread& thread : listening) thread.join();
  end_connections(impl_->port, SHUT_RD);
  for (int waits = 0; impl_->open > 0 && waits < 50; ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  end_connections(impl_->port, SHUT_RDWR);
  impl_->pool.shutdown();
}

}  // namespace tandem::api
