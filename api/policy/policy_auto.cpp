// `tandem policy auto`: searches for a placement within memory budgets and writes it as the
// policy's list `auto`.
#include <filesystem>

#include <fmt/format.h>

#include "api/output_file.h"
#include "api/policy/auto_search.h"
#include "api/policy/policy_case.h"
#include "engine/formats/files.h"
#include "engine/formats/new_file.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "placement/auto/arguments.h"
#include "placement/device_use.h"
#include "placement/edit.h"
#include "placement/report/data_sheets.h"

namespace tandem::api {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;

DeviceProfiles profiles_of(PolicyCase& of, AutoCase& candidates,
                           const std::vector<std::string>& devices, bool measure) {
  DeviceProfiles profiles;
  for (const std::string& name : devices) {
    candidates.try_rules({rule_on("**", name)});
    profiles[name] = of.profile(name, measure);
  }
  return profiles;
}

PlacingArguments placing_of(const PolicyOptions& options, const Budgets& budgets) {
  PlacingArguments placing{options.place, options.devices};
  placing.text = "policy = 1\n";
  for (const auto& [name, bytes] : budgets) {
    DeviceBinding limit;
    limit.name = name;
    limit.memory_bytes = bytes;
    limit.where.file = "--budget";
    if (name != "cpu") placing.stand_ins.push_back(std::move(limit));
  }
  return placing;
}

AutoWatch watch_of(const PolicyAutoOptions& automatic) {
  AutoWatch watch;
  watch.stop_requested = [&] { return automatic.stop.stop_requested(); };
  if (automatic.on_progress) {
    watch.on_progress = [&](int plans, int most, const std::optional<AutoScore>& best) {
      const bool fits = best && best->overflow <= 0;
      automatic.on_progress(plans, most, fits ? best->seconds * 1e3 : -1);
    };
  }
  return watch;
}

/// Writes the policy next to another file, which stays, and says so.
[[noreturn]] void keep_beside(const std::string& taken, const std::string& text) {
  const std::string beside = unused_name(taken);
  write_output(beside, text, "--to", "");
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "there is another list auto in this file, which stays",
                         .file = "--to",
                         .expected = "a new name, or the list that was found",
                         .got = taken,
                         .fix = "the policy that was found is in " + beside});
}

/// Whether a file is the policy `bare` but for the list `auto`, as an earlier search leaves it.
bool is_earlier_result(const std::string& file, const std::string& bare) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;
  try {
    return replace_auto(read_file(file, most_bytes), file, {}) == bare;
  } catch (const Error&) {  // not a policy
    return false;
  }
}

}  // namespace

AutoSearch search_auto(const PolicyOptions& options, const PolicyAutoOptions& automatic,
                       bool needs_file) {
  const Budgets budgets = read_budgets(automatic.budgets);
  PolicyCase of(options, placing_of(options, budgets));
  AutoSearch result;
  if (!options.made) result.source = of.config().policy;
  result.to = automatic.to.empty() ? result.source : automatic.to;
  if (result.to.empty() && needs_file) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{
            .message = "policy auto: which file?",
            .expected = "a policy file as argument, policy = in the configuration, or --to FILE"});
  }
  if (result.to.empty()) result.to = options.made ? options.made->name() : "policy.toml";
  const bool exists = !result.source.empty() && path_exists(result.source);
  std::error_code none;
  result.in_place = exists && std::filesystem::equivalent(result.source, result.to, none);
  const std::string& text = result.before = options.made ? options.made->text()
                                            : exists     ? read_policy_text(result.source)
                                                         : new_policy(options.devices);
  const std::string bare = replace_auto(text, result.to, {});
  if (needs_file && !result.in_place && !is_earlier_result(result.to, bare))
    check_output(result.to, "--to", "");

  DeviceProfiles profiles = of.profiles();
  std::vector<std::string> known =
      device_names(options.devices, text, {{default_accelerator(), 0}}, profiles, options.ranks);
  check_budget_names(budgets, known);
  const std::vector<std::string> devices =
      device_names(options.devices, text, budgets, profiles, options.ranks);
  of.replace_policy(text);
  const PolicyRules& rules = of.policy().policy.rules;  // those of the list come first
  const bool has_auto = !rules.empty() && rules[0].layer == Layer::automatic;
  // Without a list that is about to be replaced, the file has to be right as it is.
  if ((exists || options.made) && !has_auto) of.resolved();
  AutoCase candidates(of, devices, budgets, automatic.most_plans);
  candidates.check_devices();
  std::string times = options.profile.empty() ? "assumed times"
                      : find_data_sheet(options.profile)
                          ? "times by the data sheet of " + options.profile
                          : "times of " + options.profile;
  if (automatic.measure || !automatic.save_profile.empty())
    profiles = profiles_of(of, candidates, devices, automatic.measure);
  if (automatic.measure) {
    of.set_profiles(profiles);
    times = automatic.save_profile.empty()
                ? "measured times, not stored: --save-profile FILE makes this repeatable"
                : "measured times, stored in " + automatic.save_profile;
  }
  if (!automatic.save_profile.empty())
    write_output(automatic.save_profile, device_profiles_json(profiles), "--save-profile",
                 "tandem_device_profile");
  result.found = find_placement(candidates, options.ranks, watch_of(automatic));
  result.found.times = times;
  const FoundPlacement& found = result.found;
  result.is_kept = (!found.pinned_by.empty() && found.before) || found.is_old_better();
  result.after = result.is_kept ? text : replace_auto(bare, result.to, found.lines);
  return result;
}

inline namespace v1 {

Report policy_auto(const PolicyOptions& options, const PolicyAutoOptions& automatic) {
  AutoSearch result = search_auto(options, automatic, true);
  const std::string& to = result.to;
  std::error_code none;
  const bool is_there = std::filesystem::is_regular_file(to, none);
  const bool changed = !is_there || read_file(to, most_bytes) != result.after;
  if (changed && is_there && !result.in_place) keep_beside(to, result.after);
  if (changed)
    write_output(to, result.after, result.in_place ? to : "--to", result.in_place ? "policy" : "");
  const std::string shown =
      std::filesystem::path(to).lexically_proximate(current_folder()).string();
  const std::string name = shown.starts_with("..") ? to : shown;
  FoundPlacement& found = result.found;
  if (changed && result.in_place && !result.is_kept)
    found.lost_comments = comments_in_auto(result.before, result.source);
  Report report{found_text(found, name, changed), found_json(found, name, changed)};
  for (const int line : found.lost_comments) {
    report.warnings.push_back(
        fmt::format("{}:{}: this comment was in the list auto, which is replaced as a whole; it is "
                    "lost (write remarks outside of it, or as `why` of your rules)",
                    name, line));
  }
  return report;
}

Policy find_policy(const PolicyOptions& options, const PolicyAutoOptions& automatic) {
  const AutoSearch result = search_auto(options, automatic, false);
  return Policy::parse(result.after, result.to);
}

}  // namespace v1
}  // namespace tandem::api
