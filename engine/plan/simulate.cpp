#include "engine/plan/simulate.h"

#include <algorithm>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

constexpr int steps = 4;  // the last of them is the steady state

double seconds_of(const Instruction& instruction, const Lowered& lowered,
                  const DeviceProfile& profile) {
  switch (instruction.kind) {
    case Instruction::Kind::run: {
      const Cost cost = cost_of(lowered.graph, lowered.graph.node(instruction.node));
      return std::max(cost.flops / profile.flops, cost.bytes / profile.bandwidth) +
             profile.overhead;
    }
    case Instruction::Kind::copy: {
      double bytes = 0;
      for (const Access& access : instruction.accesses) {
        if (!access.write) bytes += static_cast<double>(access.end - access.begin);
      }
      return bytes / profile.link_bandwidth + profile.link_latency;
    }
    default:
      return 0;
  }
}

}  // namespace

DeviceProfile assumed_profile(const DeviceFacts& facts) {
  DeviceProfile profile;
  const double per_thread = facts.has("avx512") ? 100e9 : facts.has("avx2") ? 80e9 : 10e9;
  profile.flops = per_thread * facts.threads;
  profile.bandwidth = 20e9 * facts.threads;
  return profile;
}

Simulation simulate(const Plan& plan, const Lowered& lowered,
                    const std::vector<DeviceProfile>& profiles) {
  const std::size_t count = plan.queues.size();
  Simulation result;
  result.queues.resize(count);
  std::vector<double> now(count, 0), started(steps + 1, 0);
  std::vector<std::vector<double>> events(steps, std::vector<double>(plan.events, -1));
  std::vector<std::size_t> next(count, 0);  // over all steps
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t q = 0; q < count; ++q) {
      const std::vector<Instruction>& list = plan.queues[q].instructions;
      while (!list.empty() && next[q] < steps * list.size()) {
        const int step = static_cast<int>(next[q] / list.size());
        const Instruction& instruction = list[next[q] % list.size()];
        if (instruction.kind == Instruction::Kind::wait) {
          const int of = step - instruction.previous_step;
          const double at = of < 0 ? 0 : events[of][instruction.event];
          if (at < 0) break;  // not recorded yet
          if (step == steps - 1) result.queues[q].waiting += std::max(0.0, at - now[q]);
          now[q] = std::max(now[q], at);
        } else if (instruction.kind == Instruction::Kind::record) {
          events[step][instruction.event] = now[q];
        } else {
          const double seconds = seconds_of(instruction, lowered, profiles[plan.queues[q].device]);
          if (step == steps - 1) result.queues[q].busy += seconds;
          now[q] += seconds;
        }
        ++next[q];
        moved = true;
        if (next[q] % list.size() == 0) started[step + 1] = std::max(started[step + 1], now[q]);
      }
    }
  }
  result.seconds = started[steps] - started[steps - 1];
  return result;
}

}  // namespace tandem
