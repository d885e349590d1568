#include "importer/training_info/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/graph/builder.h"
#include "engine/graph/rewrite.h"

namespace tandem::importer {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }
std::size_t at(NodeId id) { return static_cast<std::size_t>(id.index); }

class Splitter {
 public:
  Splitter(Graph all, const OperatorSet& operators, SplitRequest request)
      : all_(std::move(all)),
        request_(std::move(request)),
        operators_(operators),
        builder_(operators),
        map_(all_.values.size()),
        derivative_of_(all_.values.size(), -1),
        is_late_(all_.values.size(), false),
        is_forward_(all_.nodes.size(), false),
        is_needed_(all_.nodes.size(), false) {}

  Split run() {
    find_late();
    find_forward();
    find_needed();
    for (std::size_t n = 0; n < all_.nodes.size(); ++n) {
      if (is_needed_[n] && !is_forward_[n]) copy(all_.nodes[n]);
    }
    TrainingAlgorithm& algorithm = split_.algorithm;
    for (const NamedValue& output : request_.outputs) algorithm.outputs.push_back(output.name);
    for (const AlgorithmWrite& write : request_.writes)
      algorithm.writes.push_back({write.state, mapped(write.value)});
    for (AlgorithmGradient& gradient : request_.gradients) {
      if (!is_asked(gradient)) continue;
      if (algorithm.loss.empty() && !is_late_[at(gradient.y)])
        algorithm.loss = output_name(gradient.y);
      map_all({&gradient.y});
      for (ValueId& x : gradient.xs) map_all({&x});
      for (ValueId& dx : gradient.dx) map_all({&dx});
      algorithm.gradients.push_back(std::move(gradient));
    }
    for (AlgorithmUpdate& update : request_.updates) {
      map_all({&update.lr, &update.step, &update.gradient});
      for (ValueId& value : update.before) map_all({&value});
      for (ValueId& value : update.after) map_all({&value});
      algorithm.updates.push_back(std::move(update));
    }
    algorithm.graph = builder_.finish();
    finish_forward();
    return std::move(split_);
  }

