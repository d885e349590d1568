#include "engine/training/training_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "engine/gradient/gradient.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/rewrite.h"
#include "engine/operators/update_kind.h"
#include "engine/training/algorithm/algorithm_graph.h"
#include "engine/training/config/config_names.h"
#include "engine/training/config/config_value.h"
#include "engine/training/divergence/bound_lengths.h"
#include "engine/training/loss_scale.h"
#include "engine/training/optimizers/gradient_clipping.h"
#include "engine/training/optimizers/layer_decay.h"
#include "engine/training/optimizers/optimizer.h"
#include "engine/training/optimizers/update_norms.h"
#include "engine/training/parameter_choice.h"
#include "engine/training/programs/freeze_rules.h"
#include "engine/training/ranks/shard_products.h"
#include "engine/training/ranks/shard_tables.h"
#include "engine/training/ranks/state_shards.h"
#include "engine/training/ranks/synchronise_batch_norm.h"
#include "engine/training/schedule.h"
#include "engine/training/tables/fixed_rows.h"
#include "engine/training/tables/table_storage.h"

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
      "write the model with this parameter in float32 (precision.compute makes products of 16 "
      "bits), or leave it as it is: parameters.freeze = [ { at = \"" +
      path + "\" } ]";
  d.expected = "float32";
  d.got = to_string(type);
  return d;
}

// Without the averages of parameters that all rest in this phase: they begin when these train.
OptimizerConfig averages_of_now(OptimizerConfig config, const Graph& graph,
                                const std::vector<UpdateRequest>& updates,
                                const std::vector<State>& resting) {
  if (resting.empty()) return config;
  const ParameterNames names(graph);
  const auto leave_out = [&](auto& average) {
    if (!average) return;
    const Selector selector(average->at);
    const bool is_now = std::any_of(updates.begin(), updates.end(), [&](const auto& update) {
      return names.covers(selector, update.parameter);
    });
    const bool is_later = std::any_of(resting.begin(), resting.end(), [&](const State& state) {
      return names.covers(selector, state);
    });
    if (!is_now && is_later) average.reset();
  };
  leave_out(config.ema);
  leave_out(config.swa);
  leave_out(config.lookahead);
  return config;
}

// Refuses a kind whose step depends on a whole tensor, or a whole row of a matrix, where each rank
// has only a part of it.
std::optional<Diagnostic> wrong_share(const Chosen& chosen, const UpdateKind& kind) {
  const std::optional<StateShard>& shard = chosen.parameter.shard;
  if (!shard) return std::nullopt;
  const bool is_table = shard->keeps_rows();
  if (!kind.whole_tensor && !kind.is_factored() && (is_table || !kind.whole_row))
    return std::nullopt;
  const std::string name = "\"" + std::string(chosen.options.name()) + "\"";
  const std::string word(word_of(shard->kind));
  Diagnostic d = at(chosen.where, chosen.parameter.path,
                    chosen.kind_key + " = " + name + " rests on " +
                        (is_table ? "the whole table" : "whole rows or all of the matrix") +
                        ", and its policy shares out its " + word + " among the ranks");
  d.expected = is_table ? "a kind that updates rows or elements by themselves"
                        : "a kind that updates elements by themselves";
  d.got = name;
  d.fix =
      "give it another kind in optimizer.groups, or take `shard = \"" + word + "\"` away from it";
  return d;
}

// Refuses a kind that works on rows for a parameter that has none, or of another element type; at
// the key that brought them together.
std::optional<Diagnostic> wrong_kind(const Chosen& chosen) {
  const UpdateChoice choice = choose_update(chosen.options);
  const UpdateKind* kind = find_update_kind(choice.op);
  if (kind == nullptr) return std::nullopt;
  if (auto problem = wrong_type(chosen, kind->kept(choice.settings) != 0)) return problem;
  if (auto problem = wrong_share(chosen, *kind)) return problem;
  const TensorType& type = chosen.parameter.start.type();
  if (!kind->whole_row || type.rank() >= 2) return std::nullopt;
  const std::string name = "\"" + std::string(chosen.options.name()) + "\"";
  Diagnostic d =
      at(chosen.where, chosen.parameter.path, chosen.kind_key + " = " + name + " works on rows");
  d.fix = "give it another kind, and " + name +
          " to the tables alone: groups = [ { at = \"TABLE:weight\", kind = " + name + " } ]";
  d.expected = "a parameter of at least two dimensions";
  d.got = to_string(type);
  return d;
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
  const UpdateChoice choice = choose_update(chosen.options);
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
  d.message = std::string("ranks cannot share out the optimizer's states of a table with ") +
              (is_split ? "split storage" : "fixed rows") + " as flat parts";
  d.fix = "say shard = \"rows\" or \"table\" of it in the policy, or shard = \"whole\"";
  return d;
}

