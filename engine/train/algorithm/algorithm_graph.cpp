#include "engine/train/algorithm/algorithm_graph.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <set>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/gradient/gradient.h"
#include "engine/gradient/row_gradient.h"
#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/operators/scalar_functions.h"
#include "engine/operators/update_kind.h"
#include "engine/train/algorithm/algorithm_settings.h"
#include "engine/train/updates/add_update.h"

namespace tandem {
namespace {

std::size_t slot(ValueId id) { return static_cast<std::size_t>(id.index); }
std::size_t slot(NodeId id) { return static_cast<std::size_t>(id.index); }

/// What writes states: an update of the engine, or a value that is assigned.
struct Writer {
  std::vector<std::string> states;
  std::set<std::string> reads;  // states whose values before the step it takes
  const AlgorithmUpdate* update = nullptr;
  ValueId value;  // the assigned value, in the algorithm's graph
};

[[noreturn]] void refuse_cycle(const std::vector<Writer>& writers) {
  Diagnostic d;
  d.path = "training_info.update_binding";
  d.message = "the update is cyclic: initializers are written from each other's values";
  for (const Writer& writer : writers)
    d.got += (d.got.empty() ? "" : ", ") + ("'" + writer.states[0] + "'");
  d.fix = "let an Identity make the values that are read";
  throw Error(ErrorKind::usage, std::move(d));
}

class StepBuilder {
 public:
  StepBuilder(GraphBuilder& g, const TrainingAlgorithm& algorithm)
      : g_(g),
        algorithm_(algorithm),
        graph_(algorithm.graph),
        map_(graph_.values.size()),
        derivative_of_(graph_.values.size(), -1),
        is_done_(algorithm.gradients.size(), false),
        updates_by_engine_(g) {}

  void run() {
    place_inputs();
    find_plain_steps();
    choose_updates();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (is_live_[n]) copy(graph_.nodes[n]);
    }
    const std::vector<Writer> order = in_order(writers());
    for (const Writer& writer : order) {  // all that reads states comes before what writes them
      if (writer.update == nullptr) {
        mapped(writer.value);
        continue;
      }
      for (const ValueId id : {writer.update->lr, writer.update->step, writer.update->gradient})
        mapped(id);
    }
    for (const Writer& writer : order) write(writer);
  }

 private:
  void place_inputs() {
    const Graph& forward = g_.graph();
    for (const AlgorithmInput& input : algorithm_.inputs) {
      ValueId& to = map_[slot(input.value)];
      switch (input.from) {
        case AlgorithmInput::From::output:
          to = forward.find_output(input.name)->value;
          break;
        case AlgorithmInput::From::input:
          to = forward.find_input(input.name)->value;
          break;
        case AlgorithmInput::From::state:
          to = forward.find_state(input.name)->initial;
          state_at_[input.value.index] = input.name;
          break;
      }
    }
    for (const State& state : graph_.states) {
      State own = state;
      map_[slot(state.initial)] = g_.state(std::move(own));
      state_at_[state.initial.index] = state.name;
    }
    for (std::size_t k = 0; k < algorithm_.gradients.size(); ++k) {
      for (const ValueId dx : algorithm_.gradients[k].dx) {
        if (dx) derivative_of_[slot(dx)] = static_cast<int>(k);
      }
    }
  }

  const std::string* state_of(ValueId id) const {
    const auto found = state_at_.find(id.index);
    return found == state_at_.end() ? nullptr : &found->second;
  }

  // x - r g with a number r is the engine's step of SGD.
  void find_plain_steps() {
    updates_ = algorithm_.updates;
    for (const AlgorithmWrite& write : algorithm_.writes) {
      const bool is_known = std::any_of(
          algorithm_.updates.begin(), algorithm_.updates.end(), [&](const AlgorithmUpdate& update) {
            return std::find(update.after.begin(), update.after.end(), write.value) !=
                   update.after.end();
          });
      if (is_known) continue;
      const Node* sub = made_by(write.value, ScalarFunction::sub);
      const Node* mul = sub ? made_by(sub->inputs[1], ScalarFunction::mul) : nullptr;
      if (mul == nullptr || state_of(sub->inputs[0]) == nullptr) continue;
      const TensorType& type = graph_.type(sub->inputs[0]);
      for (const std::size_t k : {0, 1}) {
        const ValueId rate = mul->inputs[k], gradient = mul->inputs[1 - k];
        const bool is_number = graph_.type(rate).elements() == 1;
        if (!is_number || graph_.type(gradient) != type) continue;
        updates_.push_back({"SgdUpdate", {}, rate, {}, gradient, {sub->inputs[0]}, {write.value}});
        break;
      }
    }
  }

