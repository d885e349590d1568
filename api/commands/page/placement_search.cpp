#include "api/commands/page/placement_search.h"

#include "api/policy/auto_search.h"
#include "placement/policy_text.h"
#include "placement/quantities.h"

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

std::vector<std::string> budgets_of(const RequestBody& body) {
  std::vector<std::string> budgets;
  if (!body.has("budgets")) return budgets;
  for (const auto& [name, size] : body.values("budgets")) {
    if (!size) continue;
    if (!parse_size(*size))
      throw PageError{422, "bad_size",
                      "\"" + *size + "\" for " + name +
                          " is no size: write a number with a unit, such as 200MiB or 1.5GiB"};
    budgets.push_back(name + "=" + *size);
  }
  return budgets;
}

/// What a placement means in few numbers.
PageJson outcome_of(const AutoPlan& plan) {
  PageJson devices = PageJson::array();
  for (const DeviceUse& use : plan.devices) {
    devices.push_back({{"device", use.name},
                       {"operators", use.operators},
                       {"stored", use.memory.parameters + use.memory.state},
                       {"peak", use.memory.peak}});
  }
  return {{"step_ms", plan.score.seconds * 1e3},
          {"possible", plan.score.possible},
          {"fits", plan.score.possible && plan.score.overflow <= 0},
          {"devices", devices}};
}

PageError search_error(const Error& error) {
  PageError refused = refused_by(error);
  if (error.kind() == ErrorKind::does_not_fit) refused.code = "does_not_fit";
  if (error.kind() == ErrorKind::runtime)
    refused = {422, "stopped", "The search was stopped before it found a placement that fits."};
  return refused;
}

}  // namespace

PolicyAutoOptions search_options(const RequestBody& body) {
  PolicyAutoOptions automatic;
  automatic.budgets = budgets_of(body);
  if (body.has("tries")) automatic.most_plans = body.integer("tries");
  if (automatic.most_plans < 0 || automatic.most_plans > 1'000'000)
    bad_request("tries: from 1 to 1000000");
  return automatic;
}

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
    const FoundPlacement& found = search.found;
    result.update(outcome_of(search.is_kept && found.before ? *found.before : found.after));
    result["compared"] = PageJson::array();
    for (const auto& [name, plan] : found.baselines) {
      result["compared"].push_back(outcome_of(plan));
      result["compared"].back()["name"] = name;
    }
  } catch (const Error& caught) {
    error = search_error(caught);
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
