#include "placement/resolve.h"

#include <algorithm>

#include "placement/resolver.h"

namespace tandem {

DEFINE_COPIES(ResolvedPolicy);

const OperatorAttributes* ResolvedPolicy::find_node(std::string_view path) const {
  const auto place = by_path_.find(std::string(path));
  return place == by_path_.end() ? nullptr : &operators[place->second];
}

const ParameterAttributes* ResolvedPolicy::find_parameter(std::string_view name) const {
  const auto place = parameter_by_name_.find(std::string(name));
  return place == parameter_by_name_.end() ? nullptr : &parameters[place->second];
}

std::vector<ItemCounts> ResolvedPolicy::counts_by_device() const {
  std::vector<ItemCounts> counts(devices.size());
  for (const OperatorAttributes& op : operators) {
    if (!op.added) counts[op.run.value].add_operator(false);
  }
  for (const ParameterAttributes& p : parameters) counts[p.param.value].add_parameter(p.kind);
  return counts;
}

bool ResolvedPolicy::may_merge(std::span<const std::string> paths) const {
  const OperatorAttributes* first = nullptr;
  for (const std::string& path : paths) {
    const OperatorAttributes* next = find_node(path);
    if (!next) continue;
    if (first && (next->run.value != first->run.value || next->acts.value != first->acts.value ||
                  next->lookahead.value != first->lookahead.value)) {
      return false;
    }
    first = next;
  }
  return true;
}

std::vector<AddedPart> added_parts(const ResolvedPolicy& resolved) {
  std::vector<AddedPart> added;
  for (const OperatorAttributes& op : resolved.operators) {
    if (op.added) added.push_back({op.path, ""});
  }
  return added;
}

PolicyResolver::PolicyResolver(const Policy& policy, const Graph& forward,
                               const ResolveOptions& options, const PlacementFacts& facts)
    : policy_(policy),
      graph_(forward),
      options_(options),
      facts_(facts),
      items_(forward, facts.raw_names, options.added),
      matcher_(forward, items_),
      errors_(options.earlier),
      names_(all_bindings(policy, options),
             options.missing ? options.missing : missing_from(options.machine), options.local,
             errors_) {}

std::vector<DeviceBinding> PolicyResolver::all_bindings(const Policy& policy,
                                                        const ResolveOptions& options) {
  std::vector<DeviceBinding> all = policy.devices;
  all.insert(all.end(), options.bindings.begin(), options.bindings.end());
  return all;
}

ResolvedPolicy PolicyResolver::run() {
  start();
  for (std::size_t r = 0; r < policy_.rules.size(); ++r) apply(static_cast<int>(r));
  for (OperatorAttributes& op : result_.operators) say_fallen(op.run.reason);
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) finish_parameter(p);
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) find_traffic(p);
  finish_caches();
  finish_shards();
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) finish_ship(p);
  refuse_missing_kernels();
  result_.devices = names_.devices();
  if (!errors_.empty()) {
    sort_diagnostics(errors_);
    throw Error(ErrorKind::usage, std::move(errors_));
  }
  count_decisions();
  warn_about_model();
  warn_about_rules();
  warn_about_homes();
  warn_about_acts();
  warn_about_lookahead();
  warn_about_ship();
  warn_about_devices();
  note_fall_backs();
  note_missing_caches();
  sort_diagnostics(result_.warnings);
  sort_diagnostics(result_.notes);
  note_tf32();
  return std::move(result_);
}