class LearningRates {
 public:
  explicit LearningRates(GraphBuilder& g) : g_(g) {}
  /// `schedule`: its number in Schedules.
  ValueId of(double base, int schedule) {
    const std::pair<double, int> wanted(base, schedule);
    const auto found = inputs_.find(wanted);
    if (found != inputs_.end()) return found->second;
    const std::string name =
        inputs_.empty() ? "optimizer.lr" : "optimizer.lr." + std::to_string(inputs_.size());
    const ValueId input = g_.input(name, TensorType{DType::float32, {}});
    inputs_.emplace(wanted, input);
    list.push_back({name, base, schedule});
    return input;
  }
  std::vector<LearningRate> list;

 private:
  GraphBuilder& g_;
  std::map<std::pair<double, int>, ValueId> inputs_;
};

/// The step's number for parameters that have missed some steps: made once for all that have missed
/// equally many.
class StepNumbers {
 public:
  StepNumbers(GraphBuilder& g, ValueId step, const MissedStepCounts& missed)
      : g_(g), step_(step), missed_(missed) {}
  ValueId of(const State& parameter) {
    const auto found = missed_.find(parameter.source<CachedRows>());
    if (found == missed_.end()) return step_;
    ValueId& own = made_[found->second];
    if (!own) {
      g_.set_scope({step_input, Phase::update, {}});
      own = g_.sub(step_, g_.constant(HostTensor::from<std::int64_t>({}, {found->second})));
    }
    return own;
  }

 private:
  GraphBuilder& g_;
  ValueId step_;
  const MissedStepCounts& missed_;
  std::map<std::int64_t, ValueId> made_;
};

void drop_outputs(Graph& graph) { graph.outputs.clear(); }

/// Losses are found by the names of their outputs: an output of the model with such a name is
/// dropped.
void name_loss(GraphBuilder& g, const Loss& loss, RankSums& ranks) {
  std::vector<std::pair<std::string, ValueId>> named{{"loss", loss.total}};
  for (const auto& [name, value] : loss.terms) {
    if (value != loss.total) named.emplace_back("loss." + name, value);
  }
  ranks.add_losses(named, stop_flag);
  for (const auto& each : named) {
    std::erase_if(g.graph().outputs, [&](const NamedValue& o) { return o.name == each.first; });
    g.output(each.first, each.second);
  }
}

/// Metrics find the values of a term by name, too.
void refuse_values_named_as_losses(const LossConfig& config, const Graph& forward) {
  std::unordered_set<std::string> losses{"loss"};
  for (const LossTerm& term : config.terms) losses.insert("loss." + term.name);
  for (const LossTerm& term : config.terms) {
    const std::string& name = term.values[0];
    if (term.labels.empty() || !losses.contains(name) || forward.find_output(name) == nullptr)
      continue;
    Diagnostic d =
        at(term.where, "loss." + term.name,
           "the model's output \"" + name + "\" has the name of a loss of the evaluation");
    d.fix = "rename the output \"" + name + "\" of the model";
    throw Error(ErrorKind::usage, std::move(d));
  }
}

/// Folds constants: the gradient's seed and the weights of terms are constants, and what depends
/// only on them is computed once.
Graph folded(Graph graph, const OperatorSet& operators, const Evaluator& evaluate) {
  if (!evaluate) return graph;
  PassContext context{operators, evaluate, {}, {}};
  context.most_constant_bytes = 64u << 10;
  graph = simplify(fold_constants(graph, context), context);
  return remove_dead(graph, operators);
}

[[noreturn]] void refuse_name(const std::string& name) {
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "a parameter of the model has the name of a state that training adds",
                 .path = name,
                 .fix = "rename the initializer \"" + name + "\" of the model"});
}