  const Node* made_by(ValueId value, ScalarFunction function) const {
    const NodeId producer = graph_.value(value).producer;
    if (!producer || graph_.node(producer).op->scalar != function) return nullptr;
    return &graph_.node(producer);
  }

  // An update replaces the nodes that compute the same where no other node reads those.
  void choose_updates() {
    std::erase_if(updates_, [&](const AlgorithmUpdate& update) { return !fits(update); });
    for (;;) {
      find_live();
      const auto is_read = [&](const AlgorithmUpdate& update) {
        return std::any_of(update.after.begin(), update.after.end(), [&](ValueId after) {
          const NodeId producer = graph_.value(after).producer;
          return !producer || is_live_[slot(producer)];
        });
      };
      if (std::erase_if(updates_, is_read) == 0) return;
    }
  }

  /// Whether nothing else writes its states, and all of them have the types that the engine's
  /// update needs.
  bool fits(const AlgorithmUpdate& update) const {
    if (graph_.type(update.gradient).dtype != DType::float32) return false;
    std::set<std::string> names;
    for (std::size_t k = 0; k < update.before.size(); ++k) {
      const std::string* state = state_of(update.before[k]);
      if (state == nullptr || !names.insert(*state).second) return false;
      if (graph_.type(update.before[k]) != graph_.type(update.before[0])) return false;
      const auto written =
          std::find_if(algorithm_.writes.begin(), algorithm_.writes.end(),
                       [&](const AlgorithmWrite& write) { return write.state == *state; });
      if (written == algorithm_.writes.end() || !(written->value == update.after[k])) return false;
    }
    return graph_.type(update.before[0]) == graph_.type(update.gradient);
  }

  bool is_updated(const std::string& state) const {
    return std::any_of(updates_.begin(), updates_.end(), [&](const AlgorithmUpdate& update) {
      return std::any_of(update.before.begin(), update.before.end(),
                         [&](ValueId before) { return *state_of(before) == state; });
    });
  }

  // What the writes need that no update makes.
  void find_live() {
    is_live_.assign(graph_.nodes.size(), false);
    std::vector<ValueId> todo;
    for (const AlgorithmWrite& write : algorithm_.writes) {
      if (!is_updated(write.state)) todo.push_back(write.value);
    }
    for (const AlgorithmUpdate& update : updates_) {
      for (const ValueId id : {update.lr, update.step, update.gradient}) {
        if (id) todo.push_back(id);
      }
    }
    std::vector<bool> asked(algorithm_.gradients.size(), false);
    while (!todo.empty()) {
      const ValueId value = todo.back();
      todo.pop_back();
      if (const int k = derivative_of_[slot(value)];
          k >= 0 && !asked[static_cast<std::size_t>(k)]) {
        asked[static_cast<std::size_t>(k)] = true;
        const AlgorithmGradient& gradient = algorithm_.gradients[static_cast<std::size_t>(k)];
        todo.push_back(gradient.y);
        todo.insert(todo.end(), gradient.xs.begin(), gradient.xs.end());
      }
      const NodeId producer = graph_.value(value).producer;
      if (!producer || is_live_[slot(producer)]) continue;
      is_live_[slot(producer)] = true;
      for (const ValueId input : graph_.node(producer).inputs) {
        if (input) todo.push_back(input);
      }
    }
  }

  ValueId mapped(ValueId id) {
    if (!id) return {};
    ValueId& to = map_[slot(id)];
    if (to) return to;
    const Value& value = graph_.value(id);
    if (value.kind == ValueKind::constant) return to = g_.constant(*value.constant, value.name);
    assert(derivative_of_[slot(id)] >= 0 && "a value is used before its producer was copied");
    derive(static_cast<std::size_t>(derivative_of_[slot(id)]));
    return map_[slot(id)];
  }

  void copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    g_.set_scope({node.path, node.phase, node.origins});
    const std::vector<ValueId> outputs =
        g_.node(node.op->name, std::move(inputs), node.attributes, node.body);
    for (std::size_t i = 0; i < outputs.size(); ++i) map_[slot(node.outputs[i])] = outputs[i];
  }

