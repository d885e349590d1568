#include "placement/report/planned_step.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "placement/report/fit.h"
#include "placement/report/placement_report.h"

namespace tandem {
namespace {

void add_idle_views(const std::vector<IdleView>& views, std::int64_t times,
                    std::vector<IdleView>& all) {
  for (const IdleView& view : views) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const IdleView& other) {
      return other.path == view.path && other.device == view.device;
    });
    IdleView& to = known == all.end()
                       ? all.emplace_back(IdleView{view.path, view.device, view.neighbours, 0})
                       : *known;
    to.bytes += view.bytes * static_cast<std::size_t>(times);
  }
}

}  // namespace

void PlannedStep::add(PlannedPass pass, const Graph& imported) {
  const Lowered& lowered = pass.program.lowered;
  const Plan& plan = pass.program.plan;
  std::vector<Crossing> all = crossings_of(lowered, plan, &pass.simulation, &imported);
  add_idle_views(idle_views(lowered, all), pass.times, views);
  for (Crossing& crossing : all) {
    crossing.times = pass.times;
    exposed += crossing.exposed_ms / 1e3 * static_cast<double>(pass.times);
    crossings.push_back(std::move(crossing));
  }
  double busiest = 0;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    const Queue& queue = plan.queues[q];
    if (queue.name != lowered.devices[queue.device]->name()) continue;
    busiest = std::max(busiest, pass.simulation.queues[q].busy);
  }
  computing += busiest * static_cast<double>(pass.times);
  seconds += pass.simulation.seconds * static_cast<double>(pass.times);
  passes.push_back(std::move(pass));
}

void PlannedStep::set_memory(std::vector<MemoryUse> held, const ResolvedPolicy& resolved,
                             const std::vector<Device*>& devices) {
  memory = std::move(held);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    limits.push_back(memory_limit(resolved.devices[d], *devices[d]));
    limited.push_back(is_limited(resolved, d));
  }
  expect_rows(crossings, resolved);
  Plan highest;
  highest.memory = memory;
  try {
    check_fit(highest, resolved, devices);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) throw;
    misfits = error.diagnostics();
  }
}

}  // namespace tandem
