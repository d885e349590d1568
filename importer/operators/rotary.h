// Rotary position embedding, of ONNX and of com.microsoft.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// Rotates pairs of the first 2 R numbers of x [..., D] by angles whose cosines
/// and sines [..., R] broadcast over the axes before. Pairs are neighbours
/// where `interleaved`, else R apart.
Term rotate(NodeContext& node, const Term& x, const Term& cos, const Term& sin, bool interleaved);

/// Rows of a table of cosines or sines [P, R] at positions [B, S] as [B, 1, S,
/// R].
Term at_positions(NodeContext& node, const Term& table, const Term& positions);

}  // namespace tandem::importer::operators
