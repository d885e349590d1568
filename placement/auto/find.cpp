#include "placement/auto/find.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/graph/text.h"
#include "placement/quantities.h"
#include "placement/report/json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::string pinning_text(const PolicyRule& rule) {
  return short_text(rule.where) + "  " + selection_text(rule);
}

// Why no placement fits.
std::string cause_of(const FoundPlacement& found, int plans) {
  if (found.pinned_by.empty())
    return fmt::format("none of {} placements fits; the nearest one exceeds ", plans);
  return "these rules place everything, so that nothing is left to search: " +
         joined(found.pinned_by, ", ", pinning_text) + "; it exceeds ";
}

std::string ways_out(const std::vector<Remedy>& remedies) {
  std::string rules;
  for (const Remedy& remedy : remedies) {
    if (!remedy.suffices) continue;
    rules += fmt::format("{}{}, which frees {} and takes {:.3f} ms a step",
                         rules.empty() ? "add the rule " : ", or ", to_toml(remedy.rule),
                         bytes_text(static_cast<double>(remedy.bytes)), remedy.seconds * 1e3);
  }
  return rules + (rules.empty() ? "" : ", or ") +
         "raise the budget, or use a smaller batch_size or micro_batch";
}

[[noreturn]] void nothing_fits(AutoCase& of, const PolicyRules& rules,
                               const FoundPlacement& found) {
  const AutoPlan nearest = *of.plan(rules);
  const std::string fix = ways_out(of.remedies(rules));
  std::vector<Diagnostic> problems;
  for (const DeviceUse& use : nearest.devices) {
    if (!use.limit || use.memory.peak <= *use.limit) continue;
    Diagnostic d;
    d.message = cause_of(found, of.plans()) + use.name;
    d.path = use.memory.peak_at;
    d.expected = "at most " + bytes_text(*use.limit);
    d.got = fmt::format("{} (parameters {}, state {}, gradients {}, activations {}, workspace {})",
                        bytes_text(use.memory.peak), bytes_text(use.memory.parameters),
                        bytes_text(use.memory.state), bytes_text(use.memory.gradients),
                        bytes_text(use.memory.activations), bytes_text(use.memory.workspace));
    d.fix = fix;
    problems.push_back(std::move(d));
  }
  throw Error(ErrorKind::does_not_fit, std::move(problems));
}

Json to_json(const AutoPlan& plan) {
  Json devices = Json::object();
  for (const DeviceUse& use : plan.devices) {
    devices[use.name] = {{"peak", use.memory.peak}};
    devices[use.name]["limit"] = use.limit ? Json(*use.limit) : Json();
  }
  return {{"step_ms", plan.score.seconds * 1e3},
          {"transfer_bytes", plan.score.traffic},
          {"devices", devices},
          {"possible", plan.score.possible},
          {"fits", plan.score.possible && plan.score.overflow <= 0}};
}

std::string line_of(const AutoPlan& plan) {
  std::string text = fmt::format("{:.3f} ms a step, {} between devices", plan.score.seconds * 1e3,
                                 bytes_text(plan.score.traffic));
  for (const DeviceUse& use : plan.devices) {
    text += fmt::format(" | {} {}", use.name, bytes_text(use.memory.peak));
    if (use.limit) text += " of " + bytes_text(*use.limit);
  }
  return text + (plan.score.overflow > 0 ? " | does not fit" : "");
}

// If a file's rules leave nothing to search: a faster placement that they rule out.
std::string faster_beside(const FoundPlacement& found) {
  if (found.pinned_by.empty() || !found.before) return "";
  const auto fits = [](const AutoPlan& plan) {
    return plan.score.possible && plan.score.overflow <= 0;
  };
  const std::pair<std::string, AutoPlan>* best = nullptr;
  for (const auto& beside : found.baselines) {
    if (fits(beside.second) &&
        (best == nullptr || beside.second.score.seconds < best->second.score.seconds))
      best = &beside;
  }
  constexpr double worth_a_word = 0.99;
  if (best == nullptr || best->second.score.seconds > worth_a_word * found.before->score.seconds)
    return "";
  return fmt::format("faster    without these rules: {}, {:.3f} ms a step\n", best->first,
                     best->second.score.seconds * 1e3);
}

// Adds the rules of the best way to shard after the rules of a placement.
void add_sharding(AutoCase& of, PolicyRules& rules, FoundPlacement& found) {
  PolicyRules chosen;
  std::optional<AutoPlan> best;
  for (const ShardWay& way : of.shard_ways(rules)) {
    PolicyRules all = rules;
    all.insert(all.end(), way.rules.begin(), way.rules.end());
    const AutoPlan plan = *of.plan(all);
    found.shardings.emplace_back(way.name, plan);
    if (best && !better(plan.score, best->score)) continue;
    best = plan;
    found.sharding = way.name;
    found.why = way.why;
    chosen = std::move(all);
  }
  if (best->score.overflow > 0) nothing_fits(of, chosen, found);
  rules = chosen;
}

std::string sharding_text(const FoundPlacement& found) {
  std::string text = fmt::format("ranks     {}: {}{}\n", found.ranks, found.sharding,
                                 found.why.empty() ? "" : " (" + found.why + ")");
  for (const auto& [name, plan] : found.shardings) {
    if (!plan.score.possible) {
      text += fmt::format("  {}: left out: {}\n", name, plan.refusal);
      continue;
    }
    std::size_t bytes = 0;
    for (const DeviceUse& use : plan.devices) bytes += use.memory.peak;
    text += fmt::format(
        "  {}: {:.3f} ms a step, {} a rank, {} exchanged, of which {:.3f} ms are waited for{}\n",
        name, plan.score.seconds * 1e3, bytes_text(bytes),
        bytes_text(static_cast<std::size_t>(plan.exchanged)), plan.exposed * 1e3,
        plan.score.overflow > 0 ? ", does not fit" : "");
  }
  return text;
}

}  // namespace

