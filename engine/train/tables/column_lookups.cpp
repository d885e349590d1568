#include "engine/train/tables/column_lookups.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

/// The operators that a looked up value goes through from its one input, in their order.
class Chain {
 public:
  explicit Chain(const Graph& graph) : graph_(graph) {}

  /// False where it is made of floats, of several inputs, or of none.
  bool reach(ValueId id) {
    const Value& value = graph_.value(id);
    if (seen_.contains(id.index)) return true;
    seen_.insert(id.index);
    switch (value.kind) {
      case ValueKind::constant:
        return true;
      case ValueKind::input:
        if (input_ && !(input_ == id)) return false;
        input_ = id;
        return is_integer(value.type.dtype);
      case ValueKind::computed:
        break;
      case ValueKind::state:
        return false;
    }
    const Node& node = graph_.node(value.producer);
    if (node.body || nodes_.size() >= most_nodes || !is_integer(value.type.dtype)) return false;
    for (const ValueId operand : node.inputs) {
      if (operand && !reach(operand)) return false;
    }
    nodes_.push_back(value.producer);
    return true;
  }
  ValueId input() const { return input_; }

  /// The ids for these values of the input; nothing where a node cannot be computed.
  HostTensor run(const Evaluator& evaluate, ValueId ids, HostTensor fed) const {
    std::map<std::int32_t, HostTensor> values;
    values[input_.index] = std::move(fed);
    for (const NodeId id : nodes_) {
      const Node& node = graph_.node(id);
      std::vector<HostTensor> operands;
      for (const ValueId operand : node.inputs) {
        if (!operand)
          operands.emplace_back();
        else if (graph_.is_constant(operand))
          operands.push_back(*graph_.value(operand).constant);
        else
          operands.push_back(values[operand.index]);
      }
      std::vector<HostTensor> results = evaluate(graph_, node, operands);
      if (results.size() != node.outputs.size()) return {};
      for (std::size_t i = 0; i < results.size(); ++i)
        values[node.outputs[i].index] = std::move(results[i]);
    }
    return values[ids.index];
  }

 private:
  static constexpr std::size_t most_nodes = 64;

  const Graph& graph_;
  std::set<std::int32_t> seen_;
  std::vector<NodeId> nodes_;
  ValueId input_;
};

/// A tensor in which every element is its own index, times `scale`.
HostTensor numbered(const TensorType& type, std::int64_t scale) {
  HostTensor wide(TensorType{DType::int64, type.shape});
  std::int64_t number = 0;
  for (std::int64_t& value : wide.as<std::int64_t>()) value = scale * number++;
  return wide.converted(type.dtype);
}

/// Whether a number is larger than offsets of ids are; differences of nearer numbers do not
/// overflow.
bool is_far(std::int64_t number) {
  constexpr std::int64_t far = std::int64_t{1} << 60;
  return number < -far || number > far;
}

/// Fills in the offsets; false where an id is not the sum of an element and a constant.
bool trace(const Graph& graph, const Evaluator& evaluate, const Chain& chain, ValueId ids,
           ColumnLookup& to) {
  const TensorType& type = graph.type(chain.input());
  constexpr std::int64_t most_elements = 1 << 16;
  const std::int64_t all = type.elements();
  if (type.rank() < 1 || type.shape[0] < 1 || all < 1 || all > most_elements) return false;
  const std::int64_t each = all / type.shape[0];
  const HostTensor zeros = chain.run(evaluate, ids, numbered(type, 0));
  const HostTensor ones = chain.run(evaluate, ids, numbered(type, 1));
  const HostTensor twos = chain.run(evaluate, ids, numbered(type, 2));
  if (zeros.data() == nullptr || ones.data() == nullptr || twos.data() == nullptr) return false;
  const auto a = zeros.integers(), b = ones.integers(), c = twos.integers();
  to.offsets.assign(static_cast<std::size_t>(each), ColumnLookup::unread);
  for (std::size_t i = 0; i < a.size(); ++i) {
    // A division of 0 by 0 becomes INT64_MIN as an integer, which is not an offset.
    if (is_far(a[i]) || is_far(b[i]) || is_far(c[i])) return false;
    const std::int64_t number = b[i] - a[i];
    if (number < 0 || number >= all || c[i] - a[i] != 2 * number) return false;
    // A constant looks like the first value of a sample; in other samples the two differ.
    std::int64_t& offset = to.offsets[static_cast<std::size_t>(number % each)];
    if (offset != ColumnLookup::unread && offset != a[i]) return false;
    offset = a[i];
  }
  return true;
}

}  // namespace

std::vector<ColumnLookup> column_lookups(const Graph& graph, const Evaluator& evaluate) {
  std::vector<ColumnLookup> found;
  if (!evaluate) return found;
  for (const Node& node : graph.nodes) {
    if (!is_row_lookup(node)) continue;
    const auto state = std::find_if(graph.states.begin(), graph.states.end(), [&](const State& s) {
      return s.kind == StateKind::parameter && s.initial == node.inputs[0];
    });
    if (state == graph.states.end()) continue;
    Chain chain(graph);
    if (!chain.reach(node.inputs[1]) || !chain.input()) continue;
    ColumnLookup lookup{"", state->name, node.path, graph.type(state->initial).shape[0], {}};
    for (const NamedValue& input : graph.inputs) {
      if (input.value == chain.input()) lookup.input = input.name;
    }
    if (trace(graph, evaluate, chain, node.inputs[1], lookup)) found.push_back(std::move(lookup));
  }
  return found;
}

std::vector<std::int64_t> rows_of_elements(const std::vector<ColumnLookup>& lookups,
                                           const std::string& input, std::int64_t elements) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(elements), -1);
  for (const ColumnLookup& lookup : lookups) {
    if (lookup.input != input || lookup.offsets.size() != rows.size()) continue;
    std::set<std::int64_t> starts;
    for (const std::int64_t offset : lookup.offsets) {
      if (offset != ColumnLookup::unread) starts.insert(offset);
    }
    for (std::size_t e = 0; e < rows.size(); ++e) {
      const std::int64_t offset = lookup.offsets[e];
      if (offset == ColumnLookup::unread) continue;
      const auto next = starts.upper_bound(offset);
      const std::int64_t end = next == starts.end() ? lookup.rows : std::min(*next, lookup.rows);
      rows[e] = rows[e] < 0 ? end - offset : std::min(rows[e], end - offset);
    }
  }
  return rows;
}

}  // namespace tandem
