// A small forward graph with PyTorch's kind of names, and short ways to place it.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/graph/graph.h"
#include "engine/operators/operator.h"
#include "placement/resolve.h"

namespace tandem::testing {

/// ids [4] -> embed.Gather (embed:weight [100, 8]) -> layers.{0,1,10}: MatMul, Add, Relu ->
/// norm.Add (buffer norm.running_mean) -> head.Transpose (head:weight [3, 8]), head.MatMul ->
/// logits.
Graph forward_graph(const OperatorSet& operators);
const Graph& shared_graph();
const OperatorSet& shared_operators();
/// A trainable state scope:weight of zeros.
ValueId add_weight(GraphBuilder& b, const std::string& scope, Shape shape);

/// The rules of a policy, from lines that end with a comma.
std::string rules(const std::string& lines);

/// "policy = 1\n" + text, read from "folder/policy.toml" and resolved with emulated:0 as gpu.
ResolvedPolicy resolve_text(const std::string& text, const std::vector<std::string>& place = {},
                            ResolveOptions options = {}, const PlacementFacts& facts = {},
                            const Graph& graph = shared_graph());
/// What that throws; empty if nothing.
std::vector<Diagnostic> errors_of(const std::string& text,
                                  const std::vector<std::string>& place = {},
                                  ResolveOptions options = {}, const PlacementFacts& facts = {});
/// "LINE:COLUMN message" of the only diagnostic, with "(fix)" where it has one.
std::string only_error(const std::string& text, const std::vector<std::string>& place = {},
                       ResolveOptions options = {}, const PlacementFacts& facts = {});

/// Names of devices: where an operator runs, "param/state" of a parameter.
std::string run_of(const ResolvedPolicy& resolved, const std::string& path);
std::string home_of(const ResolvedPolicy& resolved, const std::string& name);

}  // namespace tandem::testing
