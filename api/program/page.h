// A page in the browser on which a placement is seen and edited. Standard types only.
#pragma once

#include <functional>
#include <string>

#include "tandem/policy.h"
#include "tandem/stop.h"

namespace tandem::api {

struct PageOptions {
  /// The model and its policy: of all files only that policy is written, when the page says so.
  PolicyOptions policy;
  std::string run;          // a run directory, whose times and curves are shown; "": none
  std::string trace;        // a trace of that run; "": trace.json in its directory
  bool read_only = false;   // the policy cannot be changed
  int port = 0;             // 0: a free one
  double idle_seconds = 0;  // end after this time without a request; 0: never
  StopToken stop;           // end on request
  /// Called once with the address to open, as soon as it is served.
  std::function<void(const std::string& address)> on_listening;
};

/// Serves the page on 127.0.0.1 and [::1] until it is to end. Throws Error{usage} where the model
/// cannot be read, the port is taken, or this build has no page.
void serve_page(const PageOptions& options);

}  // namespace tandem::api
