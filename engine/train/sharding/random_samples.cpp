#include "engine/train/sharding/random_samples.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

std::optional<Ints> samples_of(const Shape& rank, std::int64_t samples, const Shape& other,
                               std::int64_t other_samples, std::int64_t all, bool& is_clear) {
  std::optional<Ints> found;
  for (std::size_t axis = 0; axis < rank.size(); ++axis) {
    if (rank[axis] == other[axis]) continue;
    const std::int64_t each = rank[axis] / samples;
    const bool is_multiple = each * samples == rank[axis] && each * other_samples == other[axis];
    is_clear = is_multiple && !found;
    if (!is_clear) return std::nullopt;
    found = Ints{static_cast<std::int64_t>(axis), each, each * all};
  }
  return found;
}

}  // namespace

bool draws_random_numbers(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op->random; });
}

Graph with_random_samples(const GraphOfSamples& rank, const GraphOfSamples& other, std::int64_t all,
                          std::vector<std::string>& notes) {
  std::map<std::string, std::vector<const Node*>> others;  // by path, in their order
  for (const Node& node : other.graph.nodes) {
    if (node.op->random) others[node.path].push_back(&node);
  }
  Graph result = rank.graph;
  std::map<std::string, std::size_t> seen;
  for (Node& node : result.nodes) {
    if (!node.op->random) continue;
    const std::vector<const Node*>& same_path = others[node.path];
    const std::size_t at = seen[node.path]++;
    const Shape& shape = result.type(node.inputs[0]).shape;
    bool is_clear = at < same_path.size() && same_path[at]->op == node.op &&
                    other.graph.type(same_path[at]->inputs[0]).shape.size() == shape.size();
    if (is_clear) {
      const Shape& other_shape = other.graph.type(same_path[at]->inputs[0]).shape;
      const auto samples =
          samples_of(shape, rank.samples, other_shape, other.samples, all, is_clear);
      if (samples) node.attributes.set("samples", *samples);
    }
    if (is_clear) continue;
    notes.push_back(node.path + " draws the same random numbers on every rank: its shape " +
                    to_string(shape) + " does not have one axis of samples");
  }
  return result;
}

}  // namespace tandem
