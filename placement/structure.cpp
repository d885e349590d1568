#include "placement/structure.h"

#include "engine/formats/sha256.h"
#include "engine/operators/operator.h"

namespace tandem {

std::string structure_hash(const Graph& forward) {
  std::string text;
  for (const Node& node : forward.nodes) text += node.path + " " + node.op->name + "\n";
  for (const State& state : forward.states) {
    if (state.kind != StateKind::parameter && state.kind != StateKind::buffer) continue;
    text += state.name + " " + state.path + " " + to_string(forward.type(state.initial)) + "\n";
  }
  return "sha256:" + sha256(text.data(), text.size());
}

}  // namespace tandem
