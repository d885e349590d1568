#include "api/commands/page/placement_search.h"

#include "api/policy/auto_search.h"
#include "placement/policy_text.h"

namespace tandem::api {
namespace {

/// The policy without rules: devices and comments stay.
Policy without_rules(const Policy& policy) {
  PolicyText editor(policy.text(), policy.name());
  for (const char* list : {"auto", "rules"}) {
    if (editor.list_start(list) != std::string::npos) editor.replace_list(list, "[]");
  }
  return Policy::parse(editor.finish(policy.text()), policy.name());
}

}  // namespace

PlacementSearch::~PlacementSearch() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void PlacementSearch::start(PolicyOptions options, PolicyAutoOptions automatic, bool keep_rules,
                            int revision) {
  const std::lock_guard lock(mutex_);
  if (state_ == "running")
    throw PageError{409, "stale", "a search is running already: stop it first"};
  if (thread_.joinable()) thread_.join();
  state_ = "running";
  plans_ = most_ = 0;
  best_ms_ = -1;
  error_.reset();
  result_ = nullptr;
  proposal_.reset();
  stop_ = StopToken();
  automatic.stop = stop_;
  automatic.on_progress = [this](int plans, int most, double best_ms) {
    const std::lock_guard inner(mutex_);
    plans_ = plans;
    most_ = most;
    best_ms_ = best_ms;
  };
  thread_ =
      std::thread([this, options = std::move(options), automatic = std::move(automatic), keep_rules,
                   revision] { search(options, automatic, keep_rules, revision); });
}

void PlacementSearch::search(const PolicyOptions& options, const PolicyAutoOptions& automatic,
                             bool keep_rules, int revision) {
  PageJson result{{"revision", revision}, {"kept_rules", keep_rules}};
  std::optional<PageError> error;
  std::optional<ProposedRules> proposal;
  try {
    PolicyOptions searched = options;
    if (!keep_rules) searched.made = without_rules(*options.made);
    const AutoSearch search = search_auto(searched, automatic, false);
    if (!keep_rules || !search.is_kept)
      proposal = {search.is_kept ? std::vector<std::string>() : search.found.lines, keep_rules};
    result["text"] = found_text(search.found, options.made->name(), false);
    result["step_ms"] = search.found.after.score.seconds * 1e3;
    result["fits"] = search.found.after.score.overflow <= 0;
    result["pinned"] = PageJson::array();
    for (const PolicyRule& rule : search.found.pinned_by)
      result["pinned"].push_back(short_text(rule.where) + "  " + selection_text(rule));
  } catch (const Error& caught) {
    error = refused_by(caught);
  } catch (const std::exception& caught) {
    error = PageError{500, "internal", caught.what()};
  }
  const std::lock_guard lock(mutex_);
  state_ = error ? "failed" : "done";
  error_ = std::move(error);
  if (error_) return;
  result_ = std::move(result);
  proposal_ = std::move(proposal);
}

void PlacementSearch::stop() {
  const std::lock_guard lock(mutex_);
  stop_.request_stop();
}

std::optional<ProposedRules> PlacementSearch::proposal() {
  const std::lock_guard lock(mutex_);
  return proposal_;
}

PageJson PlacementSearch::json() {
  const std::lock_guard lock(mutex_);
  return {{"state", state_},
          {"plans", plans_},
          {"most", most_},
          {"best_ms", best_ms_ < 0 ? PageJson() : PageJson(best_ms_)},
          {"error", error_ ? error_json(*error_)["error"] : PageJson()},
          {"result", result_}};
}

}  // namespace tandem::api