  void derive(std::size_t k) {
    assert(!is_done_[k]);
    is_done_[k] = true;
    const AlgorithmGradient& gradient = algorithm_.gradients[k];
    const ValueId y = mapped(gradient.y);
    std::vector<ValueId> wanted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < gradient.dx.size(); ++i) {
      if (!gradient.dx[i]) continue;
      wanted.push_back(mapped(gradient.xs[i]));
      places.push_back(i);
    }
    g_.set_scope({gradient.path, Phase::backward, {}});
    const GradientSeed seed{y, g_.filled(1, g_.type(y))};
    const std::vector<ValueId> made = add_gradients(g_, std::span(&seed, 1), wanted);
    std::vector<Diagnostic> problems;
    for (std::size_t i = 0; i < made.size(); ++i) {
      map_[slot(gradient.dx[places[i]])] = made[i];
      if (made[i]) continue;
      Diagnostic& d = problems.emplace_back();
      d.path = gradient.path;
      d.message = "Gradient: '" + graph_.value(gradient.y).name + "' does not depend on '" +
                  graph_.value(gradient.xs[places[i]]).name + "' by floating-point values";
      d.expected = "xs that y is computed from";
      d.fix = "leave it out of xs, or make y of it";
    }
    if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  }

  std::vector<Writer> writers() const {
    std::vector<Writer> all;
    for (const AlgorithmUpdate& update : updates_) {
      Writer writer;
      writer.update = &update;
      for (const ValueId before : update.before) writer.states.push_back(*state_of(before));
      for (const ValueId id : {update.lr, update.step, update.gradient}) {
        if (const std::string* state = id ? state_of(id) : nullptr) writer.reads.insert(*state);
      }
      all.push_back(std::move(writer));
    }
    for (const AlgorithmWrite& write : algorithm_.writes) {
      if (is_updated(write.state)) continue;
      Writer writer;
      writer.value = write.value;
      writer.states.push_back(write.state);
      const std::string* from = state_of(write.value);
      if (from != nullptr && *from == write.state) continue;  // it stays as it is
      if (from != nullptr) writer.reads.insert(*from);
      all.push_back(std::move(writer));
    }
    return all;
  }

  // What reads a state comes before what overwrites it.
  static std::vector<Writer> in_order(std::vector<Writer> left) {
    std::vector<Writer> order;
    while (!left.empty()) {
      const auto next = std::find_if(left.begin(), left.end(), [&](const Writer& writer) {
        return std::none_of(left.begin(), left.end(), [&](const Writer& other) {
          return &other != &writer &&
                 std::any_of(writer.states.begin(), writer.states.end(),
                             [&](const std::string& name) { return other.reads.contains(name); });
        });
      });
      if (next == left.end()) refuse_cycle(left);
      order.push_back(std::move(*next));
      left.erase(next);
    }
    return order;
  }

  ValueId initial(const std::string& state) const { return g_.graph().find_state(state)->initial; }

  void write(const Writer& writer) {
    const GraphBuilder::Scope scope{"optimizer." + writer.states[0], Phase::update, {}};
    if (writer.update == nullptr) {
      const ValueId value = mapped(writer.value);
      g_.set_scope(scope);
      const ValueId state = initial(writer.states[0]);
      g_.write_state(state, g_.add_node("Assign", {state, value}));
      return;
    }
    const AlgorithmUpdate& update = *writer.update;
    const ValueId gradient = mapped(update.gradient);
    const ValueId step =
        update.step ? mapped(update.step) : g_.scalar(1, DType::int64);  // SGD does not count
    g_.set_scope(scope);
    UpdateRequest request;
    request.parameter = *g_.graph().find_state(writer.states[0]);
    request.gradient = gradient;
    request.lr = g_.reshape(g_.cast(mapped(update.lr), DType::float32), {});
    const UpdateKind& kind = *find_update_kind(update.op);
    Attributes settings = update.settings;
    for (const AttributeSpec& spec : kind.attributes) {
      if (settings.find(spec.name) == nullptr) settings.set(spec.name, spec.value);
    }
    const bool keeps_still = kind.keeps_still(settings);
    if (keeps_still) request.rows = few_rows(gradient);
    std::vector<std::string> names{writer.states[0]};  // names of the states it makes; "": not kept
    std::vector<ValueId> states;
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      const bool is_kept = k + 1 < writer.states.size();
      names.push_back(is_kept ? writer.states[k + 1] : "");
      states.push_back(is_kept ? initial(names.back()) : ValueId{});
    }
    const std::vector<ValueId> made = updates_by_engine_.add_node(
        request, update.op, settings, states, keeps_still, {step, one(), never()});
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (!names[k].empty()) g_.write_state(initial(names[k]), made[k]);
    }
  }

  // Where lookups of few rows make the gradient of a table.
  std::optional<RowGradient> few_rows(ValueId gradient) const {
    std::optional<RowGradient> rows = row_gradient(g_.graph(), gradient);
    if (rows && !are_few(id_count(g_.graph(), *rows), g_.shape(gradient)[0])) rows.reset();
    return rows;
  }

  // The factor of gradients, and whether a step is left out: shared, so that updates are grouped.
  ValueId one() { return one_ ? one_ : one_ = g_.scalar(1, DType::float32); }
  ValueId never() { return never_ ? never_ : never_ = g_.scalar(0, DType::boolean); }

  GraphBuilder& g_;
  const TrainingAlgorithm& algorithm_;
  const Graph& graph_;
  std::vector<ValueId> map_;
  std::vector<int> derivative_of_;                // which gradient; -1: none
  std::vector<bool> is_done_;                     // by gradient
  std::vector<bool> is_live_;                     // by node
  std::map<std::int32_t, std::string> state_at_;  // by value of the algorithm's graph
  std::vector<AlgorithmUpdate> updates_;
  Updates updates_by_engine_;
  ValueId one_, never_;
};

}  // namespace

