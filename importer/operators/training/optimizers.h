// What the optimizers of ai.onnx.preview.training are as updates of the engine.
#pragma once

#include <string>

#include "importer/node_context.h"

namespace tandem::importer {

/// One node of Adam, Adagrad or Momentum: inputs R, T, then X, G and states, each of all its
/// parameters; outputs X and states.
struct OptimizerStep {
  std::string update;  // "AdamUpdate"; "": no update of the engine takes these settings
  Attributes settings;
  Term lr, step;               // inputs of that update: float32 and int64 scalars
  std::size_t parameters = 0;  // how many the node updates
  std::size_t states = 0;      // state tensors of each parameter
};

/// Makes the nodes of `lr` and `step`. Throws where the node's inputs do not fit.
OptimizerStep optimizer_step(NodeContext& node);

}  // namespace tandem::importer
