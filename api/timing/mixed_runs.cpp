// Lists micro-batches in the order of their plans, and the position of their spans in a trace.
#include "api/timing/mixed_runs.h"

#include <algorithm>

#include "engine/plan/collectives.h"

namespace tandem::api {

std::vector<Launch> spanned_launches(const Program& program) {
  const tandem::Plan& plan = program.plan();
  std::vector<Launch> result;
  for (const Launch& launch : plan.launches) {
    const Instruction& instruction = plan.queues[launch.queue].instructions[launch.index];
    if (instruction.kind == Instruction::Kind::wait ||
        instruction.kind == Instruction::Kind::record)
      continue;
    std::size_t spans = 1;
    if (instruction.kind == Instruction::Kind::collective)
      spans = collective_calls(program.lowered(), plan, instruction.node).size();
    result.insert(result.end(), std::max<std::size_t>(spans, 1), launch);
  }
  return result;
}

TracedSteps::TracedSteps(const std::vector<Program*>& micro_batches, int steps) : steps_(steps) {
  std::vector<std::size_t> numbers;
  for (Program* micro_batch : micro_batches) {
    const auto known =
        std::find_if(programs_.begin(), programs_.end(),
                     [&](const TracedProgram& program) { return program.program == micro_batch; });
    numbers.push_back(static_cast<std::size_t>(known - programs_.begin()));
    if (known == programs_.end())
      programs_.push_back({micro_batch, 0, spanned_launches(*micro_batch)});
    ++programs_[numbers.back()].times;
  }
  for (int step = 0; step < steps; ++step) {
    for (std::size_t number : numbers) {
      const bool follows = !runs_.empty() && runs_.back().program == number;
      runs_.push_back({number, spans_, step, follows});
      spans_ += programs_[number].launches.size();
    }
  }
}

}  // namespace tandem::api
