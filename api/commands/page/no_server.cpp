// The page's server in builds without cpp-httplib, which is compiled instead of server.cpp.
#include "api/commands/page/server.h"
#include "engine/graph/error.h"

namespace tandem::api {

struct PageServer::Impl {};

PageServer::PageServer(std::string_view, std::string, std::vector<PageRoute>, int) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "this build has no page: it was made without cpp-httplib",
                         .fix = "run tools/setup.sh and build Tandem again"});
}
PageServer::~PageServer() = default;
int PageServer::port() const { return 0; }
void PageServer::run(const std::function<bool(double)>&) {}

}  // namespace tandem::api
