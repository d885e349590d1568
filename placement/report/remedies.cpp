#include "placement/report/remedies.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "placement/quantities.h"
#include "placement/report/fit.h"

namespace tandem {
namespace {

/// A remedy that takes more than this many times as long as the fastest one is left out.
constexpr double much_slower = 2;

/// A rule for everything: which homes are on the host, and what becomes of activations.
PolicyRule rule_for_all(std::initializer_list<std::optional<std::string> PolicyRule::*> on_host,
                        std::optional<Activations> acts = {}) {
  PolicyRule rule;
  for (const auto home : on_host) rule.*home = "cpu";
  rule.acts = acts;
  return rule;
}

/// Whether a rule about the same things sets all that `other` sets.
bool sets_all_of(const PolicyRule& rule, const PolicyRule& other) {
  return rule.at.text() == other.at.text() && rule.run == other.run &&
         (!other.param || rule.param == other.param) &&
         (!other.state || rule.state == other.state) && (!other.acts || rule.acts == other.acts);
}

/// Bytes that `plan` saves on the devices that `full` does not fit into; negative: it takes more.
double freed(const TriedPlan& full, const TriedPlan& plan) {
  double bytes = 0;
  for (const DevicePeak& peak : full.peaks) {
    if (peak.fits) continue;
    bytes += static_cast<double>(peak.bytes);
    for (const DevicePeak& now : plan.peaks) {
      if (now.device == peak.device) bytes -= static_cast<double>(now.bytes);
    }
  }
  return bytes;
}

class Remedies {
 public:
  Remedies(const TriedPlan& full, const TryRule& try_rule) : full_(full), try_rule_(try_rule) {}

  void add(const PolicyRule& rule) {
    TriedPlan plan;
    try {
      plan = try_rule_(rule);
    } catch (const Error& error) {  // no kernel on the host, say
      if (error.kind() != ErrorKind::usage) throw;
      return;
    }
    const double bytes = freed(full_, plan);
    const bool suffices = plan.fits();
    // A rule that sets more and frees no more than another is no remedy of its own.
    const bool gains = std::none_of(found_.begin(), found_.end(), [&](const Remedy& other) {
      return sets_all_of(rule, other.rule) && static_cast<double>(other.bytes) >= bytes &&
             other.suffices >= suffices;
    });
    if (bytes < 1 || !gains) return;
    found_.push_back({rule, static_cast<std::size_t>(bytes), suffices, plan.seconds});
  }

  bool any_suffices() const {
    return std::any_of(found_.begin(), found_.end(),
                       [](const Remedy& remedy) { return remedy.suffices; });
  }

  std::vector<Remedy> sorted() const {
    std::vector<Remedy> remedies = found_;
    std::stable_sort(remedies.begin(), remedies.end(), [](const Remedy& a, const Remedy& b) {
      if (a.suffices != b.suffices) return a.suffices;
      return a.suffices ? a.seconds < b.seconds : a.bytes > b.bytes;
    });
    if (!remedies.empty() && remedies.front().suffices) {
      const double fastest = remedies.front().seconds;
      std::erase_if(remedies, [&](const Remedy& remedy) {
        return remedy.seconds > (remedy.suffices ? much_slower : 1) * fastest;
      });
    }
    return remedies;
  }

 private:
  const TriedPlan& full_;
  const TryRule& try_rule_;
  std::vector<Remedy> found_;
};

}  // namespace

bool TriedPlan::fits() const {
  return std::all_of(peaks.begin(), peaks.end(), [](const DevicePeak& peak) { return peak.fits; });
}

TriedPlan tried_plan(const ResolvedPolicy& resolved, const PlannedStep& step) {
  TriedPlan plan;
  plan.seconds = step.seconds;
  for (std::size_t d = 0; d < step.memory.size(); ++d) {
    const std::size_t peak = step.memory[d].peak;
    plan.peaks.push_back({resolved.device_name(static_cast<int>(d)), peak,
                          !step.limited[d] || peak <= step.limits[d]});
  }
  return plan;
}

std::vector<Remedy> find_remedies(const ResolvedPolicy& resolved, const TriedPlan& full,
                                  const TryRule& try_rule) {
  PolicyRules of_tables;
  for (std::size_t d = 1; d < resolved.devices.size(); ++d) {
    const bool is_full = std::any_of(full.peaks.begin(), full.peaks.end(), [&](const auto& peak) {
      return !peak.fits && peak.device == resolved.devices[d].name;
    });
    if (const auto rule = rule_for_table(resolved, static_cast<int>(d)); rule && is_full)
      of_tables.push_back(*rule);
  }
  constexpr auto param = &PolicyRule::param, state = &PolicyRule::state;
  Remedies remedies(full, try_rule);
  remedies.add(rule_for_all({state}));
  remedies.add(rule_for_all({param, state}));
  remedies.add(rule_for_all({}, Activations::recompute));
  remedies.add(rule_for_all({}, Activations::offload));
  remedies.add(rule_on("**", "cpu"));
  for (const PolicyRule& rule : of_tables) remedies.add(rule);
  if (!remedies.any_suffices()) {
    remedies.add(rule_for_all({state}, Activations::recompute));
    remedies.add(rule_for_all({param, state}, Activations::recompute));
  }
  return remedies.sorted();
}

}  // namespace tandem
