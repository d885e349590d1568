// `tandem policy auto`: searches a placement under memory budgets and writes it as the policy's
// list `auto`.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/json.h"
#include "api/output_file.h"
#include "api/policy/auto_arguments.h"
#include "api/policy/auto_case.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "placement/edit.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;

std::string text_of(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

[[noreturn]] void nothing_fits(const AutoPlan& nearest, int plans) {
  std::vector<Diagnostic> problems;
  for (const DeviceUse& use : nearest.devices) {
    if (!use.limit || use.memory.peak <= *use.limit) continue;
    Diagnostic d;
    d.message =
        fmt::format("none of {} placements fits; the nearest one exceeds {}", plans, use.name);
    d.path = use.memory.peak_at;
    d.expected = "at most " + text_of(*use.limit);
    d.got = fmt::format("{} (parameters {}, state {}, gradients {}, activations {}, workspace {})",
                        text_of(use.memory.peak), text_of(use.memory.parameters),
                        text_of(use.memory.state), text_of(use.memory.gradients),
                        text_of(use.memory.activations), text_of(use.memory.workspace));
    d.fix = "raise the budget, or use a smaller batch_size or micro_batch";
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
          {"fits", plan.score.overflow <= 0}};
}

std::string line_of(const AutoPlan& plan) {
  std::string text = fmt::format("{:.3f} ms a step, {} between devices", plan.score.seconds * 1e3,
                                 bytes_text(plan.score.traffic));
  for (const DeviceUse& use : plan.devices) {
    text += fmt::format(" | {} {}", use.name, text_of(use.memory.peak));
    if (use.limit) text += " of " + text_of(*use.limit);
  }
  return text + (plan.score.overflow > 0 ? " | does not fit" : "");
}

/// Everything that a run of the command finds out.
struct Found {
  std::vector<std::string> lines;
  AutoPlan after;
  std::optional<AutoPlan> before;
  std::vector<std::pair<std::string, AutoPlan>> baselines;
  int plans = 0, most_plans = 0;
  bool finished = false;
  bool pinned = false;             // the rules leave nothing to search
  std::vector<int> lost_comments;  // lines of the file as it was
  /// The policy as it was is faster and fits: the search was short, or its groups too coarse.
  bool is_old_better() const {
    return before && before->score.possible && before->score.overflow <= 0 &&
           before->score.seconds < after.score.seconds * (1 - 1e-9);
  }
};

Found find_placement(AutoCase& of, const std::string& before) {
  Found found;
  try {
    found.before = of.plan_text(before);
  } catch (const Error& error) {  // its old list may be of another model
    if (error.kind() != ErrorKind::usage) throw;
  }
  const AutoResult best = of.search();
  if (!best.score.possible) throw *of.error();
  for (const auto& [name, choices] : of.baselines()) {
    if (const auto plan = of.plan(of.rules_of(choices))) found.baselines.emplace_back(name, *plan);
  }
  const std::vector<std::string> rules = of.rules_of(best.choices);
  if (best.score.overflow > 0) nothing_fits(*of.plan(rules), of.plans());
  const std::vector<std::string> fewer = of.simplified(rules);
  found.after = *of.plan(fewer);
  found.lines = of.commented(fewer);
  found.plans = of.plans();
  found.finished = best.finished && of.all_simplified();
  found.most_plans = of.most_plans();
  return found;
}

/// Lines of the file as it is, where it has no list `auto` that is about to be replaced.
void check_as_written(PolicyCase& of, const std::string& text, const std::string& path) {
  std::vector<Diagnostic> ignored;
  const Policy policy = parse_policy(text, path, {}, &ignored);
  const bool has_auto = std::any_of(policy.rules.begin(), policy.rules.end(), [](const auto& rule) {
    return rule.layer == Layer::automatic;
  });
  if (has_auto) return;
  of.replace_policy(text);
  of.resolved();
}

DeviceProfiles profiles_of(PolicyCase& of, const std::vector<std::string>& devices,
                           const std::string& text, const std::string& path, bool measure) {
  DeviceProfiles profiles;
  for (const std::string& name : devices) {
    of.replace_policy(
        replace_auto(text, path, {"{ at = \"**\", on = " + toml_string(name) + " },"}));
    profiles[name] = of.profile(name, measure);
  }
  return profiles;
}

/// Whether rules that `auto` cannot overrule place every operator and parameter.
bool all_pinned(const ResolvedPolicy& resolved) {
  const auto pinned = [](const Reason& reason) {
    return !reason.follows && (reason.layer == Layer::rules || reason.layer == Layer::command_line);
  };
  return std::all_of(resolved.operators.begin(), resolved.operators.end(),
                     [&](const auto& op) { return op.added || pinned(op.run.reason); }) &&
         std::all_of(resolved.parameters.begin(), resolved.parameters.end(), [&](const auto& p) {
           return pinned(p.param.reason) &&
                  (p.kind != StateKind::parameter || pinned(p.state.reason));
         });
}

Report report_of(const Found& found, const std::string& file, const std::string& times,
                 bool changed) {
  Json baselines = Json::array();
  Report report;
  if (found.pinned) {
    report.text = file + ": its rules place everything already: nothing is left to search\n";
  } else if (found.is_old_better()) {
    report.text = file + ": kept as it is, faster than the best that was found\n";
  } else {
    report.text = file + (changed ? ": auto = [\n" : ": says that already: auto = [\n");
    for (const std::string& line : found.lines) report.text += "  " + line + "\n";
    report.text += "]\n";
  }
  report.text +=
      "before    " + (found.before ? line_of(*found.before) : "not a valid policy") + "\n";
  report.text += "after     " + line_of(found.after) + "\n";
  for (const auto& [name, plan] : found.baselines) {
    Json json = to_json(plan);
    json["name"] = name;
    baselines.push_back(std::move(json));
    const std::string outcome =
        !plan.score.possible ? "not possible" : line_of(plan).substr(0, line_of(plan).find(','));
    report.text += fmt::format("beside    {}: {}{}\n", name, outcome,
                               plan.score.overflow > 0 ? ", does not fit" : "");
  }
  report.text += fmt::format("{} placements compared by the cost model ({})", found.plans, times);
  if (!found.finished) {
    report.text += fmt::format("; more might find a better one: --tries {}",
                               4 * std::int64_t{found.most_plans});
  }
  report.text += "\n";
  report.json = json_text({{"file", file},
                           {"changed", changed},
                           {"auto", found.lines},
                           {"before", found.before ? to_json(*found.before) : Json()},
                           {"after", to_json(found.after)},
                           {"baselines", baselines},
                           {"plans", found.plans},
                           {"most_plans", found.most_plans},
                           {"finished", found.finished},
                           {"pinned", found.pinned},
                           {"lost_comments", found.lost_comments}});
  return report;
}

}  // namespace

