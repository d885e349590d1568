#include "tests/harness/program_check.h"

#include <cstring>

#include "tests/harness/operator_case.h"

namespace tandem::testing {

Placement on_one_device(const Graph& graph) {
  Placement placement;
  placement.devices = {"cpu"};
  placement.nodes.resize(graph.nodes.size());
  placement.states.resize(graph.states.size());
  return placement;
}

OwnProgram make_program(const Graph& graph, const OperatorSet& operators, Device& device,
                        const ProgramOptions& options) {
  OwnProgram own;
  own.program =
      std::make_unique<Program>(graph, on_one_device(graph), operators,
                                std::vector<Device*>{&device}, own.states, make_arenas(), options);
  return own;
}

void run_step(Program& program, const Feeds& feeds, std::uint64_t ticket) {
  const Graph& graph = program.lowered().graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    for (const auto& [name, tensor] : feeds) {
      if (name == graph.inputs[i].name) {
        std::memcpy(program.input_slot(static_cast<int>(i), ticket), tensor.data(), tensor.bytes());
      }
    }
  }
  StepContext context;
  context.seed = 7;
  context.step = ticket + 1;
  program.run(context, ticket);
}

std::string program_difference(const Graph& graph, const OperatorSet& operators, Device& device,
                               int steps, double tolerance, const ProgramOptions& options) {
  OwnProgram own = make_program(graph, operators, device, options);
  std::vector<ValueId> wanted;
  for (const NamedValue& output : graph.outputs) wanted.push_back(output.value);
  for (const State& state : graph.states) wanted.push_back(state.final);
  Feeds states;
  for (const State& state : graph.states) states.push_back({state.name, state.start});
  for (int step = 1; step <= steps; ++step) {
    Feeds feeds = random_feeds(graph, 5, step);
    run_step(*own.program, feeds, static_cast<std::uint64_t>(step - 1));
    feeds.insert(feeds.end(), states.begin(), states.end());
    const std::vector<HostTensor> expected = evaluate(graph, feeds, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      HostTensor got;
      std::string name;
      if (i < graph.outputs.size()) {
        name = "output " + graph.outputs[i].name;
        got = HostTensor(graph.type(wanted[i]));
        std::memcpy(got.data(),
                    own.program->output(static_cast<int>(i), static_cast<std::uint64_t>(step - 1)),
                    got.bytes());
      } else {
        const State& state = graph.states[i - graph.outputs.size()];
        name = "state " + state.name;
        got = own.states.read(state.name);
        states[i - graph.outputs.size()].second = expected[i];
      }
      const std::string difference = compare(got, expected[i], tolerance);
      if (!difference.empty())
        return "step " + std::to_string(step) + ", " + name + ": " + difference;
    }
  }
  return "";
}

}  // namespace tandem::testing
