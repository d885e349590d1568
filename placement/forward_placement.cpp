#include "placement/forward_placement.h"

#include <map>
#include <memory>

#include "engine/passes/tables/cached_tables.h"

namespace tandem {

ForwardPlacement forward_placement(const ResolvedPolicy& resolved) {
  auto nodes = std::make_shared<std::map<std::string, PlacedNode>>();
  for (const OperatorAttributes& op : resolved.operators) {
    PlacedNode node{op.run.value, op.run.reason.text, op.acts.value, op.lookahead.value};
    if (op.added && op.run.reason.layer == Layer::builtin) {
      if (op.acts.reason.rule < 0) continue;
      node.device = -1;
    }
    nodes->emplace(op.path, std::move(node));
  }
  auto parameters = std::make_shared<std::map<std::string, PlacedState>>();
  for (const ParameterAttributes& p : resolved.parameters) {
    std::string reason = p.param.reason.text;
    if (!p.state.reason.follows) reason = "param " + reason + ", state " + p.state.reason.text;
    PlacedState state{p.state.value, p.param.value, std::move(reason), p.lookahead.value,
                      p.ship.value};
    if (p.fetches_ahead()) state.rows_ahead = 1;  // more than one step is not looked ahead yet
    parameters->emplace(p.name, std::move(state));
    if (!p.cached.rows) continue;
    const int device = p.cached.device;
    reason = "cache " + p.cache.reason.text;
    for (const std::string& reader : p.readers) {
      const OperatorAttributes& look_up = *resolved.find_node(reader);
      nodes->emplace(cached_name(reader),
                     PlacedNode{device, reason, look_up.acts.value, look_up.lookahead.value});
    }
    parameters->emplace(cached_name(p.name), PlacedState{device, device, reason});
  }
  const auto find = [](const auto& map, const std::string& key) {
    const auto place = map.find(key);
    return place == map.end() ? nullptr : &place->second;
  };
  ForwardPlacement result;
  for (const ResolvedDevice& device : resolved.devices) result.devices.push_back(device.name);
  result.node = [nodes, find](const std::string& path) { return find(*nodes, path); };
  result.parameter = [parameters, find](const std::string& name) {
    return find(*parameters, name);
  };
  return result;
}

}  // namespace tandem
