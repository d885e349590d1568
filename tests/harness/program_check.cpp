#include "tests/harness/program_check.h"

#include <cstring>
#include <random>

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
  return make_program(graph, operators, {&device}, on_one_device(graph), options);
}

OwnProgram make_program(const Graph& graph, const OperatorSet& operators,
                        const std::vector<Device*>& devices, const Placement& placement,
                        const ProgramOptions& options) {
  OwnProgram own;
  own.program = std::make_unique<Program>(graph, placement, operators, devices, own.states,
                                          make_arenas(), options);
  return own;
}

Placement random_placement(const Graph& graph, const std::vector<Device*>& devices,
                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int count = static_cast<int>(devices.size());
  const auto any = [&] { return static_cast<int>(random() % static_cast<std::uint64_t>(count)); };
  Placement placement;
  for (const Device* device : devices) placement.devices.push_back(device->name());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) placement.nodes.push_back({any(), "random"});
  // All states that one node writes are placed where it runs.
  for (const State& state : graph.states) {
    const NodeId writer = graph.value(state.final).producer;
    const int home = writer ? placement.nodes[writer.index].device : any();
    const bool mirrors = writer && state.kind == StateKind::parameter;
    placement.states.push_back({home, mirrors ? any() : home, "random"});
  }
  return placement;
}

void run_step(Program& program, const Feeds& feeds, std::uint64_t ticket) {
  launch_step(program, feeds, ticket);
  program.finish(ticket);
}

void launch_step(Program& program, const Feeds& feeds, std::uint64_t ticket) {
  const Graph& graph = program.lowered().graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    for (const auto& [name, tensor] : feeds) {
      if (name != graph.inputs[i].name || tensor.bytes() == 0) continue;
      std::memcpy(program.input_slot(static_cast<int>(i), ticket), tensor.data(), tensor.bytes());
    }
  }
  StepContext context;
  context.seed = 7;
  context.step = ticket + 1;
  program.launch(context, ticket);
}

std::string program_difference(const Graph& graph, const OperatorSet& operators, Device& device,
                               int steps, double tolerance, const ProgramOptions& options) {
  return program_difference(graph, operators, {&device}, on_one_device(graph), steps, tolerance,
                            options);
}

std::string program_difference(const Graph& graph, const OperatorSet& operators,
                               const std::vector<Device*>& devices, const Placement& placement,
                               int steps, double tolerance, const ProgramOptions& options) {
  OwnProgram own = make_program(graph, operators, devices, placement, options);
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
