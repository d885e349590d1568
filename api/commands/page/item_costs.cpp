#include "api/commands/page/item_costs.h"

#include <unordered_map>

namespace tandem::api {
namespace {

class Sharing {
 public:
  Sharing(const Graph& forward, const PolicyItems& items) {
    for (std::size_t i = 0; i < items.operators.size(); ++i)
      operators_.emplace(items.operators[i].path, i);
    for (std::size_t p = 0; p < items.parameters.size(); ++p) {
      const auto state = static_cast<std::size_t>(items.parameters[p].state);
      parameters_.emplace(forward.states[state].name, p);
    }
    costs.operators.resize(items.operators.size());
    longest_.resize(items.operators.size());
    costs.parameters.resize(items.parameters.size());
  }

  void add(const PlannedMicroBatch& micro_batch) {
    const Lowered& lowered = micro_batch.program.lowered;
    const tandem::Plan& plan = micro_batch.program.plan;
    written_.clear();
    for (const State& state : lowered.graph.states) {
      const auto of = parameters_.find(state.parameter.empty() ? state.name : state.parameter);
      if (of != parameters_.end() && state.final && !(state.final == state.initial))
        written_.emplace(state.final.index, of->second);
    }
    for (const SimulatedSpan& span : micro_batch.simulation.spans) {
      const Instruction& instruction = plan.queues[static_cast<std::size_t>(span.queue)]
                                           .instructions[static_cast<std::size_t>(span.index)];
      if (instruction.kind != Instruction::Kind::run) continue;
      add_time(lowered.graph.node(instruction.node),
               lowered.nodes[static_cast<std::size_t>(instruction.node.index)].kernel,
               (span.end - span.start) * static_cast<double>(micro_batch.times));
    }
  }

  /// States and kept results, which are those of one micro-batch.
  void look_at(const PlannedMicroBatch& last) {
    const Lowered& lowered = last.program.lowered;
    for (const State& state : lowered.graph.states) {
      const auto of = parameters_.find(state.parameter);
      if (of != parameters_.end() && state.kind == StateKind::optimizer)
        costs.parameters[of->second].states += lowered.graph.type(state.initial).bytes();
    }
    keep_results(lowered, last.program.plan);
  }

  ItemCosts costs;

 private:
  std::vector<std::size_t> operators_of(const Node& node) const {
    std::vector<std::size_t> all;
    const auto look = [&](const std::string& path) {
      if (const auto found = operators_.find(path); found != operators_.end())
        all.push_back(found->second);
    };
    for (const std::string& origin : node.origins) look(origin);
    if (all.empty()) look(node.path);
    return all;
  }

  void add_time(const Node& node, const Kernel* kernel, double seconds) {
    std::vector<std::size_t> updated;
    for (const ValueId output : node.outputs) {
      if (const auto found = written_.find(output.index); output && found != written_.end())
        updated.push_back(found->second);
    }
    if (node.phase == tandem::Phase::update ||
        (!updated.empty() && node.phase == tandem::Phase::backward)) {
      for (const std::size_t p : updated)
        costs.parameters[p].update += seconds / static_cast<double>(updated.size());
      return;
    }
    const std::vector<std::size_t> all = operators_of(node);
    for (const std::size_t i : all) {
      OperatorCost& cost = costs.operators[i];
      if (node.phase == tandem::Phase::forward && seconds > longest_[i] && kernel != nullptr) {
        longest_[i] = seconds;
        cost.kernel = kernel->name;
      }
      (node.phase == tandem::Phase::forward ? cost.forward : cost.backward) +=
          seconds / static_cast<double>(all.size());
    }
  }

  /// Buffers that forward touches first and backward last, to the operator that fills them.
  void keep_results(const Lowered& lowered, const tandem::Plan& plan) {
    struct Use {
      bool in_forward = false, in_backward = false;
    };
    std::vector<Use> uses(plan.buffers.size());
    for (const Queue& queue : plan.queues) {
      for (const Instruction& instruction : queue.instructions) {
        if (!instruction.node) continue;
        const tandem::Phase phase = lowered.graph.node(instruction.node).phase;
        for (const Access& access : instruction.accesses) {
          Use& use = uses[static_cast<std::size_t>(access.buffer)];
          (phase == tandem::Phase::forward ? use.in_forward : use.in_backward) = true;
        }
      }
    }
    for (std::size_t b = 0; b < uses.size(); ++b) {
      const Buffer& buffer = plan.buffers[b];
      if (buffer.kind != BufferKind::activation || !uses[b].in_forward || !uses[b].in_backward ||
          !buffer.storage)
        continue;
      const NodeId producer = lowered.graph.value(buffer.storage).producer;
      if (!producer) continue;
      const std::vector<std::size_t> all = operators_of(lowered.graph.node(producer));
      if (!all.empty()) costs.operators[all.back()].kept += buffer.bytes;
    }
  }

  std::unordered_map<std::string, std::size_t> operators_, parameters_;  // by path, by name
  std::unordered_map<std::int32_t, std::size_t> written_;                // by final value
  std::vector<double> longest_;  // seconds of the forward kernel that names the operator's
};

}  // namespace

ItemCosts item_costs(const PlannedStep& step, const Graph& forward, const PolicyItems& items) {
  Sharing sharing(forward, items);
  for (const PlannedMicroBatch& micro_batch : step.micro_batches) sharing.add(micro_batch);
  sharing.look_at(step.micro_batches.back());
  return std::move(sharing.costs);
}

}  // namespace tandem::api
