#include "engine/train/algorithm/initial_states.h"

#include <cstring>

namespace tandem {

std::map<std::string, HostTensor> initial_states(const TrainingAlgorithm& algorithm,
                                                 const RunParts& parts, std::uint64_t seed) {
  const Graph& graph = algorithm.initialization;
  std::map<std::string, HostTensor> values;
  if (graph.outputs.empty()) return values;
  const Placement on_host{.devices = {"cpu"},
                          .nodes = std::vector(graph.nodes.size(), PlacedNode{0, "default"}),
                          .states = std::vector(graph.states.size(), PlacedState{0, 0, "default"})};
  StateStore states;
  Program program(graph, on_host, *parts.operators, {parts.devices[0]}, states, make_arenas(), {});
  StepContext context;
  ErrorWord error;
  context.seed = seed;
  context.error = &error;
  program.run(context, 0);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    HostTensor value(graph.type(graph.outputs[i].value));
    if (value.bytes() > 0)
      std::memcpy(value.data(), program.output(static_cast<int>(i), 0), value.bytes());
    values.emplace(graph.outputs[i].name, std::move(value));
  }
  return values;
}

}  // namespace tandem
