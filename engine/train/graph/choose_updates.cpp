// Which form the update of each parameter has: dense or by rows, whole or sharded.
#include <algorithm>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/update_kind.h"
#include "engine/train/graph/training_build.h"
#include "engine/train/updates/shape_needs.h"

namespace tandem {
namespace {

// Updates work in float32; without states, in float64, too.
std::optional<Diagnostic> wrong_type(const Chosen& chosen, bool has_states) {
  const TensorType& type = chosen.parameter.start.type();
  if (type.dtype == DType::float32 || (type.dtype == DType::float64 && !has_states))
    return std::nullopt;
  const std::string& path = chosen.parameter.path;
  Diagnostic d = at(chosen.where, path,
                    chosen.kind_key + " = \"" + std::string(chosen.options.name()) +
                        "\" cannot update a parameter of this element type");
  d.fix =
      "write the model with this parameter in float32, or leave it as it is: parameters.freeze = [ "
      "{ at = \"" +
      path + "\" } ]";
  d.expected = "float32";
  d.got = to_string(type);
  return d;
}

// Refuses a kind whose step depends on a whole tensor, or a whole row of a matrix, where each rank
// has only a part of it.
std::optional<Diagnostic> wrong_share(const Chosen& chosen, const UpdateKind& kind) {
  const std::optional<StateShard>& shard = chosen.parameter.shard;
  if (!shard) return std::nullopt;
  const bool is_table = shard->keeps_rows();
  if (!kind.whole_tensor && !kind.keeps_bytes() && (is_table || !kind.whole_row))
    return std::nullopt;
  const std::string name = "\"" + std::string(chosen.options.name()) + "\"";
  const std::string word(word_of(shard->kind));
  Diagnostic d = at(chosen.where, chosen.parameter.path,
                    chosen.kind_key + " = " + name + " needs " +
                        (is_table ? "the whole table" : "whole rows or all of the matrix") +
                        ", and its policy shards its " + word + " over the ranks");
  d.expected = is_table ? "a kind that updates rows or elements by themselves"
                        : "a kind that updates elements by themselves";
  d.got = name;
  d.fix = "give it another kind in optimizer.groups, or remove `shard = \"" + word + "\"` from it";
  return d;
}

// Refuses a kind that works on rows for a parameter that has none, or of another element type; at
// the key that brought them together.
std::optional<Diagnostic> wrong_kind(const Chosen& chosen) {
  const UpdateChoice choice = choose_update(chosen.options, whole_elements(chosen.parameter));
  const UpdateKind* kind = find_update_kind(choice.op);
  if (kind == nullptr) return std::nullopt;
  if (auto problem = wrong_type(chosen, kind->kept(choice.settings) != 0)) return problem;
  if (auto problem = wrong_share(chosen, *kind)) return problem;
  const TensorType& type = chosen.parameter.start.type();
  if (!kind->whole_row || type.rank() >= 2) return std::nullopt;
  const std::string name = "\"" + std::string(chosen.options.name()) + "\"";
  return at(chosen.where, chosen.parameter.path, chosen.kind_key + " = " + name + " works on rows",
            "a parameter of at least two dimensions", to_string(type),
            "give it another kind, and " + name +
                " to the tables only: groups = [ { at = \"TABLE:weight\", kind = " + name + " } ]");
}

ValueId accumulate(GraphBuilder& g, const State& parameter, ValueId gradient, MicroBatchKind kind) {
  if (kind == MicroBatchKind::whole) return gradient;
  g.set_scope(update_scope(parameter));
  const ValueId sum = add_moment(g, parameter, "gradient_sum");
  const ValueId total = g.add_node("Accumulate", {sum, gradient},
                                   {{"first", std::int64_t{kind == MicroBatchKind::first}}});
  g.write_state(sum, total);
  return total;
}

// Over several micro-batches the sum of a table's gradients is dense, and so is what is clipped
// element by element; the rows that got one are marked.
ValueId mark(GraphBuilder& g, const State& parameter, const RowGradient& rows,
             MicroBatchKind kind) {
  State state = state_of(parameter, "touched_rows");
  state.start = HostTensor(TensorType{DType::boolean, {parameter.start.shape()[0]}});
  state.starts_at_zero = true;
  share_like(state, parameter);
  g.set_scope(update_scope(parameter));
  const ValueId before = g.state(std::move(state));
  std::vector<ValueId> inputs{before};
  inputs.insert(inputs.end(), rows.ids.begin(), rows.ids.end());
  const bool is_first = kind == MicroBatchKind::first || kind == MicroBatchKind::whole;
  const ValueId marks =
      g.add_node("MarkRows", std::move(inputs), {{"first", std::int64_t{is_first}}});
  g.write_state(before, marks);
  return marks;
}

// A gradient of rows stays one where the optimizer's kind needs rows, or where few rows of the
// table occur in a micro-batch; else the dense form costs less. A note reports gradients that are
// dense though their kind works on rows. That of a split table always stays rows: no other update
// knows halves.
std::optional<RowGradient> kept_rows(const Graph& graph, const Chosen& chosen, ValueId gradient,
                                     const SplitTable* split, const RankSums& ranks,
                                     std::vector<std::string>& notes) {
  std::optional<RowGradient> rows = row_gradient(graph, gradient);
  const UpdateChoice choice = choose_update(chosen.options, whole_elements(chosen.parameter));
  if (split != nullptr) {
    if (!rows || !(choice.lazy || choice.takes_rows)) {
      refuse_split_table(*split, chosen.parameter.path,
                         "a split table needs an optimizer that updates rows", kinds_of_rows(),
                         !rows ? "a gradient that is no sum of looked-up rows"
                               : std::string(chosen.options.name()) + " of every row",
                         "give it such a group in optimizer.groups, or leave it out of storage");
    }
    return rows;
  }
  if (!rows && choice.lazy) {
    notes.push_back(chosen.parameter.path +
                    " gets a dense gradient: every row is updated in every step");
  }
  if (!rows || choice.lazy) return rows;
  if (!choice.takes_rows) return std::nullopt;
  // A part has room for the ids of all ranks, each of which belongs to one rank: of rows that are
  // sharded over the ranks only one id in `owners` comes here, of a whole table all.
  const std::optional<StateShard>& shard = chosen.parameter.shard;
  const std::int64_t owners = shard && shard->kind == ShardKind::rows ? shard->ranks : 1;
  const std::int64_t ids = shard ? id_count(graph, *rows) / owners : ranks.gathered_ids(*rows);
  if (!are_few(ids, chosen.parameter.start.shape()[0])) return std::nullopt;
  return rows;
}

Diagnostic of_rows_in_parts(const Chosen& chosen, bool is_split) {
  const std::string& path = chosen.parameter.path;
  Diagnostic d;
  d.path = path;
  d.message =
      std::string("the optimizer's states cannot be sharded over the ranks for a table with ") +
      (is_split ? "split storage" : "fixed rows") + " as flat parts";
  d.fix = "give it shard = \"rows\" or \"table\" in the policy, or shard = \"whole\"";
  return d;
}

// What cannot be updated in a table with split storage.
void refuse_for_split_table(const TrainingBuild& build, const SplitTable& split,
                            const UpdateRequest& update) {
  if (!build.clipping.reads_weights(update.group)) return;
  const std::string& path = update.parameter.path;
  refuse_split_table(split, path,
                     "optimizer.clip_adaptive reads whole rows, of which a split table has "
                     "halves",
                     "clip_adaptive = 0 for this table", "",
                     "add { at = \"" + path +
                         "\", clip_adaptive = 0 } to optimizer.groups, or leave the table out "
                         "of parameters.storage");
}

/// The update of one parameter. Adds what cannot be done to `problems`.
std::optional<UpdateRequest> choose_update_of(TrainingBuild& build, const TrainedParameter& trained,
                                              std::vector<Diagnostic>& problems) {
  GraphBuilder& g = build.g;
  const Chosen& chosen = trained.chosen;
  const MicroBatchKind kind = build.request.kind;
  std::vector<std::string>& notes = build.result.notes;
  if (!trained.gradient) {
    notes.push_back(chosen.parameter.path + " does not reach the loss and stays as it is");
    return std::nullopt;
  }
  if (std::optional<Diagnostic> problem = wrong_kind(chosen)) {
    problems.push_back(std::move(*problem));
    return std::nullopt;
  }
  UpdateRequest update{
      .parameter = chosen.parameter, .group = chosen.group, .options = chosen.options};
  const SplitTable* split = build.find_split(update.parameter);
  update.shares_states = build.state_shards.covers(chosen);
  if (!update.shares_states || split != nullptr)
    update.rows = kept_rows(g.graph(), chosen, trained.gradient, split, build.ranks, notes);
  const FixedRows* fixed = find_fixed_rows(build.tables.fixed, update.parameter);
  if (split != nullptr) refuse_for_split_table(build, *split, update);
  if (split != nullptr &&
      is_in_norms(build.config().log, ParameterNames(g.graph()), update.parameter)) {
    notes.push_back("log.norms: " + update.parameter.path +
                    " has only norm.gradient, since parameters.storage stores it as two halves");
  }
  if (update.shares_states && (split != nullptr || fixed != nullptr)) {
    problems.push_back(of_rows_in_parts(chosen, split != nullptr));
    return std::nullopt;
  }
  if (fixed != nullptr) keep_rows(g, *fixed, chosen, update);
  if (split != nullptr && !update.rows) {
    refuse_split_table(*split, update.parameter.path,
                       "a split table with fixed_rows needs an optimizer that does not change rows "
                       "without a gradient",
                       kinds_of_rows(), std::string(chosen.options.name()),
                       "give it such a group in optimizer.groups, or leave it out of storage");
  }
  update.gradient = trained.gradient;
  if (update.shares_states && build.state_shards.covers_gradient(chosen))
    build.state_shards.cut(update, true);
  update.gradient = accumulate(g, update.parameter, update.gradient, kind);
  const bool is_dense =
      kind != MicroBatchKind::whole || build.clipping.changes_elements(update.group);
  if (update.rows && is_dense) {
    const std::int64_t elements = whole_elements(update.parameter);
    if (choose_update(update.options, elements).lazy || split != nullptr)
      update.touched = mark(g, update.parameter, *update.rows, kind);
    update.rows.reset();
  }
  if (fixed != nullptr && !update.rows && !update.touched)
    update.touched = marks_of_other_rows(g, *fixed, update.parameter);
  return update;
}

}  // namespace

void choose_updates(TrainingBuild& build) {
  std::vector<const Chosen*> chosen;
  for (const TrainedParameter& trained : build.parameters) {
    if (trained.gradient) chosen.push_back(&trained.chosen);
  }
  std::vector<Diagnostic> problems = refuse_shapes(build.g.graph(), chosen);
  for (const TrainedParameter& trained : build.parameters) {
    if (trained.gradient && unmet_need(trained.chosen) != nullptr) continue;
    if (auto update = choose_update_of(build, trained, problems))
      build.requests.push_back(std::move(*update));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