 private:
  // What depends on a derivative.
  void find_late() {
    for (std::size_t g = 0; g < request_.gradients.size(); ++g) {
      for (const ValueId dx : request_.gradients[g].dx) {
        if (!dx) continue;
        is_late_[at(dx)] = true;
        derivative_of_[at(dx)] = static_cast<int>(g);
      }
    }
    for (const Node& node : all_.nodes) {
      const bool late = std::any_of(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId id) { return id && is_late_[at(id)]; });
      for (const ValueId output : node.outputs) is_late_[at(output)] = late;
    }
  }

  // The nodes that the model's outputs need, and what is derived.
  void find_forward() {
    forward_outputs_ = request_.outputs;
    for (const NamedValue& output : request_.more_outputs) {
      const bool is_state = all_.value(output.value).kind == ValueKind::state;
      if (!is_late_[at(output.value)] && !is_state) forward_outputs_.push_back(output);
    }
    std::vector<ValueId> todo;
    for (const NamedValue& output : forward_outputs_) todo.push_back(output.value);
    for (const AlgorithmGradient& gradient : request_.gradients) todo.push_back(gradient.y);
    while (!todo.empty()) {
      const NodeId producer = all_.value(todo.back()).producer;
      const ValueId value = todo.back();
      todo.pop_back();
      if (!producer) continue;
      // Parts of a late value may lie before the gradients, too.
      if (!is_late_[at(value)]) {
        if (is_forward_[at(producer)]) continue;
        is_forward_[at(producer)] = true;
      } else if (!late_seen_.insert(value.index).second) {
        continue;
      }
      for (const ValueId input : all_.node(producer).inputs) {
        if (input) todo.push_back(input);
      }
    }
  }

  void find_needed() {
    std::vector<ValueId> todo;
    const auto add = [&](ValueId id) {
      if (id) todo.push_back(id);
    };
    for (const AlgorithmWrite& write : request_.writes) add(write.value);
    for (const AlgorithmUpdate& update : request_.updates) {
      for (const ValueId id : {update.lr, update.step, update.gradient}) add(id);
      for (const ValueId id : update.before) add(id);
      for (const ValueId id : update.after) add(id);
    }
    asked_.assign(request_.gradients.size(), false);
    while (!todo.empty()) {
      const ValueId value = todo.back();
      todo.pop_back();
      if (const int g = derivative_of_[at(value)]; g >= 0 && !asked_[static_cast<std::size_t>(g)]) {
        asked_[static_cast<std::size_t>(g)] = true;
        add(request_.gradients[static_cast<std::size_t>(g)].y);
        for (const ValueId x : request_.gradients[static_cast<std::size_t>(g)].xs) add(x);
      }
      const NodeId producer = all_.value(value).producer;
      if (!producer || is_needed_[at(producer)]) continue;
      is_needed_[at(producer)] = true;
      for (const ValueId input : all_.node(producer).inputs) add(input);
    }
  }

  bool is_asked(const AlgorithmGradient& gradient) const {
    return asked_[static_cast<std::size_t>(&gradient - request_.gradients.data())];
  }

  void map_all(std::initializer_list<ValueId*> ids) {
    for (ValueId* id : ids) {
      if (*id) *id = mapped(*id);
    }
  }

  /// The value in the algorithm's graph.
  ValueId mapped(ValueId id) {
    ValueId& to = map_[at(id)];
    if (to) return to;
    const Value& value = all_.value(id);
    using From = AlgorithmInput::From;
    if (value.kind == ValueKind::constant) {
      to = builder_.constant(*value.constant, value.name);
    } else if (derivative_of_[at(id)] >= 0) {
      to = builder_.input(value.name, value.type);
    } else if (value.kind == ValueKind::state) {
      const State& state = *std::find_if(all_.states.begin(), all_.states.end(),
                                         [&](const State& s) { return s.initial == id; });
      to = is_of_algorithm(state) ? builder_.state(state)
                                  : linked(From::state, state.name, value.type);
    } else if (value.kind == ValueKind::input) {
      to = linked(From::input, name_of_input(id), value.type);
    } else {
      to = linked(From::output, output_name(id), value.type);
    }
    return to;
  }

  ValueId linked(AlgorithmInput::From from, const std::string& name, const TensorType& type) {
    const ValueId input = builder_.input(name, type);
    split_.algorithm.inputs.push_back({from, name, input});
    return input;
  }

  const std::string& name_of_input(ValueId id) const {
    return std::find_if(all_.inputs.begin(), all_.inputs.end(),
                        [&](const NamedValue& input) { return input.value == id; })
        ->name;
  }

  /// The output of the forward graph that gives the value; made where there is none.
  std::string output_name(ValueId id) {
    for (const NamedValue& output : forward_outputs_) {
      if (output.value == id) return output.name;
    }
    std::string name = all_.value(id).name;
    const auto is_taken = [&] {
      return std::any_of(forward_outputs_.begin(), forward_outputs_.end(),
                         [&](const NamedValue& output) { return output.name == name; });
    };
    while (is_taken()) name += "'";
    forward_outputs_.push_back({name, id});
    return name;
  }

  /// Whether forward does not read it.
  bool is_of_algorithm(const State& state) const {
    if (request_.own_states.count(state.name) == 0) return false;
    for (std::size_t n = 0; n < all_.nodes.size(); ++n) {
      const std::vector<ValueId>& inputs = all_.nodes[n].inputs;
      if (is_forward_[n] && std::find(inputs.begin(), inputs.end(), state.initial) != inputs.end())
        return false;
    }
    return true;
  }

  void copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(input ? mapped(input) : ValueId{});
    builder_.set_scope({node.path, Phase::update, node.origins});
    const std::vector<ValueId> outputs =
        builder_.node(node.op->name, std::move(inputs), node.attributes, node.body);
    for (std::size_t i = 0; i < outputs.size(); ++i) map_[at(node.outputs[i])] = outputs[i];
  }

  void finish_forward() {
    // States that are written although no node of this graph reads them.
    for (const AlgorithmWrite& write : request_.writes) {
      const State& state = *all_.find_state(write.state);
      if (is_of_algorithm(state) && !map_[at(state.initial)]) {
        GraphBuilder more(operators_, std::move(split_.algorithm.graph));
        map_[at(state.initial)] = more.state(state);
        split_.algorithm.graph = more.finish();
      }
    }
    std::erase_if(all_.inputs,
                  [&](const NamedValue& input) { return derivative_of_[at(input.value)] >= 0; });
    std::vector<State> states;
    for (State& state : all_.states) {
      if (!is_of_algorithm(state)) states.push_back(state);
    }
    all_.states = std::move(states);
    all_.outputs = std::move(forward_outputs_);
    split_.forward = remove_dead(all_, operators_);
  }

  Graph all_;
  SplitRequest request_;
  const OperatorSet& operators_;
  GraphBuilder builder_;
  Split split_;
  std::vector<ValueId> map_;
  std::vector<int> derivative_of_;  // which gradient; -1: none
  std::vector<bool> is_late_;
  std::vector<bool> is_forward_, is_needed_;  // by node
  std::vector<bool> asked_;                   // by gradient
  std::unordered_set<std::int32_t> late_seen_;
  std::vector<NamedValue> forward_outputs_;
};

}  // namespace

Split split_training(Graph all, const OperatorSet& operators, SplitRequest request) {
  return Splitter(std::move(all), operators, std::move(request)).run();
}

}  // namespace tandem::importer
