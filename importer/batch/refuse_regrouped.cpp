#include "importer/batch/refuse_regrouped.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "importer/paths.h"
#include "importer/tied_names.h"

namespace tandem::importer {
namespace {

constexpr const char* regrouped =
    "the file does not show whether each sample is one of the batch or a group of channels, as "
    "x.view(1, B * C, ...) makes it";

/// Whether the exporter has made the initializer: folded what the model computes, perhaps.
bool is_made_up(const onnx::ModelProto& model, const std::string& name) {
  if (is_generated_name(name)) return true;
  const std::vector<std::string> targets = listed_targets(model, "");
  return !targets.empty() && std::find(targets.begin(), targets.end(), name) == targets.end();
}

/// Whether the value is a parameter or a buffer of the model, or a copy of one.
bool is_of_the_model(NodeContext& node, const Seen& x) {
  if (!x.is_tensor || !x.term->id) return false;
  const Graph& graph = node.session().builder.graph();
  ValueId id = x.term->id;
  for (;;) {
    const NodeId producer = graph.value(id).producer;
    if (!producer) break;
    const Node& made = graph.node(producer);
    if (made.op->name != "Identity" && made.op->name != "Cast") return false;
    id = made.inputs[0];
  }
  return std::any_of(graph.states.begin(), graph.states.end(), [&](const State& state) {
    return state.initial == id && !is_made_up(*node.session().file.model, state.name);
  });
}

/// Whether the file normalizes by what is fed, at prediction too.
bool normalizes_by_data(NodeContext& node, const Seen& mean) {
  if (mean.is_tensor && mean.term->samples.total == SampleTraits::Total::mean) return true;
  const auto& uses = node.session().batch_norms;
  return !uses.empty() && uses.back().path == node.path() && uses.back().file_trains;
}

}  // namespace

void refuse_regrouped(NodeContext& node, const std::vector<Seen>& operands, const Seen& y) {
  const std::string_view op = node.node().op_type();
  // Modules have statistics or a scale of their own; what is normalized by hand has neither.
  if (op == "BatchNormalization" && operands.size() >= 5 && y.has_changed() &&
      !is_of_the_model(node, operands[3]) && !is_of_the_model(node, operands[1]) &&
      normalizes_by_data(node, operands[3]))
    node.fail(std::string("it normalizes over a batch of 1: ") + regrouped);
  const bool convolves = op == "Conv" || op == "ConvTranspose" || op == "DeformConv";
  if (convolves && operands.size() > 1 && operands[1].has_changed())
    node.fail(std::string("its weights are computed from a batch of 1: ") + regrouped);
  const bool is_recurrent = op == "GRU" || op == "LSTM" || op == "RNN";
  if (!is_recurrent || operands.empty() || operands[0].changed.empty()) return;
  const std::int64_t steps = node.integer("layout", 0) == 0 ? 0 : 1;
  if (operands[0].changed[0] == steps && (*operands[0].before)[static_cast<std::size_t>(steps)] > 1)
    node.fail(
        "its sequence has the steps of all samples, in a file with a batch of 1: the file does not "
        "show whether they are one sequence or one for each sample");
}

}  // namespace tandem::importer
