#include "placement/auto/auto_case.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "placement/quantities.h"

namespace tandem {
namespace {

constexpr std::size_t most_groups = 20;

constexpr int most_usual_plans = 600, least_usual_plans = 75;
constexpr int least_trials = 16;           // how many rules are tried without, at least
constexpr double operators_of_most = 100;  // the most plans for up to this many operators

// A plan refused with the first problem: "deep:weight: its columns cannot be sharded: …".
AutoPlan impossible(const Error& error) {
  AutoPlan plan;
  plan.score.possible = false;
  const std::vector<Diagnostic>& all = error.diagnostics();
  if (all.empty()) return plan;
  plan.refusal = (all[0].path.empty() ? "" : all[0].path + ": ") + all[0].message;
  if (all.size() > 1) plan.refusal += fmt::format(" (and {} more)", all.size() - 1);
  return plan;
}

TriedPlan as_tried(const AutoPlan& plan) {
  TriedPlan tried;
  tried.seconds = plan.score.seconds;
  for (const DeviceUse& use : plan.devices)
    tried.peaks.push_back({use.name, use.memory.peak, !use.limit || use.memory.peak <= *use.limit});
  return tried;
}

// The policy without its list `auto`, and without what is wrong there.
RunPolicy without_auto(RunPolicy policy) {
  std::erase_if(policy.policy.rules,
                [](const PolicyRule& rule) { return rule.layer == Layer::automatic; });
  std::erase_if(policy.options.earlier,
                [](const Diagnostic& problem) { return problem.path.starts_with("auto."); });
  return policy;
}

}  // namespace

std::set<int> pinning_rules(const ResolvedPolicy& resolved) {
  std::set<int> rules;
  bool all = true;
  const auto look = [&](const Reason& reason) {
    const bool mine = reason.layer == Layer::rules || reason.layer == Layer::command_line;
    if (!mine || reason.follows) all = false;
    rules.insert(reason.rule);
  };
  for (const OperatorAttributes& op : resolved.operators) {
    if (!op.added) look(op.run.reason);
  }
  for (const ParameterAttributes& parameter : resolved.parameters) {
    look(parameter.param.reason);
    if (parameter.kind == StateKind::parameter) look(parameter.state.reason);
  }
  return all ? rules : std::set<int>{};
}

int usual_plans(std::size_t operators) {
  const double larger = std::max(1.0, static_cast<double>(operators) / operators_of_most);
  return std::max(least_usual_plans, static_cast<int>(most_usual_plans / (larger * larger)));
}

AutoCase::AutoCase(TriedModel& of, std::vector<std::string> devices,
                   std::map<std::string, std::uint64_t> budgets, int most_plans)
    : of_(of),
      before_(of.policy()),
      without_auto_(without_auto(before_)),
      devices_(std::move(devices)),
      budgets_(std::move(budgets)),
      most_plans_(most_plans) {}

void AutoCase::try_rules(const PolicyRules& rules) {
  RunPolicy tried = without_auto_;
  PolicyRules& all = tried.policy.rules;
  all.insert(all.begin(), rules.begin(), rules.end());
  for (std::size_t r = 0; r < rules.size(); ++r) all[r].layer = Layer::automatic;
  of_.replace_policy(std::move(tried));
}

void AutoCase::check_devices() {
  const std::string& file = before_.policy.file;
  for (std::size_t d = devices_.size(); d-- > 0;) {
    PolicyRule rule = rule_on("**", devices_[d]);
    rule.where.file = file;  // but in no line of it
    try_rules({rule});
    try {
      of_.resolved();
    } catch (const Error& error) {
      std::vector<Diagnostic> problems = error.diagnostics();
      for (Diagnostic& problem : problems) {
        if (problem.file == file && problem.line == 0) say_of(devices_[d], problem);
      }
      throw Error(error.kind(), std::move(problems));
    }
  }
  if (most_plans_ < 1) most_plans_ = usual_plans(of_.resolved().operators.size());
  groups_ = make_auto_groups(of_.graph(), added_parts(of_.resolved()), most_groups);
  make_options();
  make_baselines();
}

// Reports a problem at what asks for the device: an argument, or the table of the policy.
void AutoCase::say_of(const std::string& device, Diagnostic& problem) const {
  for (const std::string& argument : before_.added_devices) {
    if (argument.starts_with(device + "=")) problem.file = "--device";
  }
  if (budgets_.contains(device)) problem.file = "--budget";
  problem.path = (problem.file == before_.policy.file ? "devices." : "") + device;
}

void AutoCase::make_options() {
  const int count = static_cast<int>(devices_.size());
  for (const AutoGroup& group : groups_.groups) {
    AutoChoices& options = options_.emplace_back();
    for (int d = 0; d < count; ++d) {
      const int home = group.has_parameters ? d : -1;
      options.push_back({d, home, home});
    }
    for (int d = 1; d < count && group.has_parameters; ++d) {
      options.push_back({d, d, 0});
      if (group.parameter.empty()) options.push_back({d, 0, 0});
    }
  }
}

AutoChoices AutoCase::everywhere(const AutoChoice& choice) const {
  AutoChoices all;
  for (const AutoGroup& group : groups_.groups) {
    const bool has = group.has_parameters;
    all.push_back({choice.run, has ? choice.param : -1, has ? choice.state : -1});
  }
  return all;
}

void AutoCase::make_baselines() {
  const AutoChoices host = everywhere({0, 0, 0});
  baselines_.emplace_back("all on cpu", host);
  for (int d = 1; d < static_cast<int>(devices_.size()); ++d) {
    const std::string& name = devices_[d];
    const AutoChoices there = everywhere({d, d, d});
    baselines_.emplace_back("all on " + name, there);
    AutoChoices tables = there, layers = there;
    bool odd = true, any_table = false;
    for (std::size_t g = 0; g < there.size(); ++g) {
      const AutoGroup& group = groups_.groups[g];
      if (group.looks_up) tables[g] = host[g];
      any_table |= group.looks_up;
      if (group.has_parameters) odd = !odd;
      if (odd) layers[g] = host[g];
    }
    if (any_table) baselines_.emplace_back("embeddings on cpu, else " + name, tables);
    baselines_.emplace_back("optimizer state on cpu, else " + name, everywhere({d, d, 0}));
    baselines_.emplace_back("every other layer on cpu, else " + name, layers);
    baselines_.emplace_back("weights on cpu, computed with on " + name, everywhere({d, 0, 0}));
  }
}

// Placements with a first part on the cpu and the rest on the device, and the other way round.
std::vector<AutoChoices> AutoCase::cuts() const {
  std::vector<AutoChoices> all;
  const AutoChoices host = everywhere({0, 0, 0});
  for (int d = 1; d < static_cast<int>(devices_.size()); ++d) {
    const AutoChoices there = everywhere({d, d, d});
    for (std::size_t cut = 1; cut < there.size(); ++cut) {
      AutoChoices first = there, second = host;
      for (std::size_t g = cut; g < there.size(); ++g) std::swap(first[g], second[g]);
      all.push_back(std::move(first));
      all.push_back(std::move(second));
    }
  }
  return all;
}

AutoResult AutoCase::search(const AutoWatch& watch) {
  AutoProblem problem;
  problem.options = options_;
  bool is_first = true;
  std::optional<AutoScore> best_score;
  std::map<AutoChoices, AutoScore> scores;
  problem.score = [&](const AutoChoices& choices) -> std::optional<AutoScore> {
    if (!is_first && watch.stop_requested && watch.stop_requested()) is_stopped_ = true;
    if (is_stopped_) return std::nullopt;
    if (const auto known = scores.find(choices); known != scores.end()) return known->second;
    is_first = false;
    const int before = plans_;
    const std::optional<AutoPlan> tried = plan(rules_of(choices));
    if (!tried) return std::nullopt;
    const AutoScore& score = scores[choices] = tried->score;
    if (score.possible && (!best_score || better(score, *best_score))) best_score = score;
    if (plans_ > before && watch.on_progress) watch.on_progress(plans_, most_plans_, best_score);
    return score;
  };
  std::vector<AutoChoices> starts;
  for (const auto& [name, choices] : baselines_) starts.push_back(choices);
  for (AutoChoices& cut : cuts()) starts.push_back(std::move(cut));
  searching_ = true;
  AutoResult best = search_placement(problem, starts);
  searching_ = false;
  return best;
}

std::vector<ShardWay> AutoCase::shard_ways(const PolicyRules& rules) {
  try_rules(rules);
  return tandem::shard_ways(of_.resolved(), of_.graph());
}

PolicyRules AutoCase::rules_of(const AutoChoices& choices) const {
  const std::string builtin = of_.policy().options.default_device;
  const auto found = std::find(devices_.begin(), devices_.end(), builtin);
  const int device = found == devices_.end() ? 0 : static_cast<int>(found - devices_.begin());
  return auto_rules(groups_, choices, device, devices_);
}

std::string AutoCase::resolved_key() {
  const ResolvedPolicy& resolved = of_.resolved();
  std::string key;
  const auto add = [&](int device) { key += resolved.devices[device].name + " "; };
  for (const OperatorAttributes& op : resolved.operators) {
    if (op.added && op.run.reason.layer == Layer::builtin) {
      key += "- ";
    } else {
      add(op.run.value);
    }
  }
  for (const ParameterAttributes& parameter : resolved.parameters) {
    add(parameter.param.value);
    add(parameter.state.value);
    key += std::string(name_of(parameter.shard.value)) + " ";
  }
  return key;
}

AutoPlan AutoCase::measure_plan() {
  AutoPlan plan = plan_of(of_.plan(PlannedPrograms::step));
  // What the other programs of a run hold in addition only matters near a limit.
  constexpr double near = 0.75;
  const bool is_near =
      std::any_of(plan.devices.begin(), plan.devices.end(), [&](const DeviceUse& use) {
        return use.limit &&
               static_cast<double>(use.memory.peak) > near * static_cast<double>(*use.limit);
      });
  return is_near && plan.score.overflow <= 0 ? plan_of(of_.plan(PlannedPrograms::run)) : plan;
}

AutoPlan AutoCase::plan_of(const PlannedStep& step) {
  const std::vector<ResolvedDevice>& devices = of_.resolved().devices;
  AutoPlan plan;
  plan.score.seconds = step.seconds;
  plan.score.traffic = static_cast<double>(traffic_of(step.crossings).bytes);
  for (const PlannedExchange& exchange : step.exchanges) {
    const auto times = static_cast<double>(exchange.times);
    plan.exchanged += times * static_cast<double>(exchange.bytes);
    plan.exposed += times * exchange.exposed;
  }
  for (std::size_t d = 0; d < devices.size(); ++d) {
    DeviceUse& use = plan.devices.emplace_back();
    use.name = devices[d].name;
    use.memory = step.memory[d];
    for (const OperatorAttributes& op : of_.resolved().operators)
      if (!op.added && op.run.value == static_cast<int>(d)) ++use.operators;
    if (step.limited[d]) use.limit = step.limits[d];
    if (const auto budget = budgets_.find(use.name); budget != budgets_.end()) {
      const std::size_t bytes = budget->second;
      use.limit = use.limit ? std::min(*use.limit, bytes) : bytes;
    }
    if (use.limit && use.memory.peak > *use.limit)
      plan.score.overflow += static_cast<double>(use.memory.peak - *use.limit);
  }
  return plan;
}

AutoPlan AutoCase::plan_before() {
  of_.replace_policy(before_);
  return measure_plan();
}

AutoPlan AutoCase::plan_behind(const AutoChoices& choices) {
  constexpr int nowhere = -1;  // rules state every choice, that of the default device as well
  RunPolicy tried = without_auto_;
  for (PolicyRule& rule : auto_rules(groups_, choices, nowhere, devices_))
    tried.policy.rules.push_back(std::move(rule));
  try {
    of_.replace_policy(std::move(tried));
    return measure_plan();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return impossible(error);
  }
}

std::optional<AutoPlan> AutoCase::plan(const PolicyRules& rules) {
  std::string key;  // "" where nothing could be resolved
  AutoPlan plan;
  try {
    try_rules(rules);
    key = resolved_key();
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    if (searching_ && plans_ >= most_plans_) return std::nullopt;
    ++plans_;
    plan = measure_plan();
  } catch (const Error& error) {  // no kernel there, or a parameter without a home
    if (error.kind() != ErrorKind::usage) throw;
    if (!error_) error_ = error;
    plan = impossible(error);
  }
  if (!key.empty()) known_.emplace(key, plan);
  return plan;
}

PolicyRules AutoCase::simplified(PolicyRules rules) {
  if (is_stopped_) {
    all_simplified_ = false;
    return rules;
  }
  std::optional<AutoPlan> now = plan(rules);
  int trials = std::max(least_trials, most_plans_ / 4);  // n rules can ask for n * n / 2
  for (std::size_t i = rules.size(); i-- > 0;) {         // exceptions first
    all_simplified_ = trials-- > 0;
    if (!all_simplified_) break;
    PolicyRules fewer = rules;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const std::optional<AutoPlan> then = plan(fewer);
    if (!now || !then || better(now->score, then->score)) continue;
    rules = std::move(fewer);
    now = then;
    i = rules.size();
  }
  return rules;
}

std::vector<std::string> AutoCase::commented(const PolicyRules& rules) {
  try_rules(rules);
  const ResolvedPolicy& resolved = of_.resolved();
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const PolicyRule& rule : rules) {
    lines.push_back(to_toml(rule) + ",");
    width = std::max(width, lines.back().size());
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    ItemCounts counts;
    std::size_t bytes = 0;
    const auto decides = [&](const Reason& reason) {
      return reason.rule == static_cast<int>(r) && !reason.follows;
    };
    for (const OperatorAttributes& op : resolved.operators) {
      if (decides(op.run.reason)) counts.add_operator(op.added);
    }
    for (const ParameterAttributes& parameter : resolved.parameters) {
      if (!decides(parameter.param.reason) && !decides(parameter.state.reason) &&
          !decides(parameter.shard.reason))
        continue;
      counts.add_parameter(parameter.kind);
      bytes += parameter.bytes;
    }
    const std::vector<std::string> most = nonzero_counts(counts);
    lines[r] = fmt::format("{:<{}}  # {}, {}", lines[r], width,
                           most.empty() ? "0 operators" : most[0], bytes_text(bytes));
  }
  return lines;
}

PolicyRules AutoCase::pinned_by() {
  try_rules({});
  PolicyRules rules;
  try {
    for (const int rule : pinning_rules(of_.resolved()))
      rules.push_back(without_auto_.policy.rules[static_cast<std::size_t>(rule)]);
  } catch (const Error& error) {  // a parameter without a home, which the list may give it
    if (error.kind() != ErrorKind::usage) throw;
  }
  return rules;
}

std::vector<Remedy> AutoCase::remedies(const PolicyRules& rules) {
  try_rules(rules);
  const TriedPlan full = as_tried(measure_plan());
  return find_remedies(of_.resolved(), full, [&](const PolicyRule& rule) {
    TriedPlan tried;
    of_.with_rule(rule, [&] { tried = as_tried(measure_plan()); });
    return tried;
  });
}

}  // namespace tandem