// Values of states are found by their names.
void check_state_names(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const State& state : graph.states) {
    if (names.insert(state.name).second) continue;
    refuse_name(state.name);
  }
}

// The loss scale's states are read, reported and restored by their names, whether a run has a scale
// or not.
void check_loss_scale_names(const Graph& forward) {
  for (const State& state : forward.states) {
    if (is_loss_scale_state(state.name)) refuse_name(state.name);
  }
}

[[noreturn]] void refuse_algorithm_on_ranks() {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "a model with training_info trains in one process alone",
                         .fix = "start it without mpirun, or name loss and optimizer in train.toml "
                                "with the forward model"});
}

/// The forward graph as several ranks compute it, except for its products.
Graph of_ranks(const OperatorSet& operators, const Graph& forward, const TrainingRequest& request) {
  const RankShares& ranks = request.ranks;
  if (!ranks.several()) return forward;
  Graph graph = shard_tables(operators, forward, request.shards, ranks);
  if (!request.config->model.sync_batch_norm) return graph;
  return synchronise_batch_norm(operators, graph, ranks.ranks);
}

struct GraphWithLoss {
  Graph graph;
  Loss loss;
};

/// The graph and its losses as several ranks compute them where they shard matrices of products:
/// the losses are outputs for a while.
GraphWithLoss with_shared_products(const OperatorSet& operators, GraphWithLoss whole,
                                   const TrainingRequest& request) {
  if (!request.ranks.several() || !shards_products(whole.graph, request.shards)) return whole;
  std::vector<ValueId*> losses{&whole.loss.total};
  for (auto& [name, value] : whole.loss.terms) losses.push_back(&value);
  const std::size_t others = whole.graph.outputs.size();
  for (std::size_t i = 0; i < losses.size(); ++i)
    whole.graph.outputs.push_back({"loss." + std::to_string(i), *losses[i]});
  whole.graph = shard_products(operators, whole.graph, request.shards, request.ranks);
  for (std::size_t i = 0; i < losses.size(); ++i)
    *losses[i] = whole.graph.outputs[others + i].value;
  whole.graph.outputs.resize(others);
  return whole;
}

/// `forward` with the losses of the configuration.
GraphWithLoss with_loss(const OperatorSet& operators, Graph forward, const TrainingRequest& request,
                        bool keeps_outputs) {
  check_bound_lengths(*request.config, forward, request.fields);
  GraphBuilder g(operators, std::move(forward));
  Loss loss = add_loss(g, request.config->loss, request.fields, request.samples);
  if (!keeps_outputs) drop_outputs(g.graph());
  return with_shared_products(operators, {g.finish(), std::move(loss)}, request);
}

}  // namespace

