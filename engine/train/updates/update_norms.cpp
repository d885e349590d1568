#include "engine/train/updates/update_norms.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"

namespace tandem {

bool is_in_norms(const LogConfig& config, const ParameterNames& names, const State& parameter) {
  // A table's cache has the table's path, and would have its name.
  return parameter.derived.is_saved() &&
         std::any_of(config.norms.begin(), config.norms.end(), [&](const std::string& text) {
           return names.covers(Selector(text), parameter);
         });
}

UpdateNorms::UpdateNorms(GraphBuilder& g, RankSums& ranks, const LogConfig& config,
                         const std::vector<UpdateRequest>& updates,
                         const std::vector<State>& resting,
                         FunctionRef<bool(const State& parameter)> is_split)
    : g_(g), ranks_(ranks) {
  std::vector<Diagnostic> problems;
  std::vector<bool> is_chosen(updates.size(), false);
  std::vector<std::string> paths;
  for (const UpdateRequest& update : updates) paths.push_back(update.parameter.path);
  for (const State& state : resting) paths.push_back(state.path);
  const ParameterNames names = config.norms.empty() ? ParameterNames() : ParameterNames(g.graph());
  for (const std::string& text : config.norms) {
    const Selector selector(text);
    bool any = std::any_of(resting.begin(), resting.end(), [&](const State& state) {
      return state.derived.is_saved() && names.covers(selector, state);
    });
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const State& parameter = updates[i].parameter;
      // A table's cache has the table's path, and would have its name.
      if (!parameter.derived.is_saved()) continue;
      if (!names.covers(selector, parameter)) continue;
      any = true;
      is_chosen[i] = true;
    }
    if (any) continue;
    Diagnostic& d = problems.emplace_back();
    d.path = "log.norms";
    d.message = "\"" + text + "\" matches no parameter that is trained";
    d.fix = did_you_mean(nearest_name(text, paths), "`tandem inspect MODEL` lists them");
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const State& parameter = updates[i].parameter;
    if (is_chosen[i]) chosen_.push_back({i, parameter.name, parameter.path, is_split(parameter)});
  }
}

void UpdateNorms::add(const std::string& name, ValueId sum_of_squares, bool is_part) {
  const ValueId all = is_part ? ranks_.sum_of_parts(sum_of_squares) : sum_of_squares;
  g_.output(name, g_.add_node("Sqrt", {all}));
  names_.push_back(name);
}

void UpdateNorms::add_gradients(Updates& updates, const std::vector<UpdateRequest>& requests,
                                ValueId scale) {
  for (const Chosen& chosen : chosen_) {
    const UpdateRequest& request = requests[chosen.update];
    g_.set_scope(update_scope(request.parameter));
    ValueId square = updates.sum_of_squares(request);
    if (scale) square = g_.div(g_.div(square, scale), scale);
    add("norm.gradient." + chosen.path, square, request.parameter.shard.has_value());
  }
}

void UpdateNorms::keep_parameters() {
  for (Chosen& chosen : chosen_) {
    if (chosen.is_split) continue;
    const State& parameter = *g_.graph().find_state(chosen.name);
    g_.set_scope(update_scope(parameter));
    chosen.before = g_.add_node("Copy", {parameter.initial});
  }
}

void UpdateNorms::add_updates() {
  for (const Chosen& chosen : chosen_) {
    if (chosen.is_split) continue;
    const State parameter = *g_.graph().find_state(chosen.name);
    g_.set_scope(update_scope(parameter));
    const ValueId change = g_.sub(parameter.final, chosen.before);
    add("norm.update." + chosen.path, g_.add_node("SumOfSquares", {change}),
        parameter.shard.has_value());
  }
}

}  // namespace tandem
