// Detects whether a model sees later positions of its sequences.
#include <algorithm>

#include "api/init/roles.h"

namespace tandem::api {
namespace {

/// Whether values [.., T, T] form a mask that hides later keys from a query: one value on the
/// diagonal and below it, another one everywhere above. Farther below the diagonal it may hide keys
/// too, as a window does.
bool is_triangle(const HostTensor& values) {
  const Shape& shape = values.shape();
  const std::size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] < 2 || shape[rank - 2] != shape[rank - 1]) return false;
  const std::int64_t n = shape[rank - 1], most_places = 1 << 12;
  if (n > most_places || values.type().elements() < n * n) return false;
  const double seen = values.number(0), hidden = values.number(1);
  if (seen == hidden) return false;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      if (column < row - 1) continue;
      if (values.number(row * n + column) != (column <= row ? seen : hidden)) return false;
    }
  }
  return true;
}

bool runs_forward(const Node& node) {
  const AttributeValue* direction = node.attributes.find("direction");
  return direction == nullptr || node.attributes.text("direction") == "forward";
}

}  // namespace

bool is_causal(const ModelFacts& model) {
  bool any_recurrent = false, all_forward = true, any_attention = false;
  for (const Graph* graph : {&model.imported.graph, &model.forward}) {
    for (const Value& value : graph->values) {
      if (value.kind == ValueKind::constant && value.constant && is_triangle(*value.constant))
        return true;
    }
    for (const State& state : graph->states) {
      if (!state.trainable && is_triangle(state.start)) return true;
    }
    for (const Node& node : graph->nodes) {
      const std::string_view op = node.op->name;
      if (op == "Attention") {
        if (node.attributes.flag("causal")) return true;
        any_attention = true;
      }
      any_attention |= op == "Softmax";
      if (op != "LSTM" && op != "GRU" && op != "RNN" && op != "RnnScan") continue;
      any_recurrent = true;
      all_forward &= runs_forward(node);
    }
  }
  return any_recurrent && all_forward && !any_attention;
}

}  // namespace tandem::api