bool FoundPlacement::is_old_better() const {
  return before && before->score.possible && before->score.overflow <= 0 &&
         before->score.seconds < after.score.seconds * (1 - 1e-9);
}

bool FoundPlacement::is_old_best() const {
  return before && before->score.possible && before->score.overflow <= 0 &&
         before->score.seconds <= after.score.seconds * (1 + 1e-9);
}

FoundPlacement find_placement(AutoCase& of, int ranks, const AutoWatch& watch) {
  FoundPlacement found;
  found.ranks = ranks;
  if (ranks == 1) found.pinned_by = of.pinned_by();
  try {
    found.before = of.plan_before();
  } catch (const Error& error) {  // its old list may be for another model
    if (error.kind() != ErrorKind::usage) throw;
  }
  const AutoResult best = of.search(watch);
  found.stopped = of.is_stopped();
  if (found.stopped && (!best.score.possible || best.score.overflow > 0)) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "interrupted before a placement was found that fits",
                           .fix = "nothing was written"});
  }
  if (!best.score.possible) throw *of.error();
  for (const auto& [name, choices] : of.baselines())
    found.baselines.emplace_back(name, of.plan_behind(choices));
  const PolicyRules rules = of.rules_of(best.choices);
  if (best.score.overflow > 0 && ranks == 1) nothing_fits(of, rules, found);
  PolicyRules fewer = of.simplified(rules);
  if (ranks > 1) add_sharding(of, fewer, found);
  found.after = *of.plan(fewer);
  found.lines = of.commented(fewer);
  found.plans = of.plans();
  found.finished = best.finished && of.all_simplified();
  found.most_plans = of.most_plans();
  return found;
}

std::string found_text(const FoundPlacement& found, const std::string& file, bool changed) {
  std::string text;
  if (!found.pinned_by.empty()) {
    text = file + ": its rules place everything already: nothing is left to search\n";
    for (const PolicyRule& rule : found.pinned_by) text += "  " + pinning_text(rule) + "\n";
    text += "without such a rule, the search places what it covers\n";
  } else if (found.is_old_better()) {
    text = file + ": kept as it is, faster than the best that was found\n";
  } else {
    text = file + (changed ? ": auto = [\n" : ": says that already: auto = [\n");
    for (const std::string& line : found.lines) text += "  " + line + "\n";
    text += "]\n";
  }
  if (found.is_old_best()) {
    text += "as it is  " + line_of(*found.before) + "\n";
    if (found.pinned_by.empty())
      text +=
          fmt::format("          nothing faster was found among {} placements{}\n", found.plans,
                      found.is_old_better() ? "; the best of them: " + line_of(found.after) : "");
  } else {
    text += "before    " + (found.before ? line_of(*found.before) : "not a valid policy") + "\n";
    text += "after     " + line_of(found.after) + "\n";
  }
  for (const auto& [name, plan] : found.baselines) {
    const std::string outcome =
        !plan.score.possible ? "not possible" : line_of(plan).substr(0, line_of(plan).find(','));
    text += fmt::format("compared  {}: {}{}\n", name, outcome,
                        plan.score.overflow > 0 ? ", does not fit" : "");
  }
  text += faster_beside(found);
  if (found.ranks > 1) text += sharding_text(found);
  text += fmt::format("{} placements compared by the cost model ({})", found.plans, found.times);
  if (found.stopped) {
    text += "; interrupted: the best of these";
  } else if (!found.finished) {
    text += fmt::format("; more might find a better one: --tries {}",
                        4 * std::int64_t{found.most_plans});
  }
  text += "\n";
  return text;
}

std::string found_json(const FoundPlacement& found, const std::string& file, bool changed) {
  Json baselines = Json::array();
  for (const auto& [name, plan] : found.baselines) {
    baselines.push_back(to_json(plan));
    baselines.back()["name"] = name;
  }
  Json shardings = Json::array();
  for (const auto& [name, plan] : found.shardings) {
    shardings.push_back(to_json(plan));
    shardings.back()["name"] = name;
    shardings.back()["exchanged_bytes"] = plan.exchanged;
    shardings.back()["exposed_ms"] = plan.exposed * 1e3;
    if (!plan.score.possible) shardings.back()["refusal"] = plan.refusal;
  }
  Json pinned_by = Json::array();
  for (const PolicyRule& rule : found.pinned_by) {
    pinned_by.push_back(
        {{"file", rule.where.file}, {"line", rule.where.line}, {"rule", rule.at.text()}});
  }
  return json_text({{"file", file},
                    {"ranks", found.ranks},
                    {"sharding", found.sharding},
                    {"why", found.why},
                    {"shardings", shardings},
                    {"changed", changed},
                    {"auto", found.lines},
                    {"before", found.before ? to_json(*found.before) : Json()},
                    {"nothing_faster", found.is_old_best()},
                    {"after", to_json(found.after)},
                    {"baselines", baselines},
                    {"plans", found.plans},
                    {"most_plans", found.most_plans},
                    {"finished", found.finished},
                    {"stopped", found.stopped},
                    {"pinned", !found.pinned_by.empty()},
                    {"pinned_by", pinned_by},
                    {"lost_comments", found.lost_comments}});
}

}  // namespace tandem
