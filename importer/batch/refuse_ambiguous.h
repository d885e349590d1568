// What a file of one sample leaves open: where counting and broadcasting look alike, and nothing
// tells which one it is.
#pragma once

#include "importer/session.h"

namespace tandem::importer {

/// Once a node is lowered, where a batch is bound anew: throws Error where the node joins samples
/// in a way that the file's own batch does not settle.
void refuse_ambiguous(Session& session, Scope& scope, const onnx::NodeProto& node,
                      const std::string& path);

/// The same for a Loop: throws where it has one iteration, as one for each sample would have, and
/// makes something of the samples that does not follow their number, such as the bags of an
/// EmbeddingBag.
void refuse_one_iteration(Session& session, Scope& scope, const onnx::NodeProto& node,
                          const std::string& path);

/// The same for an output of the graph: throws where it is a sum over samples, which the batch of
/// one may have divided.
void refuse_ambiguous_output(const Session& session, const std::string& name, const Term& term);

}  // namespace tandem::importer
