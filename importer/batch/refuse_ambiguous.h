// What a file with a batch of one leaves open: counting and broadcasting look alike there, and
// nothing in the file says which one is meant.
#pragma once

#include "importer/session.h"

namespace tandem::importer {

/// To be called once a node is lowered, where a batch is bound anew: throws Error where the node
/// joins samples in a way that the file's own batch leaves ambiguous.
void refuse_ambiguous(Session& session, Scope& scope, const onnx::NodeProto& node,
                      const std::string& path);

/// Checks a Loop: throws where it has one iteration, as one for each sample would have, and makes
/// something of the samples that does not follow their number, such as the bags of an EmbeddingBag.
void refuse_one_iteration(Session& session, Scope& scope, const onnx::NodeProto& node,
                          const std::string& path);

/// Checks an output of the graph: throws where it is a sum over samples, which the file may have
/// divided by its batch of one.
void refuse_ambiguous_output(const Session& session, const std::string& name, const Term& term);

}  // namespace tandem::importer
