// Placements that `policy auto` tries, each as the rules that it would write: resolved, compiled
// and simulated like any policy.
#pragma once

#include <functional>
#include <map>
#include <optional>
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
  MemoryUse memory;
  std::optional<std::size_t> limit;  // bytes; nothing: the host's, which may swap
};

/// What became of one list `auto`.
struct AutoPlan {
  AutoScore score;
  std::vector<DeviceUse> devices;
  double exchanged = 0, exposed = 0;  // between ranks: bytes of a step, seconds that are waited for
  std::string refusal;                // why it is not possible
};

/// Somebody who waits for a search.
struct AutoWatch {
  /// After each placement that was compared: how many, how many at most, and the best so far;
  /// nothing while none was possible.
  std::function<void(int plans, int most, const std::optional<AutoScore>& best)> on_progress = {};
  /// Asked before each placement: true ends the search with the best so far.
  std::function<bool()> stop_requested = {};
};

/// How many placements to compare where nobody says: what one takes grows faster than the model.
int usual_plans(std::size_t operators);

class AutoCase {
 public:
  /// `text`: the policy without its list `auto`. `devices`: what rules may name, "cpu" first.
  /// `most_plans`: 0: as many as usual.
  AutoCase(TriedModel& of, std::string text, std::vector<std::string> devices,
           std::map<std::string, std::uint64_t> budgets, int most_plans);

  /// Throws Error{usage} where a device is not there or the policy itself is wrong; a device is
  /// said of the argument or the table that names it.
  void check_devices();
  /// The choices that people would begin with, by name.
  const std::vector<std::pair<std::string, AutoChoices>>& baselines() const { return baselines_; }
  /// Once a first placement is compared, `watch` may end it.
  AutoResult search(const AutoWatch& watch = {});
  /// Whether `watch` has.
  bool is_stopped() const { return is_stopped_; }
  /// What several ranks may share out under these rules.
  std::vector<ShardWay> shard_ways(const std::vector<std::string>& rules);

  std::vector<std::string> rules_of(const AutoChoices& choices) const;
  /// Plans are remembered by what they come to. Nothing where a search has made as many as it may.
  std::optional<AutoPlan> plan(const std::vector<std::string>& rules);
  /// These choices behind all rules of the file, whatever those say.
  AutoPlan plan_behind(const AutoChoices& choices);
  /// A text as it stands; throws what is wrong with it.
  AutoPlan plan_text(const std::string& text);
  /// Without the rules that change nothing, and those that gain nothing; of many rules some may
  /// stay that are not looked at.
  std::vector<std::string> simplified(std::vector<std::string> rules);
  /// With what each rule decides as a comment behind it.
  std::vector<std::string> commented(const std::vector<std::string>& rules);
  /// The rules, the list `auto` aside, that place every operator and parameter between them; none
  /// where something is left to search. `before`: the policy with its old list.
  std::vector<PolicyRule> pinned_by(const std::string& before);
  /// Rules that make room where `rules` do not fit.
  std::vector<Remedy> remedies(const std::vector<std::string>& rules);

  const std::string& path() const { return path_; }
  int plans() const { return plans_; }
  /// That a search may make.
  int most_plans() const { return most_plans_; }
  /// Whether `simplified` has looked at all rules.
  bool all_simplified() const { return all_simplified_; }
  /// Of the first placement that was not possible.
  const std::optional<Error>& error() const { return error_; }

 private:
  /// Lines of a list that is only tried stand in no file: such problems are said of the device,
  /// where one is given.
  std::vector<Diagnostic> without_tried_lines(std::vector<Diagnostic> problems,
                                              const std::string& device = "") const;
  void say_of(const std::string& device, Diagnostic& problem) const;
  void make_options();
  void make_baselines();
  std::vector<AutoChoices> cuts() const;
  AutoChoices everywhere(const AutoChoice& choice) const;
  AutoPlan measure_plan();
  AutoPlan plan_of(const PlannedStep& step);
  std::string resolved_key();
  std::string with_rules(const std::vector<std::string>& rules) const;

  TriedModel& of_;
  const std::string text_;
  const std::string path_;
  const std::vector<std::string> devices_;
  const std::map<std::string, std::uint64_t> budgets_;
  int most_plans_;
  int plans_ = 0;
  bool searching_ = false, all_simplified_ = true, is_stopped_ = false;
  AutoGroups groups_;
  std::vector<AutoChoices> options_;  // per group
  std::vector<std::pair<std::string, AutoChoices>> baselines_;
  std::map<std::string, AutoPlan> known_;    // by what is resolved
  std::map<std::string, AutoPlan> by_text_;  // by rules
  std::optional<Error> error_;
};

}  // namespace tandem
