// A parameter whose readers part since one of them falls back. Other rules that fall back:
// tests/expected/policy_file/places.txt.
#include <gtest/gtest.h>

#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

TEST(FallBack, ReadersThatPartThatWayAreNoError) {
  const OperatorSet operators = all_operators();
  Graph tied = forward_graph(operators);
  const State& weight = *tied.find_state("layers.0.weight");
  for (Node& node : tied.nodes) {
    if (node.path == "layers.1.MatMul") node.inputs[1] = weight.initial;
  }
  ResolveOptions options;
  options.bindings = parse_device_arguments({"gpu=emulated:0"});
  const Policy policy = parse_policy(
      "policy = 1\nrules = [ { at = \"**.MatMul\", run = \"gpu\", need = \"prefer\" } ]\n",
      "p.toml");
  PlacementFacts facts;
  facts.refusals[{1, "layers.0.MatMul"}] = "MatMul: none";
  const ResolvedPolicy resolved = resolve(policy, tied, options, facts);
  EXPECT_EQ(home_of(resolved, "layers.0:weight"), "gpu/gpu") << "with the reader that is there";
}

}  // namespace
}  // namespace tandem::testing
