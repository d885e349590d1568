// Names of modules for tensors whose own names an exporter made up.
#pragma once

#include <string>

#include "engine/graph/graph.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem::api {

/// Whether a tensor with more than one element has such a name: "onnx::MatMul_12", "val_3".
bool has_made_up_names(const CheckpointContent& content);

/// Names such tensors by the module of the operator that reads them: "layers.0.q_proj.weight".
/// Values stay; the former names become aliases, by which `parameters.load` finds them. A tensor
/// that several modules read keeps its name, and so do those that would get a name twice. Returns
/// what was done, for people.
std::string name_by_modules(CheckpointContent& content, const Graph& graph);

}  // namespace tandem::api