TrainingGraph build_training_graph(const OperatorSet& operators, const Graph& forward,
                                   const TrainingRequest& request) {
  const RunConfig& config = *request.config;
  const bool is_scaled = config.precision.scales_loss();
  check_loss_scale_names(forward);
  if (request.algorithm != nullptr) {
    if (request.ranks.several()) refuse_algorithm_on_ranks();
    TrainingGraph own = build_algorithm_graph(operators, forward, request);
    check_state_names(own.graph);
    own.graph = folded(std::move(own.graph), operators, request.evaluate);
    return own;
  }
  GraphWithLoss made = with_loss(operators, of_ranks(operators, forward, request), request, false);
  GraphBuilder g(operators, std::move(made.graph));
  const Loss& loss = made.loss;
  TrainingGraph result;
  result.denominators = loss.denominators;
  result.notes = loss.notes;
  for (const auto& [name, value] : loss.terms) result.terms.push_back(name);
  RankSums ranks(g, request.ranks);
  name_loss(g, loss, ranks);
  const std::vector<SplitTable> splits = split_tables(config.parameters, g.graph());
  check_split_tables(splits, g.graph());
  const std::vector<FixedRows> all_fixed = fixed_rows(config.parameters, g.graph());

  std::vector<Chosen> chosen = choose_parameters(g.graph(), request);
  if (!config.parameters.freeze.empty()) {
    const ParameterNames names(g.graph());
    for (std::string& line : FreezeRules(config.parameters, names).without_effect(g.graph()))
      result.notes.push_back(std::move(line));
  }
  if (config.optimizer.layer_decay < 1)
    decay_by_layers(g.graph(), config.optimizer, chosen, result.notes);
  std::vector<ValueId> wanted;
  for (const Chosen& c : chosen) wanted.push_back(c.parameter.initial);
  g.set_scope({"loss.gradient", Phase::backward, {}});
  const GradientSeed seed{
      loss.total, is_scaled ? add_loss_scale(g, config.precision) : g.scalar(1.0, DType::float32)};
  std::vector<ValueId> gradients = add_gradients(g, std::span(&seed, 1), wanted);

  StateShards state_shards(g, request.ranks, request.shards);
  GradientClipping clipping(g, config.optimizer);
  std::vector<UpdateRequest> requests;
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!gradients[i]) {
      result.notes.push_back(chosen[i].parameter.path +
                             " does not reach the loss and stays as it is");
      continue;
    }
    if (std::optional<Diagnostic> problem = wrong_kind(chosen[i])) {
      problems.push_back(std::move(*problem));
      continue;
    }
    UpdateRequest update{
        .parameter = chosen[i].parameter, .group = chosen[i].group, .options = chosen[i].options};
    const SplitTable* split = find_split_table(splits, update.parameter);
    update.shares_states = state_shards.covers(chosen[i]);
    if (!update.shares_states || split != nullptr)
      update.rows = kept_rows(g.graph(), chosen[i], gradients[i], split, ranks, result.notes);
    const FixedRows* fixed = find_fixed_rows(all_fixed, update.parameter);
    if (split != nullptr && clipping.reads_weights(update.group)) {
      refuse_split_table(*split, update.parameter.path,
                         "optimizer.clip_adaptive reads whole rows, of which a split table has "
                         "halves",
                         "clip_adaptive = 0 for this table", "",
                         "add { at = \"" + update.parameter.path +
                             "\", clip_adaptive = 0 } to optimizer.groups, or leave the table out "
                             "of parameters.storage");
    }
    if (split != nullptr && is_in_norms(config.log, ParameterNames(g.graph()), update.parameter)) {
      result.notes.push_back("log.norms: " + update.parameter.path +
                             " has norm.gradient alone, for parameters.storage keeps it as halves");
    }
    if (update.shares_states && (split != nullptr || fixed != nullptr)) {
      problems.push_back(of_rows_in_parts(chosen[i], split != nullptr));
      continue;
    }
    if (fixed != nullptr) keep_rows(g, *fixed, chosen[i], update);
    if (split != nullptr && !update.rows) {
      refuse_split_table(
          *split, update.parameter.path,
          "a split table with fixed_rows needs an optimizer that leaves rows without "
          "a gradient alone",
          kinds_of_rows(), std::string(chosen[i].options.name()),
          "give it such a group in optimizer.groups, or leave it out of storage");
    }
    update.gradient = gradients[i];
    if (update.shares_states && state_shards.covers_gradient(chosen[i]))
      state_shards.cut(update, true);
    update.gradient = accumulate(g, update.parameter, update.gradient, request.kind);
    const bool is_dense =
        request.kind != MicroBatchKind::whole || clipping.changes_elements(update.group);
    if (update.rows && is_dense) {
      if (choose_update(update.options).lazy || split != nullptr)
        update.touched = mark(g, update.parameter, *update.rows, request.kind);
      update.rows.reset();
    }
    if (fixed != nullptr && !update.rows && !update.touched)
      update.touched = marks_of_other_rows(g, *fixed, update.parameter);
    requests.push_back(std::move(update));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  if (request.kind == MicroBatchKind::first || request.kind == MicroBatchKind::middle) {
    check_state_names(g.graph());
    result.graph = folded(g.finish(), operators, request.evaluate);
    return result;
  }

  for (UpdateRequest& update : requests) {
    if (update.shares_states && !update.parameter.shard)
      state_shards.cut(update, false);
    else
      ranks.sum(update);
  }
  LearningRates rates(g);
  rates.of(config.optimizer.base.lr, 0);
  const Schedules schedules(config.optimizer, {});
  for (UpdateRequest& update : requests)
    update.lr = rates.of(update.options.lr, schedules.of_group(update.group));
  Updates updates(g);
  g.set_scope({"optimizer.scale", Phase::update, {}});
  UpdateScalars scalars;
  scalars.step = g.input(step_input, TensorType{DType::int64, {}});
  scalars.skip = g.scalar(0, DType::boolean);
  scalars.scale = g.scalar(1.0, DType::float32);
  const auto all_squares = [&] {
    std::vector<ValueId> squares;
    for (const UpdateRequest& update : requests) {
      const ValueId square = updates.sum_of_squares(update);
      squares.push_back(update.parameter.shard ? ranks.sum_of_parts(square) : square);
    }
    return squares;
  };
  const std::vector<State> resting = resting_parameters(g.graph(), request);
  UpdateNorms norms(g, ranks, config.log, requests, resting,
                    [&](const State& parameter) { return find_split_table(splits, parameter); });
  norms.add_gradients(updates, requests, is_scaled ? seed.dy : ValueId{});
  g.set_scope({"optimizer.scale", Phase::update, {}});
  std::vector<ValueId> scales(requests.size());  // for single updates, in addition to scalars.scale
  if (clipping.is_plain()) {
    const std::optional<double>& most = config.optimizer.clip_norm;
    if (is_scaled) {
      scalars = add_scaled_step(g, seed.dy, most, config.precision, scalars.step, all_squares());
    } else if (most) {
      const std::vector<ValueId> clip = g.node("ClipScale", all_squares(), {{"max_norm", *most}});
      scalars.scale = clip[0];
      g.output("gradient_norm", clip[1]);
    }
  } else {
    // Whether a step is skipped depends on the gradients before clipping.
    const ValueId loss_scale = is_scaled ? seed.dy : ValueId{};
    std::vector<ValueId> before;
    if (is_scaled) before = all_squares();
    for (UpdateRequest& update : requests) clipping.clip_elements(update, loss_scale);
    g.set_scope({"optimizer.scale", Phase::update, {}});
    if (clipping.has_norms()) scales = clipping.norm_scales(requests, all_squares(), loss_scale);
    if (is_scaled) {
      scalars = add_scaled_step(g, seed.dy, std::nullopt, config.precision, scalars.step, before);
      for (ValueId& scale : scales) {
        if (scale) scale = g.mul(scale, scalars.scale);
      }
    }
  }
  norms.keep_parameters();
  StepNumbers steps(g, scalars.step, request.missed_steps);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const UpdateRequest& update = requests[i];
    UpdateScalars own = scalars;
    own.step = steps.of(update.parameter);
    if (scales[i]) own.scale = scales[i];
    const ValueId made = updates.add(update, own);
    if (update.shares_states) state_shards.put_together(update, made);
  }
  std::vector<std::string> split_names;
  for (const SplitTable& split : splits) split_names.push_back(split.name);
  result.averages = add_averages(g, averages_of_now(config.optimizer, g.graph(), requests, resting),
                                 requests, split_names);
  norms.add_updates();
  result.norms = norms.names();
  check_state_names(g.graph());
  result.learning_rates = std::move(rates.list);
  result.graph = folded(g.finish(), operators, request.evaluate);
  return result;
}

