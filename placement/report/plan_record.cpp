#include "placement/report/plan_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/plan/crossings.h"
#include "placement/report/json.h"
#include "placement/report/placement_report.h"

namespace tandem {
namespace {

using RecordJson = nlohmann::ordered_json;

constexpr std::size_t most_live_points = 400;
constexpr std::size_t most_recorded_copies = 200;

const Instruction& launched(const Plan& plan, std::size_t launch) {
  const Launch& at = plan.launches[launch];
  return plan.queues[static_cast<std::size_t>(at.queue)]
      .instructions[static_cast<std::size_t>(at.index)];
}

/// The first and the last launch that touches a buffer.
struct Use {
  std::size_t first = 0, last = 0;
  bool is_used = false;
};

std::vector<Use> uses_of_buffers(const Plan& plan) {
  std::vector<Use> uses(plan.buffers.size());
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    for (const Access& access : launched(plan, launch).accesses) {
      Use& use = uses[static_cast<std::size_t>(access.buffer)];
      if (!use.is_used) use.first = launch;
      use.last = launch;
      use.is_used = true;
    }
  }
  return uses;
}

bool overlap(const Buffer& a, const Buffer& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// Where each phase begins; the update begins after backward has ended, though parts run early.
RecordJson phases_of(const Lowered& lowered, const Plan& plan) {
  std::optional<std::size_t> forward, backward, update;
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    const Instruction& instruction = launched(plan, launch);
    if (instruction.kind != Instruction::Kind::run) continue;
    const Phase phase = lowered.graph.node(instruction.node).phase;
    if (phase == Phase::forward && !forward) forward = launch;
    if (phase == Phase::backward && !backward) backward = launch;
    if (phase == Phase::backward) update.reset();
    if (phase == Phase::update && !update) update = launch;
  }
  RecordJson phases = RecordJson::array();
  for (const auto& [phase, from] :
       {std::pair(Phase::forward, forward), std::pair(Phase::backward, backward),
        std::pair(Phase::update, update)}) {
    if (from) phases.push_back({{"phase", phase_name(phase)}, {"from", *from}});
  }
  return phases;
}

}  // namespace

std::vector<LiveBytes> live_bytes(const Lowered& lowered, const Plan& plan, int device,
                                  std::size_t most) {
  const std::vector<Use> uses = uses_of_buffers(plan);
  std::vector<std::vector<std::size_t>> begins(plan.launches.size()),
      ends(plan.launches.size() + 1);
  for (std::size_t b = 0; b < uses.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (!uses[b].is_used || buffer.device != device || !buffer.in_arena()) continue;
    begins[uses[b].first].push_back(b);
    ends[uses[b].last + 1].push_back(b);
  }
  std::vector<LiveBytes> all;
  LiveBytes live;
  std::vector<std::size_t> in_use;
  const auto free = [&](const auto& is_over) {
    std::erase_if(in_use, [&](std::size_t b) {
      if (!is_over(b)) return false;
      live.of(plan.buffers[b].kind) -= plan.buffers[b].bytes;
      return true;
    });
  };
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    if (begins[launch].empty() && ends[launch].empty()) continue;
    free([&](std::size_t b) { return uses[b].last < launch; });
    for (const std::size_t b : begins[launch]) {
      // The order of launches is not that of several queues: the memory may be free again before
      // the last launch that touches it.
      free([&](std::size_t other) { return overlap(plan.buffers[other], plan.buffers[b]); });
      live.of(plan.buffers[b].kind) += plan.buffers[b].bytes;
      in_use.push_back(b);
    }
    const NodeId node = launched(plan, launch).node;
    live.launch = launch;
    live.path = node ? lowered.graph.node(node).path : "";
    all.push_back(live);
  }
  if (all.size() <= most) return all;
  std::vector<LiveBytes> kept;
  for (std::size_t i = 0; i < most; ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i * all.size() / most);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>((i + 1) * all.size() / most);
    kept.push_back(*std::max_element(
        begin, end, [](const LiveBytes& a, const LiveBytes& b) { return a.all() < b.all(); }));
  }
  return kept;
}

std::string plan_record_json(const Lowered& lowered, const Plan& plan,
                             const ResolvedPolicy& resolved) {
  RecordJson devices = RecordJson::array();
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = plan.memory[d];
    RecordJson at = RecordJson::array(), gradients = at, activations = at, workspace = at,
               paths = at;
    for (const LiveBytes& live : live_bytes(lowered, plan, static_cast<int>(d), most_live_points)) {
      at.push_back(live.launch);
      gradients.push_back(live.gradients);
      activations.push_back(live.activations);
      workspace.push_back(live.workspace);
      paths.push_back(live.path);
    }
    devices.push_back({{"name", resolved.devices[d].name},
                       {"parameters", use.parameters},
                       {"state", use.state},
                       {"others", use.others()},
                       {"peak", use.peak},
                       {"peak_at", use.peak_at},
                       {"at", at},
                       {"gradients", gradients},
                       {"activations", activations},
                       {"workspace", workspace},
                       {"paths", paths}});
  }
  std::vector<Crossing> crossings = crossings_of(lowered, plan);
  expect_rows(crossings, resolved);
  std::stable_sort(crossings.begin(), crossings.end(),
                   [](const Crossing& a, const Crossing& b) { return a.bytes > b.bytes; });
  RecordJson copies = RecordJson::array();
  for (const Crossing& crossing : crossings) {
    if (copies.size() == most_recorded_copies) break;
    copies.push_back({{"value", crossing.value},
                      {"producer", crossing.producer},
                      {"from", resolved.devices[static_cast<std::size_t>(crossing.from)].name},
                      {"to", resolved.devices[static_cast<std::size_t>(crossing.to)].name},
                      {"phase", phase_name(crossing.phase)},
                      {"bytes", crossing.expected_bytes.value_or(crossing.bytes)}});
  }
  const RecordJson json{{"launches", plan.launches.size()},
                        {"phases", phases_of(lowered, plan)},
                        {"devices", devices},
                        {"copies", copies},
                        {"more_copies", crossings.size() - copies.size()}};
  return json.dump(-1, ' ', false, RecordJson::error_handler_t::replace) + "\n";
}

}  // namespace tandem