Report policy_auto(const PolicyOptions& options, const PolicyAutoOptions& automatic) {
  const Budgets budgets = read_budgets(automatic.budgets);
  PlacingArguments placing{options.place, options.devices};
  placing.text = "policy = 1\n";
  for (const auto& [name, bytes] : budgets) {
    DeviceBinding limit;
    limit.name = name;
    limit.memory_bytes = bytes;
    limit.where.file = "--budget";
    if (name != "cpu") placing.stand_ins.push_back(std::move(limit));
  }
  PolicyCase of(options, std::move(placing));
  const std::string& source = of.config().policy;
  const std::string to = automatic.to.empty() ? source : automatic.to;
  if (to.empty()) {
    Diagnostic d;
    d.message = "policy auto: which file?";
    d.expected = "a policy file as argument, policy = in the configuration, or --to FILE";
    throw Error(ErrorKind::usage, std::move(d));
  }
  const bool exists = !source.empty() && path_exists(source);
  const std::string text = exists ? read_policy_text(source) : new_policy(options.devices);
  const std::string bare = replace_auto(text, to, {});

  DeviceProfiles profiles = of.profiles();
  std::vector<std::string> known = device_names(options, text, {{"gpu", 0}}, profiles);
  check_budget_names(budgets, known);
  const std::vector<std::string> devices = device_names(options, text, budgets, profiles);
  if (exists) check_as_written(of, text, source);
  AutoCase candidates(of, bare, devices, budgets, automatic.most_plans);
  candidates.check_devices();
  std::string times = options.profile.empty() ? "assumed times" : "times of " + options.profile;
  if (automatic.measure || !automatic.save_profile.empty())
    profiles = profiles_of(of, devices, bare, to, automatic.measure);
  if (automatic.measure) {
    of.set_profiles(profiles);
    times = automatic.save_profile.empty()
                ? "measured times, not stored: --save-profile FILE makes this repeatable"
                : "measured times, stored in " + automatic.save_profile;
  }
  if (!automatic.save_profile.empty())
    write_output(automatic.save_profile, device_profiles_json(profiles), "--save-profile",
                 "tandem_device_profile");
  of.replace_policy(bare);
  const bool pinned = all_pinned(of.resolved());
  Found found = find_placement(candidates, text);
  found.pinned = pinned;
  const bool kept = (found.pinned && found.before) || found.is_old_better();
  const std::string after = kept ? text : replace_auto(bare, to, found.lines);
  std::error_code none;
  const bool changed =
      !std::filesystem::is_regular_file(to, none) || read_file(to, most_bytes) != after;
  const bool in_place = exists && path_exists(to) && std::filesystem::equivalent(source, to, none);
  if (changed) write_output(to, after, in_place ? to : "--to", in_place ? "policy" : "");
  const std::string shown =
      std::filesystem::path(to).lexically_proximate(current_folder()).string();
  const std::string name = shown.starts_with("..") ? to : shown;
  if (changed && in_place && !kept) found.lost_comments = comments_in_auto(text, source);
  Report report = report_of(found, name, times, changed);
  for (const int line : found.lost_comments) {
    report.warnings.push_back(fmt::format(
        "{}:{}: this comment stood in the list auto, which is replaced whole; it is gone (write "
        "remarks outside of it, or as `why` of your rules)",
        name, line));
  }
  return report;
}

}  // namespace tandem::api
