#include "placement/report/placement_report.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/formats/count_text.h"
#include "engine/operators/operator.h"
#include "placement/derive.h"
#include "placement/quantities.h"
#include "placement/report/json.h"

namespace tandem {
const char* phase_name(Phase phase) {
  return phase == Phase::forward ? "forward" : phase == Phase::backward ? "backward" : "update";
}

void expect_rows(std::vector<Crossing>& crossings, const ResolvedPolicy& resolved) {
  for (Crossing& crossing : crossings) {
    if (crossing.table.empty()) continue;
    const ParameterAttributes* table = resolved.find_parameter(crossing.table);
    if (!table || !table->traffic.counted || table->traffic.most_rows == 0) continue;
    crossing.expected_bytes = static_cast<std::size_t>(
        static_cast<double>(crossing.bytes) * static_cast<double>(table->traffic.rows) /
            static_cast<double>(table->traffic.most_rows) +
        0.5);
  }
}

std::vector<PlacedRow> placed_rows(const Lowered& lowered, const ResolvedPolicy& resolved) {
  const Graph& graph = lowered.graph;
  const Placement wanted = derive_placement(graph, resolved);
  std::vector<PlacedRow> rows;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const LoweredNode& placed = lowered.nodes[n];
    PlacedRow row;
    row.node = NodeId{static_cast<std::int32_t>(n)};
    row.path = node.path;
    row.op = node.op->name;
    row.phase = node.phase;
    row.device = placed.device;
    if (placed.kernel) {
      row.kernel = placed.kernel->name;
    } else {
      row.kernel = placed.transfer ? "copy" : placed.collective ? "ranks" : "view";
    }
    if (placed.transfer) {
      row.reason = "read there";
    } else if (wanted.nodes[n].device == placed.device) {
      row.reason = wanted.nodes[n].reason;
    } else {
      row.reason = "follows what it became part of";
    }
    for (const ValueId output : node.outputs) {
      if (output) row.results.push_back(graph.value(output).name);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<FallenRow> fallen_rows(const Policy& policy, const ResolvedPolicy& resolved) {
  std::vector<FallenRow> rows;
  const auto add = [&](const std::string& path, const char* attribute, const Decided<int>& is) {
    if (is.reason.fallen.empty() || is.reason.fallen[0].device == is.value) return;
    const FallBack& asked = is.reason.fallen[0];
    rows.push_back({path, attribute, resolved.devices[asked.device].name,
                    resolved.devices[is.value].name, short_text(policy.rules[asked.rule].where),
                    asked.because});
  };
  for (const OperatorAttributes& op : resolved.operators) add(op.path, "run", op.run);
  for (const ParameterAttributes& p : resolved.parameters) {
    const std::string& path = p.path.empty() ? p.name : p.path;
    add(path, "param", p.param);
    if (p.kind == StateKind::parameter) add(path, "state", p.state);
  }
  return rows;
}

namespace {

/// What decided `ship`.
const char* source_of(const ParameterAttributes& table) {
  if (table.ship_request != ShipRequest::automatic) return "rule";
  return table.traffic.counted ? "data" : "bound";
}

}  // namespace

std::vector<std::string> table_lines(const ResolvedPolicy& resolved) {
  std::vector<std::string> lines;
  for (const ParameterAttributes& table : resolved.parameters) {
    const TableTraffic& traffic = table.traffic;
    if (!traffic.crosses) continue;
    const TableCache& cache = table.cached;
    lines.push_back(fmt::format(
        "table      {}: {} cross ({}); {} {} different rows {}for {} ids a micro-batch; there and "
        "back "
        "{} as rows, {} as results",
        table.path.empty() ? table.name : table.path, name_of(table.ship.value), source_of(table),
        traffic.counted ? "about" : "at most", traffic.rows, cache.rows ? "outside the cache " : "",
        traffic.ids, bytes_text(traffic.bytes_rows), bytes_text(traffic.bytes_results)));
    if (!cache.rows) continue;
    lines.back() += fmt::format(
        "; {} without the cache: {} rows on {}, {} with their state, {:.1f}% of the ids",
        bytes_text(traffic.bytes_uncached), cache.rows->size(), resolved.devices[cache.device].name,
        bytes_text(cache.bytes), 100 * cache.hit_rate);
  }
  return lines;
}

std::string placement_json(const Lowered& lowered, const RunPolicy& policy,
                           const ResolvedPolicy& resolved) {
  using Json = nlohmann::ordered_json;
  const Graph& graph = lowered.graph;
  const std::vector<ResolvedDevice>& devices = resolved.devices;
  const Placement wanted = derive_placement(graph, resolved);
  Json names = Json::array(), uses = Json::object(), nodes = Json::array(), states = Json::array();
  for (const ResolvedDevice& device : devices) {
    names.push_back(device.name);
    uses[device.name] = device.use;
  }
  for (const PlacedRow& row : placed_rows(lowered, resolved)) {
    nodes.push_back({{"path", row.path},
                     {"op", row.op},
                     {"phase", phase_name(row.phase)},
                     {"device", devices[row.device].name},
                     {"kernel", row.kernel},
                     {"reason", row.reason}});
  }
  std::map<std::string, int> weights;  // homes of weights that are apart from their masters
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    if (const Mirror* mirror = graph.states[s].derived.as<Mirror>())
      weights[mirror->of] = lowered.states[s].device;
  }
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const State& state = graph.states[s];
    if (state.derived.is<Mirror>()) continue;
    const int home = lowered.states[s].device;
    const auto weight = weights.find(state.name);
    states.push_back({{"name", state.name},
                      {"state", devices[home].name},
                      {"param", devices[weight == weights.end() ? home : weight->second].name},
                      {"reason", wanted.states[s].reason}});
    if (state.shard) states.back()["shard"] = word_of(state.shard->kind);
  }
  Json acts = Json::array();
  for (const OperatorAttributes& op : resolved.operators) {
    if (op.acts.value == Activations::keep) continue;
    Json& json = acts.emplace_back(
        Json{{"path", op.path}, {"acts", name_of(op.acts.value)}, {"reason", op.acts.reason.text}});
    if (op.lookahead.reason.rule >= 0) json["lookahead"] = op.lookahead.value;
  }
  Json tables = Json::array();
  for (const ParameterAttributes& table : resolved.parameters) {
    const TableTraffic& traffic = table.traffic;
    if (!traffic.crosses) continue;
    tables.push_back({{"parameter", table.path.empty() ? table.name : table.path},
                      {"ship", name_of(table.ship.value)},
                      {"ids", traffic.ids},
                      {"unique_rows", traffic.rows},
                      {"counted", traffic.counted},
                      {"source", source_of(table)},
                      {"bytes_rows", traffic.bytes_rows},
                      {"bytes_results", traffic.bytes_results},
                      {"reason", table.ship.reason.text}});
    const TableCache& cache = table.cached;
    if (!cache.rows) continue;
    Json& json = tables.back();
    json["cached_rows"] = cache.rows->size();
    json["cache_device"] = devices[cache.device].name;
    json["cache_bytes"] = cache.bytes;
    json["hit_rate"] = cache.hit_rate;
    json["bytes_uncached"] = traffic.bytes_uncached;
  }
  Json json{{"devices", names},
            {"uses", uses},
            {"nodes", nodes},
            {"states", states},
            {"operators", acts},
            {"fell_back", fallen_json(policy.policy, resolved)},
            {"tables", tables},
            {"arguments", {{"place", policy.added_rules}, {"device", policy.added_devices}}}};
  return json.dump(1) + "\n";
}

std::string placement_line(const std::vector<MemoryUse>& memory,
                           const std::vector<Crossing>& crossings, const Policy& policy,
                           const ResolvedPolicy& resolved) {
  const std::vector<ItemCounts> counts = resolved.counts_by_device();
  std::string line = "placement:";
  for (std::size_t i = 0; i < resolved.devices.size(); ++i) {
    const std::size_t d = (i + 1) % resolved.devices.size();  // the cpu comes last
    line += fmt::format(" {} {} {} |", resolved.devices[d].name,
                        count_text(counts[d].operators, "operator"), bytes_text(memory[d].peak));
  }
  const Traffic traffic = traffic_of(crossings);
  line += fmt::format(" {}, {}/step |", count_text(traffic.copies, "crossing"),
                      bytes_text(traffic.bytes));
  const std::string& file = policy.file;
  return line + (file.empty() ? " no policy"
                              : " policy " + std::filesystem::path(file).filename().string());
}

std::string memory_text(const std::vector<MemoryUse>& memory, const ResolvedPolicy& resolved) {
  std::string text;
  for (std::size_t d = 0; d < memory.size(); ++d) {
    const MemoryUse& use = memory[d];
    text += fmt::format(
        "memory     {}: parameters {}, state {}, gradients {}, activations {}, workspace {}, peak "
        "{} at {}\n",
        resolved.devices[d].name, bytes_text(use.parameters), bytes_text(use.state),
        bytes_text(use.gradients), bytes_text(use.activations), bytes_text(use.workspace),
        bytes_text(use.peak), use.peak_at.empty() ? "start" : use.peak_at);
  }
  return text;
}

}  // namespace tandem
