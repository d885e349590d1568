// What a policy says that is legal and probably not meant: rules without effect, homes that cost
// copies in every step, keys that do nothing for their device.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/formats/count_text.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"
#include "placement/quantities.h"
#include "placement/resolver.h"
#include "placement/structure.h"

namespace tandem {
namespace {

template <class Visit>
void for_each_reason(const ResolvedPolicy& resolved, const Visit& visit) {
  for (const OperatorAttributes& op : resolved.operators) {
    for (const Reason* r : {&op.run.reason, &op.acts.reason, &op.lookahead.reason}) visit(*r);
  }
  for (const ParameterAttributes& p : resolved.parameters) {
    for (const Reason* r : {&p.param.reason, &p.state.reason, &p.lookahead.reason, &p.ship.reason,
                            &p.cache.reason, &p.shard.reason}) {
      visit(*r);
    }
  }
}

}  // namespace

void PolicyResolver::count_decisions() {
  for_each_reason(result_, [&](const Reason& reason) {
    if (reason.rule >= 0 && !reason.follows) ++result_.rules[reason.rule].decided;
  });
}

void PolicyResolver::note_tf32() {
  const std::vector<ResolvedDevice>& devices = result_.devices;
  if (!options_.tf32 ||
      std::any_of(devices.begin(), devices.end(), [](const ResolvedDevice& device) {
        return device.family() && device.family()->has_tf32;
      }))
    return;
  result_.notes.push_back(
      {.message = "precision.tf32 = true changes nothing: no device of this run is " +
                  nouns_of(&DeviceFamily::has_tf32, true)});
}

std::vector<int> PolicyResolver::winners_over(int rule) const {
  std::set<int> winners;
  for_each_reason(result_, [&](const Reason& reason) {
    const auto& lost = reason.overridden;
    if (std::find(lost.begin(), lost.end(), rule) != lost.end()) winners.insert(reason.rule);
  });
  return {winners.begin(), winners.end()};
}

// Where the policy has a hash, the hash decides: a file may move, or be exported anew.
void PolicyResolver::warn_about_model() {
  const bool hashed = !policy_.model_structure.empty();
  if (!hashed && (policy_.model_file.empty() || options_.model_file.empty())) return;
  const std::string here = structure_hash(graph_);
  std::error_code none;
  if (hashed ? here == policy_.model_structure
             : policy_.model_file == options_.model_file ||
                   std::filesystem::equivalent(policy_.model_file, options_.model_file, none)) {
    return;
  }
  const auto named = [](const std::string& file, const std::string& structure) {
    return file.empty() || structure.empty() ? file + structure : file + " (" + structure + ")";
  };
  Diagnostic d = at(policy_.model_where, hashed ? "model.structure" : "model",
                    "this policy was made for another model");
  d.expected = named(policy_.model_file, policy_.model_structure);
  d.got = named(options_.model_file, hashed ? here : "");
  d.fix = "check it with `tandem policy check`, then update or remove ";
  d.fix += hashed ? "the hash"
                  : "`model`; model = { structure = \"" + here + "\" } means any file of its graph";
  result_.warnings.push_back(std::move(d));
}

void PolicyResolver::warn_about_rules() {
  for (std::size_t r = 0; r < policy_.rules.size(); ++r) {
    const PolicyRule& rule = policy_.rules[r];
    const RuleUse& use = result_.rules[r];
    if (rule.layer == Layer::automatic || !use.matched.any()) continue;
    const bool for_operators = rule.run || rule.acts;
    const bool for_parameters = rule.param || rule.state;
    const std::string& text = rule.at.text();
    Diagnostic d;
    if (for_operators && use.matched.operators + use.matched.added == 0 &&
        text.find(':') == std::string::npos && !text.starts_with("optimizer.")) {
      d = at(rule.where_of("at"), text, "covers parameters only, no operator");
      PolicyRule wider;
      const std::string everything = text + ".**";
      if (!text.starts_with("re:") && text.find("**") == std::string::npos) {
        wider.at = Selector(everything);
        if (!matcher_.match(wider).operators.empty()) {
          d.fix = "\"" + everything + "\" covers the operators too";
        }
      }
    } else if (use.decided + use.fallen > 0) {
      continue;
    } else if (const std::vector<int> winners = winners_over(static_cast<int>(r));
               !winners.empty()) {
      const std::string by = joined(
          winners, ", ", [&](int winner) { return short_text(policy_.rules[winner].where); });
      d = at(rule.where, text, "this rule has no effect: overridden by " + by);
    } else if (for_parameters && !for_operators) {
      d = at(rule.where_of(rule.param ? "param" : "state"), text,
             "sets the home of parameters, but covers none that it could move");
    } else if (for_operators) {
      d = at(rule.where_of(rule.run ? "run" : "acts"), text,
             "sets what operators do, but covers none");
    } else {
      continue;
    }
    result_.warnings.push_back(std::move(d));
  }
}

void PolicyResolver::warn_about_homes() {
  struct Home {
    ItemCounts counts;
    std::size_t bytes = 0;
    int run = 0, home = 0;
  };
  std::map<std::pair<int, bool>, Home> homes;  // by deciding rule; true: the weight, not the state
  for (const ParameterAttributes& p : result_.parameters) {
    if (p.run.size() != 1) continue;
    const int run = p.run[0];
    const State* state = graph_.find_state(p.name);
    const bool trains = p.kind == StateKind::parameter && state->trainable;
    std::size_t moved = p.param.value != run ? 2 * p.bytes : 0;      // forward, backward; or back
    if (trains && p.state.value != run) moved += p.bytes;            // gradient
    if (trains && p.state.value != p.param.value) moved += p.bytes;  // new weight
    const bool weight = p.param.value != run;
    const Reason& reason = weight ? p.param.reason : p.state.reason;
    if (moved == 0 || reason.rule < 0) continue;
    Home& home = homes[{reason.rule, weight}];
    home.counts.add_parameter(p.kind);
    home.bytes += moved;
    home.run = run;
    home.home = weight ? p.param.value : p.state.value;
  }
  for (const auto& [key, home] : homes) {
    const PolicyRule& rule = policy_.rules[key.first];
    const std::string what = key.second ? "weights" : "state";
    Diagnostic d = at(rule.where_of(key.second ? "param" : "state"), rule.at.text(), "");
    d.message = what + " of " + joined(nonzero_counts(home.counts)) + " on " +
                result_.devices[home.home].name + ", read on " + result_.devices[home.run].name +
                ": " + size_text(home.bytes) + " cross every step";
    result_.warnings.push_back(std::move(d));
  }
}

void PolicyResolver::warn_about_acts() {
  std::map<int, std::size_t> idle;  // by deciding rule: operators whose results are there already
  for (const OperatorAttributes& op : result_.operators) {
    const Reason& reason = op.acts.reason;
    const bool on_host = op.run.value == 0 && !(op.added && op.run.reason.layer == Layer::builtin);
    if (reason.rule >= 0 && op.acts.value == Activations::offload && on_host) ++idle[reason.rule];
  }
  for (const auto& [r, count] : idle) {
    const PolicyRule& rule = policy_.rules[r];
    Diagnostic d = at(rule.where_of("acts"), rule.at.text(),
                      "offload does nothing for " + count_text(count, "operator") +
                          " on cpu: what they make is there already");
    d.fix = "acts = \"recompute\" saves memory there";
    result_.warnings.push_back(std::move(d));
  }
}

void PolicyResolver::warn_about_lookahead() {
  std::map<int, std::size_t> cut;  // by deciding rule: tables
  for (const ParameterAttributes& p : result_.parameters) {
    if (p.fetches_ahead() && p.traffic.crosses && p.lookahead.value > 1)
      ++cut[p.lookahead.reason.rule];
  }
  for (const auto& [r, count] : cut) {
    const PolicyRule& rule = policy_.rules[r];
    Diagnostic d = at(rule.where_of("lookahead"), rule.at.text(),
                      "lookahead = " + std::to_string(*rule.lookahead) + " acts as 1 for " +
                          count_text(count, "table") +
                          ": rows that cross further ahead could change before they are read");
    d.fix = "set lookahead = 1";
    result_.warnings.push_back(std::move(d));
  }
}

void PolicyResolver::warn_about_ship() {
  struct Covered {
    ItemCounts counts;
    bool crosses = false;
  };
  std::map<int, Covered> rules;  // by deciding rule
  for (const ParameterAttributes& p : result_.parameters) {
    const Reason& reason = p.ship.reason;
    if (reason.rule < 0) continue;
    Covered& covered = rules[reason.rule];
    covered.counts.add_parameter(p.kind);
    covered.crosses |= p.traffic.crosses;
  }
  for (const auto& [r, covered] : rules) {
    const PolicyRule& rule = policy_.rules[r];
    if (covered.crosses || rule.layer == Layer::automatic) continue;
    Diagnostic d = at(rule.where_of("ship"), rule.at.text(),
                      "ship does nothing for " + joined(nonzero_counts(covered.counts)) +
                          ": it applies to tables on cpu whose lookups an accelerator reads");
    result_.warnings.push_back(std::move(d));
  }
}

void PolicyResolver::warn_about_devices() {
  for (const ResolvedDevice& device : result_.devices) {
    const auto warn = [&](const std::string& key, const std::string& message,
                          const std::string& fix) {
      Diagnostic d =
          at(device.binding.where_of(key), "devices." + device.name + "." + key, message);
      d.fix = fix;
      result_.warnings.push_back(std::move(d));
    };
    const DeviceFamily* family = device.family();
    for (const char* key : {"bandwidth", "latency"}) {
      if (!device.binding.sets(key) || (family && family->has_set_link)) continue;
      if (!family) {
        warn(key,
             "does nothing for the cpu: it applies to " +
                 nouns_of(&DeviceFamily::has_set_link, true) + "'s link",
             "leave it out");
      } else {
        warn(key,
             "does not change the link of " + device.use +
                 ": it only changes the times that plans predict",
             "leave it out; a --profile says what " + noun_with_article(*family) + " is");
      }
    }
    if (device.binding.sets("threads") && family)
      warn("threads", "does nothing for " + device.use + ": it applies to the cpu", "leave it out");
  }
}

}  // namespace tandem
