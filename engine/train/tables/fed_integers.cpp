#include "engine/train/tables/fed_integers.h"

#include <numeric>

#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {

std::vector<Lookup> lookups_of(const Graph& graph) {
  std::vector<Lookup> found;
  for (const Node& node : graph.nodes) {
    if (!looks_up_rows(node)) continue;
    for (const State& state : graph.states) {
      if (state.kind != StateKind::parameter || !(state.initial == node.inputs[0])) continue;
      found.push_back({state.name, node.inputs[1], graph.type(state.initial).shape[0]});
    }
  }
  return found;
}

FedIntegers::FedIntegers(const Graph& graph, const DataSource& source, const Evaluator& evaluate)
    : graph_(graph),
      source_(source),
      evaluate_(evaluate),
      known_(graph.values.size(), Known::open),
      values_(graph.values.size()) {
  for (const NamedValue& input : graph.inputs) {
    const int field = source.find_field(input.name);
    const TensorType& type = graph.type(input.value);
    if (field < 0 || type.rank() == 0 || type.shape[0] < 1) continue;
    TensorType sample = source.fields()[static_cast<std::size_t>(field)].sample;
    sample.shape.insert(sample.shape.begin(), type.shape[0]);
    if (sample == type) inputs_.push_back({input.value, field, false});
  }
}

bool FedIntegers::add(ValueId value) {
  Known& known = known_[value.index];
  if (known != Known::open) return known == Known::yes;
  known = Known::no;
  const Value& of = graph_.value(value);
  if (of.kind == ValueKind::input) {
    for (Input& input : inputs_) {
      if (!(input.value == value)) continue;
      const std::int64_t samples = of.type.shape[0];
      if (samples_ != 0 && samples_ != samples) return false;
      samples_ = samples;
      input.needed = true;
      known = Known::yes;
    }
  } else if (of.kind == ValueKind::constant) {
    values_[value.index] = *of.constant;
    known = Known::yes;
  } else if (of.kind == ValueKind::computed) {
    const Node& node = graph_.node(of.producer);
    if (node.body) return false;
    for (const ValueId input : node.inputs) {
      if (input && !add(input)) return false;
    }
    known_[value.index] = Known::yes;
    for (const ValueId output : node.outputs) known_[output.index] = Known::yes;
    nodes_.push_back(of.producer);  // after those that it reads
  }
  return known_[value.index] == Known::yes;
}

void FedIntegers::read(std::int64_t micro_batch) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(samples_));
  std::iota(samples.begin(), samples.end(), micro_batch * samples_);
  read(samples);
}

std::vector<int> FedIntegers::fields() const {
  std::vector<int> read;
  for (const Input& input : inputs_) {
    if (input.needed) read.push_back(input.field);
  }
  return read;
}

void FedIntegers::read(std::span<const std::int64_t> samples) {
  for (const Input& input : inputs_) {
    if (!input.needed) continue;
    HostTensor& to = values_[input.value.index];
    if (to.data() == nullptr) to = HostTensor(graph_.type(input.value));
    source_.fill(input.field, samples, nullptr, to.data());
  }
  for (const NodeId id : nodes_) {
    const Node& node = graph_.node(id);
    std::vector<HostTensor> operands;
    for (const ValueId input : node.inputs) {
      operands.push_back(input ? values_[input.index] : HostTensor());
    }
    std::vector<HostTensor> results = evaluate_(graph_, node, operands);
    for (std::size_t i = 0; i < results.size(); ++i) {
      values_[node.outputs[i].index] = std::move(results[i]);
    }
  }
}

std::vector<std::int64_t> named_rows(const HostTensor& ids, std::int64_t rows) {
  const std::int64_t absent = absent_id_of(ids.type().dtype);
  std::vector<std::int64_t> named = ids.integers();
  std::erase_if(named, [&](std::int64_t id) { return id == absent || id < -rows || id >= rows; });
  for (std::int64_t& id : named) {
    if (id < 0) id += rows;
  }
  return named;
}

}  // namespace tandem
