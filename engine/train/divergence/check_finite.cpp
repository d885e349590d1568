#include "engine/train/divergence/check_finite.h"

#include <algorithm>
#include <vector>

#include "engine/data/shown_problems.h"
#include "engine/losses/loss_weights.h"
#include "engine/operators/operator.h"
#include "engine/operators/window.h"
#include "engine/train/divergence/divergence_cause.h"

namespace tandem {
namespace {

/// Whether windows along the spatial axes reach every element.
bool covers(const Graph& graph, const Node& node) {
  const Shape& x = graph.type(node.inputs[0]).shape;
  const Shape& y = graph.type(node.outputs[0]).shape;
  const bool is_conv = node.op->role == Role::convolution;
  const Shape& source =
      is_conv ? graph.type(node.inputs[1]).shape : node.attributes.integers("kernel_shape");
  const Shape kernel(source.begin() + (is_conv ? 2 : 0), source.end());
  const std::vector<Window> windows = windows_of(node.attributes, kernel);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    const bool has_holes = w.stride > 1 && (w.dilation > 1 || w.kernel < w.stride);
    if (has_holes || w.start(y[i + 2] - 1) + w.extent() < x[i + 2]) return false;
  }
  return true;
}

/// Whether NaN in an operand may be missing in the result. Operators that keep all elements are
/// arithmetic or move them; floats that are compared or counted give no floats.
bool may_drop_nan(const Graph& graph, const Node& node) {
  if (node.op->drops_elements) return true;
  const bool is_windowed = node.op->role == Role::convolution || node.op->role == Role::pooling;
  return is_windowed && !covers(graph, node);
}

/// Whether the loss is NaN for sure where an input of the graph is: along some path every operator
/// keeps it.
bool keeps_nan(const RunConfig& config, const Graph& graph, const std::string& input) {
  const NamedValue* const start = graph.find_input(input);
  if (start == nullptr) return true;  // only a loss term reads it
  std::vector<bool> reached(graph.values.size());
  const auto is_reached = [&](ValueId value) { return value && reached[value.index]; };
  reached[start->value.index] = true;
  for (const Node& node : graph.nodes) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), is_reached);
    if (!reads || may_drop_nan(graph, node)) continue;
    for (const ValueId output : node.outputs) {
      if (output && is_float(graph.type(output).dtype)) reached[output.index] = true;
    }
  }
  if (config.loss.terms.empty()) {  // the graph's own loss is among its outputs
    return std::all_of(graph.outputs.begin(), graph.outputs.end(),
                       [&](const NamedValue& output) { return is_reached(output.value); });
  }
  return std::any_of(config.loss.terms.begin(), config.loss.terms.end(), [&](const LossTerm& term) {
    return !weighs_labels(term) &&
           std::any_of(term.values.begin(), term.values.end(), [&](const std::string& name) {
             const NamedValue* output = graph.find_output(name);
             return is_reached(output != nullptr ? output->value : graph.find_value(name));
           });
  });
}

bool is_read(const RunConfig& config, const Graph& graph, const std::string& field) {
  if (graph.find_input(field) != nullptr) return true;
  return std::any_of(config.loss.terms.begin(), config.loss.terms.end(), [&](const LossTerm& term) {
    const std::vector<std::string> fields = term.fields();
    return std::find(fields.begin(), fields.end(), field) != fields.end();
  });
}

}  // namespace

void check_finite_fields(const RunConfig& config, const Graph& forward, const DataSource& source,
                         FunctionRef<void(const std::string&)> say) {
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < source.fields().size(); ++i) {
    const std::string& field = source.fields()[i].name;
    if (!is_read(config, forward, field)) continue;
    const std::vector<std::int64_t> bad = source.nan_samples(static_cast<int>(i));
    if (bad.empty()) continue;
    const bool may_be_meant = !keeps_nan(config, forward, field);
    std::vector<Diagnostic> found =
        nan_diagnostics(source, static_cast<int>(i), bad, may_be_meant ? 1 : shown_problems);
    if (may_be_meant) {
      say("note: " + to_string(found[0]) + "; the model decides whether it counts");
      continue;
    }
    found[0].fix = "correct or leave out these samples: the loss would be nan";
    problems.insert(problems.end(), found.begin(), found.end());
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

}  // namespace tandem
