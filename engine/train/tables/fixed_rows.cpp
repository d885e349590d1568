#include "engine/train/tables/fixed_rows.h"

#include <algorithm>
#include <string>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/shard_conversion.h"
#include "engine/graph/text.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/update_kind.h"
#include "engine/train/tables/table_storage.h"

namespace tandem {
namespace {

// The type of the whole parameter, over all ranks.
const TensorType& whole_type(const State& state) {
  return state.shard ? state.shard->whole : state.start.type();
}

Diagnostic no_row(const FixedRowsRule& rule, const State& state, std::int64_t row) {
  const Shape& shape = whole_type(state).shape;
  return at(rule.where, state.path, "there is no row " + std::to_string(row),
            shape.empty() ? "a parameter with rows" : "0 to " + std::to_string(shape[0] - 1),
            to_string(whole_type(state)));
}

// The rows as the parameter counts them: for a cache, those that it has, by their places in it; for
// a rank's part likewise.
std::vector<std::int64_t> own_rows(const FixedRows& fixed, const State& parameter) {
  if (parameter.shard) {
    const std::int64_t first = row_of_whole(*parameter.shard, 0);
    const std::int64_t step = row_of_whole(*parameter.shard, 1) - first;
    const std::int64_t filled = filled_rows(*parameter.shard);
    std::vector<std::int64_t> own;
    for (const std::int64_t row : fixed.rows) {
      const std::int64_t place = (row - first) / step;
      if (row >= first && (row - first) % step == 0 && place < filled) own.push_back(place);
    }
    return own;
  }
  const auto* cached = parameter.derived.as<CachedRows>();
  if (cached == nullptr) return fixed.rows;
  std::vector<std::int64_t> places;
  for (const std::int64_t row : fixed.rows) {
    const auto place = std::lower_bound(cached->rows->begin(), cached->rows->end(), row);
    if (place != cached->rows->end() && *place == row)
      places.push_back(place - cached->rows->begin());
  }
  return places;
}

ValueId integer(GraphBuilder& g, std::int64_t value, DType dtype) {
  return g.constant(HostTensor::from<std::int64_t>({}, {value}).converted(dtype));
}

[[noreturn]] void refuse(const FixedRows& fixed, const State& parameter, std::string message,
                         std::string expected, std::string got, std::string fix) {
  throw Error(ErrorKind::usage, at(fixed.rule->where, parameter.path, std::move(message),
                                   std::move(expected), std::move(got), std::move(fix)));
}

}  // namespace

std::vector<FixedRows> fixed_rows(const ParametersConfig& config, const Graph& graph) {
  std::vector<FixedRows> all;
  std::vector<Diagnostic> problems;
  std::vector<bool> is_used(config.fixed_rows.size(), false);
  const ParameterNames names(graph);
  for (const State& state : graph.states) {
    if (!is_parameter(state)) continue;
    FixedRows fixed{state.name, nullptr, {}};
    for (std::size_t i = 0; i < is_used.size(); ++i) {
      const FixedRowsRule& rule = config.fixed_rows[i];
      if (!names.covers(Selector(rule.at), state)) continue;
      is_used[i] = true;
      fixed.rule = &rule;
      for (const std::int64_t row : rule.rows) {
        const Shape& shape = whole_type(state).shape;
        if (shape.empty() || row >= shape[0]) problems.push_back(no_row(rule, state, row));
        fixed.rows.push_back(row);
      }
    }
    if (fixed.rule == nullptr) continue;
    std::sort(fixed.rows.begin(), fixed.rows.end());
    fixed.rows.erase(std::unique(fixed.rows.begin(), fixed.rows.end()), fixed.rows.end());
    all.push_back(std::move(fixed));
  }
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    const FixedRowsRule& rule = config.fixed_rows[i];
    if (!is_used[i])
      problems.push_back(at(rule.where, "", "\"" + rule.at + "\" matches no parameter", "", "",
                            ParameterNames(graph).no_match_fix(rule.at, graph)));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return all;
}

const FixedRows* find_fixed_rows(const std::vector<FixedRows>& all, const State& parameter) {
  const std::string& name = parameter.source<CachedRows>();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const FixedRows& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void keep_rows(GraphBuilder& g, const FixedRows& fixed, const Chosen& chosen,
               UpdateRequest& request) {
  const UpdateChoice choice = choose_update(chosen.options, whole_elements(chosen.parameter));
  const UpdateKind& kind = *find_update_kind(choice.op);
  const State& parameter = request.parameter;
  if (!kind.updates_rows()) {
    refuse(fixed, parameter, "fixed_rows needs an optimizer that updates rows by themselves",
           "any kind but this one",
           std::string(chosen.options.name()) + ", whose step is of the whole parameter",
           "give the parameter another kind in optimizer.groups");
  }
  if (parameter.start.dtype() != DType::float32) {
    refuse(fixed, parameter, "fixed_rows works on parameters of float32", "float32",
           to_string(parameter.start.type()), "let the selector leave it out");
  }
  request.keeps_others = true;
  if (!request.rows) return;
  // An update that moves rows without a gradient, too, is computed row by row, from the dense
  // gradient.
  if (!choice.lazy && !kind.keeps_still(choice.settings)) {
    request.rows.reset();
    return;
  }
  g.set_scope(update_scope(parameter));
  for (ValueId& ids : request.rows->ids) {
    const DType dtype = g.type(ids).dtype;
    const ValueId absent = integer(g, absent_id_of(dtype), dtype);
    for (const std::int64_t row : own_rows(fixed, parameter)) {
      const ValueId is_fixed = g.node("Equal", {ids, integer(g, row, dtype)})[0];
      ids = g.node("Where", {is_fixed, absent, ids})[0];
    }
  }
}

ValueId marks_of_other_rows(GraphBuilder& g, const FixedRows& fixed, const State& parameter) {
  HostTensor marks(TensorType{DType::boolean, {parameter.start.shape()[0]}});
  const std::span<bool> is_marked = marks.as<bool>();
  std::fill(is_marked.begin(), is_marked.end(), true);
  for (const std::int64_t row : own_rows(fixed, parameter))
    is_marked[static_cast<std::size_t>(row)] = false;
  g.set_scope(update_scope(parameter));
  return g.constant(std::move(marks));
}

}  // namespace tandem