void PolicyResolver::start() {
  const int device = names_.find(options_.default_device, Where{}, "device", errors_);
  const Reason reason{.text = options_.default_reason};
  for (const PolicyItems::Operator& item : items_.operators) {
    OperatorAttributes& to = result_.operators.emplace_back();
    to.path = item.path;
    to.run = {device, reason};
    to.acts.reason = to.lookahead.reason = Reason{.text = "default"};
    to.lookahead.value = default_lookahead;
    to.added = item.nodes.empty();
    const std::size_t index = result_.operators.size() - 1;
    if (!item.raw_name.empty()) result_.by_path_.try_emplace(item.raw_name, index);
  }
  for (std::size_t i = 0; i < result_.operators.size(); ++i) {  // paths before raw names
    result_.by_path_[result_.operators[i].path] = i;
  }
  for (const PolicyItems::Parameter& item : items_.parameters) {
    const State& state = graph_.states[item.state];
    ParameterAttributes& to = result_.parameters.emplace_back();
    to.name = state.name;
    to.path = state.path;
    to.kind = state.kind;
    to.bytes = item.bytes;
    for (const int user : item.users) to.readers.push_back(items_.operators[user].path);
    to.param.value = to.state.value = -1;  // not set
    to.lookahead = {default_lookahead, Reason{.text = "default"}};
    to.ship.reason = to.cache.reason = to.shard.reason = Reason{.text = "default"};
    const std::size_t index = result_.parameters.size() - 1;
    result_.parameter_by_name_.try_emplace(state.name, index);
    if (!state.path.empty()) result_.parameter_by_name_.try_emplace(state.path, index);
  }
  result_.rules.resize(policy_.rules.size());
}

void PolicyResolver::apply(int r) {
  const PolicyRule& rule = policy_.rules[r];
  const auto device = [&](const std::optional<std::string>& name, const char* key) {
    return name ? names_.find(*name, rule.where_of(key), rule.at.text(), errors_) : -1;
  };
  const int run = device(rule.run, "run"), param = device(rule.param, "param"),
            state = device(rule.state, "state");
  const RuleMatches matches = matcher_.match(rule);
  if (!matches.any()) {
    const std::string& text = rule.at.text();
    const bool comes_later =
        options_.added.empty() &&
        (text.starts_with("loss.") || text.starts_with("data.") || text.starts_with("optimizer."));
    if (!rule.optional && !comes_later) errors_.push_back(matcher_.explain_nothing(rule));
    return;
  }
  result_.rules[r].matched = counts_of(graph_, items_, matches);
  for (const int i : matches.operators) {
    OperatorAttributes& to = result_.operators[i];
    if (run >= 0) {
      auto because = rule.prefer ? refusal(i, run) : std::nullopt;
      if (because) {
        fall_back(to.run.reason, r, run, std::move(*because));
      } else {
        decide(to.run, run, r);
      }
    }
    if (rule.acts) decide(to.acts, *rule.acts, r);
    if (rule.lookahead) decide(to.lookahead, *rule.lookahead, r);
  }
  for (const int p : matches.parameters) {
    apply_to_parameter(p, r, run, param, state);
    if (rule.lookahead) decide(result_.parameters[p].lookahead, *rule.lookahead, r);
    if (rule.ship) {
      ParameterAttributes& to = result_.parameters[p];
      to.ship_request = *rule.ship == "rows"      ? ShipRequest::rows
                        : *rule.ship == "results" ? ShipRequest::results
                                                  : ShipRequest::automatic;
      decide(to.ship, Ship::results, r);
    }
    if (rule.cache) decide(result_.parameters[p].cache, *rule.cache, r);
  }
  const int update = state >= 0 ? state : run;  // an update runs where its state lives
  for (const int p : matches.updates) apply_to_parameter(p, r, -1, -1, update);
  if (rule.shard) apply_shard(matches.parameters, r);
}

void PolicyResolver::apply_to_parameter(int p, int r, int run, int param, int state) {
  const PolicyRule& rule = policy_.rules[r];
  ParameterAttributes& to = result_.parameters[p];
  // Where no reader can run as the rule asks, the parameter stays with its readers.
  const auto unread = rule.prefer && run >= 0 ? readers_refusal(p, run) : std::nullopt;
  if (param >= 0 && param == run && unread) {
    fall_back(to.param.reason, r, param, *unread);
  } else if (param >= 0) {
    decide(to.param, param, r);
  }
  if (state >= 0 && to.kind == StateKind::parameter) {
    auto because = rule.prefer ? update_refusal(p, state) : std::nullopt;
    if (!because && state == run) because = unread;
    if (because) {
      fall_back(to.state.reason, r, state, std::move(*because));
    } else {
      decide(to.state, state, r);
    }
  }
}

