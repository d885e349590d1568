// Dropout of every version, in training and inference.
#include "importer/node_context.h"

namespace tandem::importer::operators {

// The ratio: an attribute before version 12, then input 1; whether to drop: is_test (1 to 6), the
// mode of the run (7 to 11), input 2 (absent = no).
void dropout(NodeContext& node) {
  double ratio = node.number("ratio", 0.5);
  bool active = node.session().options.training;
  if (node.version() < 7) {
    active = active && !node.flag("is_test", false);
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

}  // namespace tandem::importer::operators
