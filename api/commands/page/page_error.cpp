#include "api/commands/page/page_error.h"

#include "placement/report/json.h"

namespace tandem::api {

PageJson error_json(const PageError& error) {
  PageJson diagnostics = PageJson::array();
  for (const Diagnostic& d : error.diagnostics) diagnostics.push_back(diagnostic_json(d));
  PageJson json{{"error",
                 {{"status", error.status},
                  {"code", error.code},
                  {"message", error.message},
                  {"diagnostics", diagnostics}}}};
  if (error.more.is_object()) json.update(error.more);
  return json;
}

PageError refused_by(const Error& error) {
  return {422, "refused", error.what(), error.diagnostics()};
}

std::string page_text(const PageJson& json) {
  return json.dump(-1, ' ', false, PageJson::error_handler_t::replace);
}

}  // namespace tandem::api
