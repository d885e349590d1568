// Serves the page of a policy: the session behind it, its routes, its server.
#include "api/program/page.h"

#include "api/commands/page/page_document.h"
#include "api/commands/page/page_session.h"
#include "api/commands/page/request_checks.h"
#include "api/commands/page/server.h"

namespace tandem::api {
namespace {

std::vector<PageRoute> routes_of(PageSession& session) {
  using Answer = PageJson (PageSession::*)();
  using Action = PageJson (PageSession::*)(const PageJson&);
  std::vector<PageRoute> routes;
  const auto get = [&](const char* path, Answer answer) {
    routes.push_back({"GET", path, [&session, answer](const PageJson&) {
                        return page_text((session.*answer)());
                      }});
  };
  const auto post = [&](const char* path, Action action) {
    routes.push_back({"POST", path, [&session, action](const PageJson& body) {
                        return page_text((session.*action)(body));
                      }});
  };
  get("/api/model", &PageSession::model);
  get("/api/state", &PageSession::state);
  get("/api/timeline", &PageSession::timeline);
  get("/api/file", &PageSession::file);
  get("/api/auto", &PageSession::search);
  get("/api/measured", &PageSession::measured);
  get("/api/live", &PageSession::live);
  post("/api/match", &PageSession::match);
  post("/api/edit", &PageSession::edit);
  post("/api/undo", &PageSession::undo);
  post("/api/redo", &PageSession::redo);
  post("/api/save", &PageSession::save);
  post("/api/reload", &PageSession::reload);
  post("/api/auto", &PageSession::start_search);
  post("/api/auto/stop", &PageSession::stop_search);
  // As the commands print them, to the byte.
  routes.push_back({"GET", "/api/plan", [&](const PageJson&) { return session.plan() + "\n"; }});
  routes.push_back(
      {"POST", "/api/explain", [&](const PageJson& body) { return session.explain(body) + "\n"; }});
  return routes;
}

}  // namespace

void serve_page(const PageOptions& options) {
  PageSession session(options);
  const std::string token = new_token();
  PageServer server(page_document, token, routes_of(session), options.port);
  if (options.on_listening)
    options.on_listening("http://127.0.0.1:" + std::to_string(server.port()) + "/#token=" + token);
  server.run([&](double idle_seconds) {
    return options.stop.stop_requested() ||
           (options.idle_seconds > 0 && idle_seconds >= options.idle_seconds);
  });
}

}  // namespace tandem::api