Graph build_evaluation_graph(const OperatorSet& operators, const Graph& forward,
                             const TrainingRequest& request) {
  Graph own = shard_tables(operators, forward, request.shards, request.ranks);
  if (request.algorithm != nullptr) {
    GraphBuilder g(operators, std::move(own));
    const Loss loss = algorithm_loss(g, *request.algorithm, request.config->loss);
    drop_outputs(g.graph());
    RankSums alone(g, {});
    name_loss(g, loss, alone);
    return remove_dead(g.finish(), operators);
  }
  refuse_values_named_as_losses(request.config->loss, forward);
  GraphWithLoss made = with_loss(operators, std::move(own), request, true);
  GraphBuilder g(operators, std::move(made.graph));
  RankSums alone(g, {});
  name_loss(g, made.loss, alone);
  return g.finish();
}

Graph keep_named_values(Graph forward, const RunConfig& config) {
  for (const LossTerm& term : config.loss.terms) {
    std::vector<std::string> names = term.values;
    if (names_teacher(term.labels)) names.push_back(term.labels);
    for (const std::string& name : names) {
      if (forward.find_output(name) != nullptr) continue;
      if (const ValueId value = forward.find_value(name)) forward.outputs.push_back({name, value});
    }
  }
  return forward;
}

}  // namespace tandem