Loss algorithm_loss(GraphBuilder& g, const TrainingAlgorithm& algorithm, const LossConfig& config) {
  const std::string& name = config.output.empty() ? algorithm.loss : config.output;
  const NamedValue* output = name.empty() ? nullptr : g.graph().find_output(name);
  if (output == nullptr || g.type(output->value).elements() != 1 ||
      !is_float(g.dtype(output->value))) {
    throw Error(ErrorKind::usage,
                at(config.where, "loss.output", "the model's training has no such loss to log",
                   "an output that is one floating-point number and needs no gradient",
                   name.empty()        ? "no Gradient of such a value"
                   : output == nullptr ? "'" + name + "'"
                                       : "'" + name + "': " + to_string(g.type(output->value)),
                   "name one: [loss] output = \"NAME\""));
  }
  g.set_scope({"loss.total", Phase::forward, {}});
  Loss loss;
  loss.total = g.reshape(g.cast(output->value, DType::float32), {});
  return loss;
}

TrainingGraph build_algorithm_graph(const OperatorSet& operators, const Graph& forward,
                                    const TrainingRequest& request) {
  check_algorithm_settings(request, forward);
  GraphBuilder g(operators, forward);
  TrainingGraph result;
  const Loss loss = algorithm_loss(g, *request.algorithm, request.config->loss);
  StepBuilder(g, *request.algorithm).run();
  g.graph().outputs = {{"loss", loss.total}};
  result.graph = g.finish();
  return result;
}

Graph without_algorithm(Graph forward, const OperatorSet& operators,
                        const TrainingAlgorithm& algorithm) {
  std::erase_if(forward.outputs, [&](const NamedValue& output) {
    return std::find(algorithm.outputs.begin(), algorithm.outputs.end(), output.name) ==
           algorithm.outputs.end();
  });
  Graph graph = remove_dead(forward, operators);
  const auto readers = readers_of(graph);
  std::erase_if(graph.inputs,
                [&](const NamedValue& input) { return readers[slot(input.value)].empty(); });
  return graph;
}

std::string TrainingAlgorithm::summary() const {
  std::size_t derivatives = 0;
  for (const AlgorithmGradient& gradient : gradients)
    derivatives += static_cast<std::size_t>(std::count_if(
        gradient.dx.begin(), gradient.dx.end(), [](ValueId dx) { return static_cast<bool>(dx); }));
  std::string text = std::to_string(derivatives) + " gradients";
  if (!loss.empty()) text += " of '" + loss + "'";
  text += ", " + std::to_string(writes.size()) + " initializers that a step changes";
  if (!initialization.outputs.empty())
    text += ", " + std::to_string(initialization.outputs.size()) + " that start from its graph";
  return text;
}

}  // namespace tandem
