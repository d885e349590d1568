// Runs a graph as a program and compares every output and state with a node-by-node evaluation.
#pragma once

#include <memory>
#include <string>

#include "engine/runtime/program.h"
#include "tests/harness/test_graphs.h"

namespace tandem::testing {

/// Places all nodes and states on device 0.
Placement on_one_device(const Graph& graph);

/// A program with the states that it runs on.
struct OwnProgram {
  StateStore states;
  std::unique_ptr<Program> program;
};
OwnProgram make_program(const Graph& graph, const OperatorSet& operators, Device& device,
                        const ProgramOptions& options = {});

OwnProgram make_program(const Graph& graph, const OperatorSet& operators,
                        const std::vector<Device*>& devices, const Placement& placement,
                        const ProgramOptions& options = {});

/// Places every node and every parameter's weight on a random device; a state is placed where the
/// node that writes it runs.
Placement random_placement(const Graph& graph, const std::vector<Device*>& devices,
                           std::uint64_t seed);

/// Fills the slots of `ticket` and runs the step.
void run_step(Program& program, const Feeds& feeds, std::uint64_t ticket);
/// Like run_step, but without `finish`.
void launch_step(Program& program, const Feeds& feeds, std::uint64_t ticket);

/// Runs `steps` steps; returns the first difference of more than `tolerance`, or "".
std::string program_difference(const Graph& graph, const OperatorSet& operators, Device& device,
                               int steps, double tolerance, const ProgramOptions& options = {});
std::string program_difference(const Graph& graph, const OperatorSet& operators,
                               const std::vector<Device*>& devices, const Placement& placement,
                               int steps, double tolerance, const ProgramOptions& options = {});

}  // namespace tandem::testing
