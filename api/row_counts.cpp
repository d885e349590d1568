#include "api/row_counts.h"

#include <algorithm>
#include <numeric>

#include "api/id_source.h"
#include "engine/operators/operator.h"

namespace tandem::api {
namespace {

constexpr std::int64_t most_passes = 32;

struct LookUp {
  std::string parameter;
  ValueId ids;
  std::int64_t rows = 0;  // of the table
};

std::vector<LookUp> look_ups_of(const Graph& graph) {
  std::vector<LookUp> found;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "Gather" || node.attributes.integer("axis") != 0) continue;
    for (const State& state : graph.states) {
      if (state.kind != StateKind::parameter || !(state.initial == node.inputs[0])) continue;
      found.push_back({state.name, node.inputs[1], graph.type(state.initial).shape[0]});
    }
  }
  return found;
}

/// Integers of the graph that the data alone decides, pass by pass.
class FedIntegers {
 public:
  FedIntegers(const Graph& graph, const DataSource& source, const Evaluator& evaluate)
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

  /// Whether `value` can be computed; from now on `read` does. All have one extent of axis 0.
  bool add(ValueId value) {
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
      nodes_.push_back(of.producer);  // behind those that it reads
    }
    return known_[value.index] == Known::yes;
  }

  /// Passes that the data fills.
  std::int64_t passes() const { return samples_ == 0 ? 0 : source_.samples() / samples_; }

  void read(std::int64_t pass) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(samples_));
    std::iota(samples.begin(), samples.end(), pass * samples_);
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
  const HostTensor& value(ValueId id) const { return values_[id.index]; }

 private:
  enum class Known : std::uint8_t { open, no, yes };
  struct Input {
    ValueId value;
    int field = -1;
    bool needed = false;
  };

  const Graph& graph_;
  const DataSource& source_;
  const Evaluator& evaluate_;
  std::vector<Known> known_;        // by value
  std::vector<HostTensor> values_;  // by value
  std::vector<Input> inputs_;       // that fields of their type feed
  std::vector<NodeId> nodes_;       // in the order to compute them
  std::int64_t samples_ = 0;        // of a pass
};

/// Different rows of a table that the ids name; what is outside counts as row 0, or is refused when
/// the run checks its data.
std::int64_t distinct_rows(std::vector<std::int64_t> ids, std::int64_t rows) {
  for (std::int64_t& id : ids) {
    if (id < -rows || id >= rows) id = 0;
  }
  return count_unique(ids, rows);
}

}  // namespace

std::map<std::string, std::int64_t> count_unique_rows(const Graph& pass, const DataSource& source,
                                                      const Evaluator& evaluate) {
  FedIntegers fed(pass, source, evaluate);
  struct Group {  // look-ups of equal tables by the same ids
    ValueId ids;
    std::int64_t rows = 0, sum = 0;
  };
  std::vector<Group> groups;
  const auto group_of = [&](const LookUp& look_up) {
    return std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.ids == look_up.ids && group.rows == look_up.rows;
    });
  };
  std::map<std::string, bool> known;
  const std::vector<LookUp> look_ups = look_ups_of(pass);
  for (const LookUp& look_up : look_ups) {
    const auto [each, is_new] = known.emplace(look_up.parameter, true);
    each->second = fed.add(look_up.ids) && each->second;
    if (each->second && group_of(look_up) == groups.end()) {
      groups.push_back({look_up.ids, look_up.rows});
    }
  }
  const std::int64_t passes = std::min(fed.passes(), most_passes);
  if (passes == 0) return {};
  for (std::int64_t p = 0; p < passes; ++p) {
    fed.read(p);
    for (Group& group : groups) {
      group.sum += distinct_rows(fed.value(group.ids).integers(), group.rows);
    }
  }
  std::map<std::string, std::int64_t> sums;
  for (const LookUp& look_up : look_ups) {
    if (known[look_up.parameter]) sums[look_up.parameter] += group_of(look_up)->sum;
  }
  for (auto& [parameter, rows] : sums) rows = (rows + passes - 1) / passes;
  return sums;
}

}  // namespace tandem::api