void PolicyResolver::finish_parameter(std::size_t p) {
  ParameterAttributes& to = result_.parameters[p];
  const std::vector<int>& readers = items_.parameters[p].readers;
  const OperatorAttributes* first = nullptr;
  bool fallen = false;  // some reader fell back: it is followed last, and may differ
  for (const int i : readers) {
    const OperatorAttributes& reader = result_.operators[i];
    fallen = fallen || !reader.run.reason.fallen.empty();
    if (!first || (!first->run.reason.fallen.empty() && reader.run.reason.fallen.empty())) {
      first = &reader;
    }
    if (std::find(to.run.begin(), to.run.end(), reader.run.value) == to.run.end()) {
      to.run.push_back(reader.run.value);
    }
  }
  if (to.param.value < 0) {
    const bool known = std::find(to.run.begin(), to.run.end(), -1) == to.run.end();
    if (to.run.size() > 1 && known && !fallen) refuse_two_readers(p);
    std::vector<FallBack> own = std::move(to.param.reason.fallen);
    if (!first) {
      to.param = {names_.find(options_.default_device, Where{}, "device", errors_),
                  Reason{.text = options_.default_reason}};
    } else {
      to.param = {first->run.value, first->run.reason};
      to.param.reason.text = "follows " + first->path + " (" + first->run.reason.text + ")";
      to.param.reason.follows = true;
      to.param.reason.overridden.clear();
    }
    to.param.reason.fallen = std::move(own);
  }
  if (to.state.value < 0) {
    std::vector<FallBack> own = std::move(to.state.reason.fallen);
    to.state = to.param;
    to.state.reason.text = "follows param (" + to.param.reason.text + ")";
    to.state.reason.follows = true;
    to.state.reason.overridden.clear();
    auto because = to.param.reason.prefer && to.kind == StateKind::parameter
                       ? update_refusal(p, to.param.value)
                       : std::nullopt;
    if (because) {  // what the parameter follows may fall back, and so may what follows it
      const int device = to.param.value, rule = to.param.reason.rule;
      to.state = {names_.find(options_.default_device, Where{}, "device", errors_),
                  Reason{.text = options_.default_reason}};
      if (own.empty()) {
        fall_back(to.state.reason, rule, device, std::move(*because));
      } else {
        to.state.reason.fallen = std::move(own);
      }
    } else {
      to.state.reason.fallen = std::move(own);
    }
  }
  say_fallen(to.param.reason);
  say_fallen(to.state.reason);
}

void PolicyResolver::refuse_two_readers(std::size_t p) {
  const ParameterAttributes& parameter = result_.parameters[p];
  Diagnostic d;
  int latest = -1;
  std::string readers;
  for (const int i : items_.parameters[p].readers) {
    const OperatorAttributes& reader = result_.operators[i];
    latest = std::max(latest, reader.run.reason.rule);
    readers += (readers.empty() ? "" : ", ") + reader.path + " on " +
               names_.devices()[reader.run.value].name + " (" + reader.run.reason.text + ")";
  }
  const std::string& path = parameter.path.empty() ? parameter.name : parameter.path;
  if (latest >= 0) d = at(policy_.rules[latest].where_of("run"), "", "");
  d.path = path;
  d.message = "this parameter is read on two devices, and no rule says where it lives";
  d.got = readers;
  d.fix = "add { at = \"" + path + "\", param = \"" +
          names_.devices()[result_.operators[items_.parameters[p].readers[0]].run.value].name +
          "\" }";
  errors_.push_back(std::move(d));
}

ResolvedPolicy resolve(const Policy& policy, const Graph& forward, const ResolveOptions& options,
                       const PlacementFacts& facts) {
  return PolicyResolver(policy, forward, options, facts).run();
}

}  // namespace tandem
