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

void PlannedStep::add(PlannedMicroBatch micro_batch, const Graph& imported) {
  const Lowered& lowered = micro_batch.program.lowered;
  const Plan& plan = micro_batch.program.plan;
  std::vector<Crossing> all = crossings_of(lowered, plan, &micro_batch.simulation, &imported);
  add_idle_views(idle_views(lowered, all), micro_batch.times, views);
  for (Crossing& crossing : all) {
    crossing.times = micro_batch.times;
    exposed += crossing.exposed * static_cast<double>(micro_batch.times);
    crossings.push_back(std::move(crossing));
  }
  for (PlannedExchange& exchange : exchanges_of(micro_batch.program, micro_batch.simulation)) {
    exchange.times = micro_batch.times;
    exchanges.push_back(std::move(exchange));
  }
  double busiest = 0;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    const Queue& queue = plan.queues[q];
    if (queue.name != lowered.devices[queue.device]->name()) continue;
    busiest = std::max(busiest, micro_batch.simulation.queues[q].busy);
  }
  computing += busiest * static_cast<double>(micro_batch.times);
  seconds += micro_batch.simulation.seconds * static_cast<double>(micro_batch.times);
  micro_batches.push_back(std::move(micro_batch));
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
