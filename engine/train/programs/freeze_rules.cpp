#include "engine/train/programs/freeze_rules.h"

#include <algorithm>

#include "engine/config/keys/config_value.h"

namespace tandem {

FreezeRules::FreezeRules(const ParametersConfig& config, const ParameterNames& names)
    : rules_(config.freeze), names_(names) {
  for (const FreezeRule& rule : rules_) selectors_.emplace_back(rule.at);
}

int FreezeRules::last_of(const State& parameter) const {
  for (std::size_t i = selectors_.size(); i-- > 0;) {
    if (names_.covers(selectors_[i], parameter)) return static_cast<int>(i);
  }
  return -1;
}

const FreezeRule* FreezeRules::of(const State& parameter) const {
  const int last = last_of(parameter);
  return last < 0 ? nullptr : &rules_[static_cast<std::size_t>(last)];
}

bool FreezeRules::freezes(const State& parameter, const std::vector<bool>& thawed) const {
  const int last = last_of(parameter);
  if (last < 0) return false;
  const auto rule = static_cast<std::size_t>(last);
  return rule >= thawed.size() || !thawed[rule];
}

bool FreezeRules::always_freezes(const State& parameter) const {
  const FreezeRule* rule = of(parameter);
  return rule != nullptr && !rule->until && !rule->from;
}

std::vector<std::string> FreezeRules::without_effect(const Graph& graph) const {
  std::vector<bool> decides(rules_.size(), false);
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter) continue;
    if (const int last = last_of(state); last >= 0) decides[static_cast<std::size_t>(last)] = true;
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (decides[i]) continue;
    lines.push_back(where_text(rules_[i].where) + ": parameters.freeze: \"" + to_string(rules_[i]) +
                    "\" has no effect: later rules cover all that it covers, and the last one "
                    "that covers a parameter counts");
  }
  return lines;
}

std::vector<bool> thawed_after(const std::vector<FreezeRule>& rules, const RunLength& length,
                               std::int64_t steps_done, std::vector<bool> before) {
  std::vector<bool> result = std::move(before);
  result.resize(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].from)
      result[i] = !length.has_passed(*rules[i].from, steps_done);
    else
      result[i] = result[i] || (rules[i].until && length.has_passed(*rules[i].until, steps_done));
  }
  return result;
}

std::vector<bool> thawed_where_most_trains(const std::vector<FreezeRule>& rules) {
  std::vector<bool> thawed;
  for (const FreezeRule& rule : rules) thawed.push_back(rule.until || rule.from);
  return thawed;
}

std::vector<FreezePhase> freeze_phases(const std::vector<FreezeRule>& rules,
                                       const RunLength& length) {
  std::vector<std::int64_t> borders;  // steps done before a phase
  for (const FreezeRule& rule : rules) {
    const std::optional<Duration>& turn = rule.from ? rule.from : rule.until;
    if (!turn || turn->unit == Duration::Unit::seconds) continue;
    const bool in_epochs = turn->unit == Duration::Unit::epochs;
    const std::int64_t done = turn->steps(length.steps_per_epoch) + (in_epochs ? length.origin : 0);
    if (done > 0 && done < length.steps) borders.push_back(done);
  }
  std::sort(borders.begin(), borders.end());
  std::vector<FreezePhase> phases{{1, thawed_after(rules, length, 0, {})}};
  for (const std::int64_t done : borders) {
    std::vector<bool> now = thawed_after(rules, length, done, phases.back().thawed);
    if (now != phases.back().thawed) phases.push_back({done + 1, std::move(now)});
  }
  return phases;
}

Error error_in_phase(const Error& error, const std::vector<FreezeRule>& rules,
                     const FreezePhase& before, const FreezePhase& phase) {
  std::string note;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (phase.thawed[i] != before.thawed[i])
      note += (note.empty() ? ", by parameters.freeze " : ", ") + to_string(rules[i]);
  }
  std::vector<Diagnostic> problems = error.diagnostics();
  for (Diagnostic& d : problems)
    d.message += " (from step " + std::to_string(phase.first_step) + " on" + note + ")";
  return {error.kind(), std::move(problems)};
}

}  // namespace tandem
