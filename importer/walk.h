// Goes through the nodes of graphs and functions and lowers each.
#pragma once

#include "importer/session.h"

namespace tandem::importer {

/// Lowers one node into `scope`. What cannot be lowered is reported and its outputs are marked bad;
/// throws only where the import as a whole has to stop.
void lower_node(Session& session, Scope& scope, const onnx::NodeProto& node);

}  // namespace tandem::importer
