// BatchNormalization in training and inference, LayerNormalization, Dropout: what differs between
// the two.
#include <fmt/format.h>

#include "importer/operators/all.h"

namespace tandem::importer {
namespace {

// As the file says: an attribute since version 14; 4 or 5 outputs before; is_test before version 7.
bool file_trains(NodeContext& node) {
  if (node.version() >= 14) return node.integer("training_mode", 0) != 0;
  if (node.version() < 7) return node.integer("is_test", 0) == 0 && node.output_count() > 1;
  return node.output_count() > 1;
}

bool trains(NodeContext& node) {
  const ImportOptions& options = node.session().options;
  if (!options.training || options.batch_norm == "inference") return false;
  return options.batch_norm == "train" || file_trains(node);
}

// New running statistics go into the state that they came from.
void write_back(NodeContext& node, std::size_t input, const Term& value) {
  Session& session = node.session();
  const ValueId initial = node.in(input).id;
  if (!initial || session.builder.graph().value(initial).kind != ValueKind::state) return;
  for (const State& state : session.builder.graph().states) {
    if (!(state.initial == initial) || state.final == state.initial) continue;
    node.unsupported(
        fmt::format("its running statistics '{}' are those of another operator too", state.name),
        "batch_norm = \"inference\" trains the rest of the model");
  }
  session.builder.write_state(initial, value.id);
}

void batch_normalization(NodeContext& node) {
  if (node.integer("spatial", 1) == 0)
    node.unsupported("statistics of single pixels (spatial = 0)");
  if (node.rank(0) < 2) node.fail("input", "[N, C, ...]", to_string(node.shape(0)));
  const std::vector<Term> inputs{node.in(0), node.in(1), node.in(2), node.in(3), node.in(4)};
  const double epsilon = node.number("epsilon", 1e-5);
  if (!trains(node)) {
    node.out(0, node.make("BatchNormalization", inputs, {{"epsilon", epsilon}}));
    node.out(1, node.in(3));
    node.out(2, node.in(4));
    return;
  }
  const std::vector<Term> results =
      node.make_all("BatchNormalizationTraining", inputs,
                    {{"epsilon", epsilon}, {"momentum", node.number("momentum", 0.9)}});
  write_back(node, 3, results[1]);
  write_back(node, 4, results[2]);
  for (std::size_t i = 0; i < 3; ++i) node.out(i, results[i]);
  // Before version 14 outputs 3 and 4 are the saved statistics of the batch.
  if (node.wants(3) || node.wants(4)) node.unsupported("reading the saved statistics");
}

// Scale and bias may be broadcast to the normalised axes.
void layer_normalization(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  const Shape normalised(x.begin() + axis, x.end());
  if (node.dtype(1) != node.dtype(0)) node.unsupported("scale of another element type");
  std::vector<Term> inputs{node.in(0), node.expand(node.in(1), normalised)};
  if (node.has(2)) inputs.push_back(node.expand(node.in(2), normalised));
  const std::vector<Term> results = node.make_all(
      "LayerNormalization", inputs, {{"axis", axis}, {"epsilon", node.number("epsilon", 1e-5)}});
  for (std::size_t i = 0; i < 3; ++i) node.out(i, results[i]);
}

// The ratio: an attribute before version 12, then input 1; whether to drop: is_test (1 to 6), the
// mode of the run (7 to 11), input 2 (absent = no).
void dropout(NodeContext& node) {
  double ratio = node.number("ratio", 0.5);
  bool active = node.session().options.training;
  if (node.version() < 7) {
    active = active && node.integer("is_test", 0) == 0;
  } else if (node.version() >= 12) {
    if (node.has(1)) ratio = node.static_number(1, "ratio");
    active = active && node.has(2) && node.static_number(2, "training_mode") != 0;
  }
  if (!(ratio >= 0.0 && ratio < 1.0))
    node.fail("ratio", "0 or more, below 1", std::to_string(ratio));
  const DType mask_type = node.version() < 10 ? node.dtype(0) : DType::boolean;
  if (!active || ratio == 0.0) {
    node.out(0, node.make("Identity", {node.in(0)}));
    if (node.wants(1)) {
      node.out(1, node.expand(node.scalar(1, mask_type), node.shape(0)));
    }
    return;
  }
  const std::vector<Term> results = node.make_all("Dropout", {node.in(0)}, {{"ratio", ratio}});
  node.out(0, results[0]);
  if (node.wants(1)) node.out(1, node.cast(results[1], mask_type));
}

}  // namespace

void add_normalization(std::vector<Lowering>& list) {
  list.push_back({"BatchNormalization", batch_normalization});
  list.push_back({"LayerNormalization", layer_normalization});
  list.push_back({"Dropout", dropout});
}

}  // namespace tandem::importer
