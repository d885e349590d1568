// Placements that `policy auto` tries, each as the rules that it would write: resolved, compiled
// and simulated like any policy.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "placement/auto/search.h"
#include "placement/auto/shardings.h"
#include "placement/auto/tried_model.h"
#include "placement/report/remedies.h"

namespace tandem {

struct DeviceUse {
  std::string name;
  std::size_t operators = 0;  // how many run there, but for those that training adds
  MemoryUse memory;
  std::optional<std::size_t> limit;  // bytes; unset for the host where it may swap
};

/// The outcome of one list `auto`.
struct AutoPlan {
  AutoScore score;
  std::vector<DeviceUse> devices;
  double exchanged = 0, exposed = 0;  // between ranks: bytes of a step, seconds waited for
  std::string refusal;                // why it is not possible
};

/// How the caller follows a search, and ends it.
struct AutoWatch {
  /// Called after each placement that was compared: how many there were, how many there can be, and
  /// the best score so far; no score while none was possible.
  std::function<void(int plans, int most, const std::optional<AutoScore>& best)> on_progress = {};
  /// Asked before each placement: true ends the search with the best so far.
  std::function<bool()> stop_requested = {};
};

/// The default number of placements to compare: the cost of one grows faster than the model.
int usual_plans(std::size_t operators);

/// Indices of the hand-written rules that place everything; none where something is left.
std::set<int> pinning_rules(const ResolvedPolicy& resolved);

class AutoCase {
 public:
  /// Tries lists in place of the one that the policy of `of` has. `devices`: what rules may name,
  /// "cpu" first. `most_plans`: 0 means `usual_plans`.
  AutoCase(TriedModel& of, std::vector<std::string> devices,
           std::map<std::string, std::uint64_t> budgets, int most_plans);

  /// Throws Error{usage} where a device is missing or the policy itself is wrong; a missing device
  /// is reported at the argument or the table that names it.
  void check_devices();
  /// The choices that people would begin with, by name.
  const std::vector<std::pair<std::string, AutoChoices>>& baselines() const { return baselines_; }
  /// `watch` can end the search after the first placement.
  AutoResult search(const AutoWatch& watch = {});
  /// Whether `watch` has ended the search.
  bool is_stopped() const { return is_stopped_; }
  /// What several ranks may shard under these rules.
  std::vector<ShardWay> shard_ways(const PolicyRules& rules);

  PolicyRules rules_of(const AutoChoices& choices) const;
  /// Gives the model the policy with these rules as its list `auto`.
  void try_rules(const PolicyRules& rules);
  /// Rules that resolve to the same placement are planned once. Nothing where a search has made as
  /// many plans as it may.
  std::optional<AutoPlan> plan(const PolicyRules& rules);
  /// The plan for these choices, written after all rules of the file, so that they override them.
  AutoPlan plan_behind(const AutoChoices& choices);
  /// The plan for the policy as it was, with its old list; throws what is wrong there.
  AutoPlan plan_before();
  /// The rules without those that change nothing or gain nothing; of many rules some may stay
  /// unchecked.
  PolicyRules simplified(PolicyRules rules);
  /// The rules as lines of a file, each followed by a comment that says what it decides.
  std::vector<std::string> commented(const PolicyRules& rules);
  /// The rules outside of the list `auto` that together place every operator and parameter; none
  /// where something is left to search.
  PolicyRules pinned_by();
  /// Rules that make room where `rules` do not fit.
  std::vector<Remedy> remedies(const PolicyRules& rules);

  int plans() const { return plans_; }
  /// How many plans a search may make.
  int most_plans() const { return most_plans_; }
  /// Whether `simplified` has looked at all rules.
  bool all_simplified() const { return all_simplified_; }
  /// The error of the first placement that was not possible.
  const std::optional<Error>& error() const { return error_; }

 private:
  void say_of(const std::string& device, Diagnostic& problem) const;
  void make_options();
  void make_baselines();
  std::vector<AutoChoices> cuts() const;
  AutoChoices everywhere(const AutoChoice& choice) const;
  AutoPlan measure_plan();
  AutoPlan plan_of(const PlannedStep& step);
  std::string resolved_key();

  TriedModel& of_;
  const RunPolicy before_, without_auto_;
  const std::vector<std::string> devices_;
  const std::map<std::string, std::uint64_t> budgets_;
  int most_plans_;
  int plans_ = 0;
  bool searching_ = false, all_simplified_ = true, is_stopped_ = false;
  AutoGroups groups_;
  std::vector<AutoChoices> options_;  // per group
  std::vector<std::pair<std::string, AutoChoices>> baselines_;
  std::map<std::string, AutoPlan> known_;  // by what the rules resolve to
  std::optional<Error> error_;
};

}  // namespace tandem
