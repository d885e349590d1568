#include "placement/report/exchanges.h"

#include "engine/operators/collectives/collective.h"

namespace tandem {

std::vector<PlannedExchange> exchanges_of(const CompiledProgram& program,
                                          const Simulation& simulation) {
  std::vector<PlannedExchange> exchanges;
  for (const SimulatedSpan& span : simulation.spans) {
    const Queue& queue = program.plan.queues[span.queue];
    const Instruction& instruction = queue.instructions[span.index];
    if (instruction.kind != Instruction::Kind::collective) continue;
    const Graph& graph = program.lowered.graph;
    const Node& node = graph.node(instruction.node);
    PlannedExchange exchange{.op = node.op->name,
                             .path = node.path,
                             .algorithm = span.algorithm,
                             .device = queue.device};
    exchange.phase = node.phase;
    const std::vector<ValueId> given = given_values(node);
    exchange.operands = given.size();
    for (ValueId value : given) exchange.bytes += graph.type(value).bytes();
    exchange.seconds = span.end - span.start;
    exchange.exposed = span.exposed;
    exchanges.push_back(std::move(exchange));
  }
  return exchanges;
}

}  // namespace tandem
