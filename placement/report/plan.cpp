#include "placement/report/plan.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/lower/reorder_note.h"
#include "placement/report/hints.h"
#include "placement/report/rule_data.h"

namespace tandem {
namespace {

std::vector<api::Plan::Device> devices_data(const ResolvedPolicy& resolved,
                                            const PlannedStep& step) {
  const std::vector<ItemCounts> counts = resolved.counts_by_device();
  std::vector<api::Plan::Device> devices;
  for (std::size_t d = 0; d < step.memory.size(); ++d) {
    const MemoryUse& use = step.memory[d];
    api::Plan::Device& device = devices.emplace_back();
    device.name = resolved.devices[d].name;
    device.use = resolved.devices[d].use;
    device.placed = counts_data(counts[d]);
    device.parameters = use.parameters;
    device.gradients = use.gradients;
    device.optimizer_states = use.state;
    device.activations = use.activations;
    device.workspace = use.workspace;
    device.peak = use.peak;
    device.peak_at = use.peak_at;
    device.limit = step.limits[d];
    device.is_limited = step.limited[d];
  }
  return devices;
}

api::Plan::Copy copy_data(const Crossing& crossing, const ResolvedPolicy& resolved) {
  api::Plan::Copy copy;
  copy.value = crossing.value;
  copy.producer = crossing.producer;
  copy.consumers = crossing.consumers;
  copy.from = resolved.device_name(crossing.from);
  copy.to = resolved.device_name(crossing.to);
  copy.phase = phase_data(crossing.phase);
  copy.bytes = crossing.bytes;
  if (crossing.expected_bytes) copy.expected_bytes = *crossing.expected_bytes;
  copy.exposed_seconds = crossing.exposed;
  copy.times = crossing.times;
  copy.is_scalar = crossing.scalar();
  copy.rows = crossing.rows;
  copy.ahead = crossing.ahead;
  return copy;
}

api::Plan::Traffic traffic_data(const Traffic& traffic) {
  api::Plan::Traffic data;
  data.copies = traffic.copies;
  data.scalar_copies = traffic.scalar_copies;
  data.bytes = traffic.bytes;
  data.scalar_bytes = traffic.scalar_bytes;
  data.is_upper_bound = traffic.rows;
  if (traffic.counted) data.expected_bytes = traffic.expected_bytes;
  return data;
}

api::Plan::Exchange exchange_data(const PlannedExchange& exchange, const ResolvedPolicy& resolved) {
  api::Plan::Exchange data;
  data.op = exchange.op;
  data.path = exchange.path;
  data.algorithm = exchange.algorithm;
  data.device = resolved.device_name(exchange.device);
  data.phase = phase_data(exchange.phase);
  data.operands = exchange.operands;
  data.bytes = exchange.bytes;
  data.seconds = exchange.seconds;
  data.exposed_seconds = exchange.exposed;
  data.times = exchange.times;
  return data;
}

}  // namespace

std::vector<api::Plan::Remedy> remedies_data(const std::vector<Remedy>& remedies) {
  std::vector<api::Plan::Remedy> all;
  for (const Remedy& remedy : remedies) {
    all.push_back({rule_data(remedy.rule), to_toml(remedy.rule), remedy.bytes, remedy.suffices,
                   remedy.seconds});
  }
  return all;
}

api::Plan plan_data(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                    const std::vector<Remedy>& remedies) {
  api::Plan plan;
  plan.fits = step.fits();
  plan.seconds = step.seconds;
  plan.computing_seconds = step.computing;
  plan.exposed_seconds = step.exposed;
  plan.ranks = step.ranks;
  plan.devices = devices_data(resolved, step);
  for (const Crossing& crossing : step.crossings)
    plan.copies.push_back(copy_data(crossing, resolved));
  plan.traffic = traffic_data(traffic_of(step.crossings));
  for (const PlannedExchange& exchange : step.exchanges)
    plan.exchanges.push_back(exchange_data(exchange, resolved));
  plan.hints = hints_of(policy, resolved, step);
  plan.misfits = step.misfits;
  plan.remedies = remedies_data(remedies);
  for (const Diagnostic& note : resolved.notes) plan.notes.push_back(to_string(note));
  for (const std::string& note : step.micro_batches.back().program.lowered.notes) {
    if (!is_reorder_note(note)) plan.notes.push_back(note);
  }
  plan.text = plan_text(plan);
  plan.json = plan_json(plan);
  return plan;
}

}  // namespace tandem
