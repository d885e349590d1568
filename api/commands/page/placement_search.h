// A search for a placement in a thread of its own, while the page is in use.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "api/commands/page/page_error.h"
#include "api/commands/page/request_body.h"
#include "placement/moves/proposed_rules.h"
#include "tandem/policy.h"

namespace tandem::api {

/// Budgets and tries of a request. Throws PageError "bad_size" for the first budget that is no
/// size.
PolicyAutoOptions search_options(const RequestBody& body);

class PlacementSearch {
 public:
  PlacementSearch() = default;
  ~PlacementSearch();
  PlacementSearch(const PlacementSearch&) = delete;
  PlacementSearch& operator=(const PlacementSearch&) = delete;

  /// Begins one for this policy. Without `keep_rules`, the policy's own rules are left out, not its
  /// devices. Throws PageError "stale" while another one runs.
  void start(PolicyOptions options, PolicyAutoOptions automatic, bool keep_rules, int revision);
  /// Asks it to end with the best so far.
  void stop();
  /// How far it is, and what it has found.
  PageJson json();
  /// The placement that it has found; nothing before it ends, and where it found none.
  std::optional<ProposedRules> proposal();

 private:
  void search(const PolicyOptions& options, const PolicyAutoOptions& automatic, bool keep_rules,
              int revision);

  std::mutex mutex_;  // for all that follows
  std::thread thread_;
  std::string state_ = "idle";
  int plans_ = 0, most_ = 0;
  double best_ms_ = -1;
  std::optional<PageError> error_;
  PageJson result_;
  std::optional<ProposedRules> proposal_;
  StopToken stop_;
};

}  // namespace tandem::api
