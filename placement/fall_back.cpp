// Devices without a kernel for what a policy asks of them: rules that may fall back do so, others
// are an error, and all of it is reported.
#include <algorithm>
#include <map>
#include <tuple>

#include "engine/graph/text.h"
#include "placement/resolver.h"

namespace tandem {
namespace {

// "a, b, c and 4 more"
std::string list_text(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text = joined(std::span(names).first(std::min(most, names.size())));
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

const std::string& path_of(const ParameterAttributes& parameter) {
  return parameter.path.empty() ? parameter.name : parameter.path;
}

}  // namespace

void PolicyResolver::fall_back(Reason& reason, int rule, int device, std::string because) {
  reason.fallen.insert(reason.fallen.begin(), FallBack{rule, device, std::move(because)});
  ++result_.rules[rule].fallen;
}

void PolicyResolver::say_fallen(Reason& reason) const {
  if (reason.fallen.empty()) return;
  reason.text += ", as " + short_text(policy_.rules[reason.fallen[0].rule].where) + " fell back";
}

std::optional<std::string> PolicyResolver::no_kernel(int device, const std::string& path) const {
  const auto found = facts_.refusals.find({device, path});
  if (found == facts_.refusals.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> PolicyResolver::refusal(int item, int device) const {
  const PolicyItems::Operator& op = items_.operators[item];
  if (auto own = no_kernel(device, op.path)) return own;
  // A view of a parameter goes where the operators go that read it.
  std::optional<std::string> behind;
  for (const int reader : op.view_readers) {
    behind = no_kernel(device, items_.operators[reader].path);
    if (!behind) return std::nullopt;
  }
  return behind;
}

std::optional<std::string> PolicyResolver::update_refusal(std::size_t parameter, int device) const {
  return no_kernel(device, "optimizer." + result_.parameters[parameter].name);
}

std::optional<std::string> PolicyResolver::readers_refusal(std::size_t parameter,
                                                           int device) const {
  const std::vector<int>& users = items_.parameters[parameter].users;
  const bool all = !users.empty() && std::all_of(users.begin(), users.end(), [&](int user) {
    return refusal(user, device).has_value();
  });
  if (!all) return std::nullopt;
  return "nothing that reads it can run there";
}

void PolicyResolver::refuse_missing_kernels() {
  if (facts_.refusals.empty()) return;
  struct Missing {
    std::vector<std::string> paths;
    std::string because;
  };
  std::map<std::tuple<int, int, bool>, Missing> missing;  // by rule and device; true: updates
  const auto add = [&](const Reason& reason, int device, bool update, const std::string& path,
                       std::optional<std::string> because) {
    if (!because) return;
    Missing& to = missing[{reason.rule, device, update}];
    if (to.paths.empty()) to.because = std::move(*because);
    to.paths.push_back(path);
  };
  for (const OperatorAttributes& op : result_.operators) {
    const bool open = op.added && op.run.reason.layer == Layer::builtin;
    if (op.run.value < 0 || open) continue;
    add(op.run.reason, op.run.value, false, op.path, no_kernel(op.run.value, op.path));
  }
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) {
    const ParameterAttributes& parameter = result_.parameters[p];
    if (parameter.kind != StateKind::parameter) continue;
    add(parameter.state.reason, parameter.state.value, true, path_of(parameter),
        update_refusal(p, parameter.state.value));
  }
  for (const auto& [key, what] : missing) {
    const auto& [rule, device, update] = key;
    const char* attribute = update ? "state" : "run";
    Diagnostic d;
    if (rule >= 0) d = at(policy_.rules[rule].where_of(attribute), "", "");
    d.path = what.paths[0];
    d.message = names_.devices()[device].name + " has no kernel for this " +
                (update ? "parameter's update" : "operator");
    if (what.paths.size() > 1) {
      d.message += ", nor for " + std::to_string(what.paths.size() - 1) + " more that are placed " +
                   "there in the same way";
    }
    d.got = what.because;
    const std::string elsewhere = "{ at = \"" + what.paths[0] + "\", " + attribute + " = \"cpu\" }";
    d.fix = rule >= 0 ? "need = \"prefer\" lets the rule fall back; or add " + elsewhere
                      : "add the rule " + elsewhere;
    errors_.push_back(std::move(d));
  }
}

void PolicyResolver::note_fall_backs() {
  // Paths by rule, attribute, device asked for, device that it is, and reason.
  std::map<std::tuple<int, std::string, int, int, std::string>, std::vector<std::string>> all;
  const auto add = [&](const char* attribute, const Reason& reason, int device,
                       const std::string& path) {
    if (reason.fallen.empty() || reason.fallen[0].device == device) return;
    const FallBack& asked = reason.fallen[0];
    all[{asked.rule, attribute, asked.device, device, asked.because}].push_back(path);
  };
  for (const OperatorAttributes& op : result_.operators) {
    add("run", op.run.reason, op.run.value, op.path);
  }
  for (const ParameterAttributes& p : result_.parameters) {
    add("param", p.param.reason, p.param.value, path_of(p));
    if (p.kind == StateKind::parameter) add("state", p.state.reason, p.state.value, path_of(p));
  }
  for (const auto& [key, paths] : all) {
    const auto& [rule, attribute, asked, actual, because] = key;
    const PolicyRule& by = policy_.rules[rule];
    Diagnostic d = at(by.where_of(attribute), by.at.text(), "");
    d.message = attribute + " fell back from " + result_.devices[asked].name + " to " +
                result_.devices[actual].name + " for " + list_text(paths) + ": " + because;
    result_.notes.push_back(std::move(d));
  }
}

}  // namespace tandem
