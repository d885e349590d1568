// The JSON of a plan.
#include <nlohmann/json.hpp>

#include "placement/report/json.h"
#include "placement/report/plan.h"
#include "placement/report/plan_sums.h"
#include "placement/report/rule_data.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json device_json(const api::Plan::Device& device) {
  Json json{{"parameters", device.parameters},  {"gradients", device.gradients},
            {"state", device.optimizer_states}, {"activations", device.activations},
            {"workspace", device.workspace},    {"peak", device.peak},
            {"peak_at", device.peak_at}};
  json["limit"] = device.is_limited ? Json(device.limit) : Json();
  if (!device.is_limited) json["memory"] = device.limit;
  return json;
}

Json copy_json(const api::Plan::Copy& copy) {
  Json json{{"bytes", copy.bytes},
            {"from", copy.from},
            {"to", copy.to},
            {"producer", copy.producer},
            {"consumers", copy.consumers},
            {"hidden", is_hidden(copy.exposed_seconds)},
            {"exposed_ms", copy.exposed_seconds * 1e3},
            {"value", copy.value},
            {"phase", phase_name(copy.phase)},
            {"scalar", copy.is_scalar},
            {"times", copy.times}};
  if (copy.rows) json["rows"] = true;
  if (copy.ahead) json["ahead"] = true;
  if (copy.expected_bytes) json["expected_bytes"] = *copy.expected_bytes;
  return json;
}

Json exchange_json(const api::Plan& plan) {
  const ExchangeSums sums = exchange_sums(plan);
  Json exchanges = Json::array();
  for (const api::Plan::Exchange& exchange : plan.exchanges) {
    exchanges.push_back({{"op", exchange.op},
                         {"path", exchange.path},
                         {"algorithm", exchange.algorithm},
                         {"device", exchange.device},
                         {"phase", phase_name(exchange.phase)},
                         {"operands", exchange.operands},
                         {"bytes", exchange.bytes},
                         {"ms", exchange.seconds * 1e3},
                         {"exposed_ms", exchange.exposed_seconds * 1e3},
                         {"times", exchange.times}});
  }
  return {{"ranks", plan.ranks},
          {"bytes", sums.bytes},
          {"ms", sums.seconds * 1e3},
          {"exposed_ms", sums.exposed_seconds * 1e3},
          {"exchanges", exchanges}};
}

Json hint_json(const api::Plan::Hint& hint) {
  constexpr const char* kinds[] = {"view", "home", "memory", "cache"};
  Json json{
      {"kind", kinds[static_cast<int>(hint.kind)]}, {"path", hint.path}, {"bytes", hint.bytes}};
  if (!hint.at.empty()) {
    json["file"] = hint.file;
    json["line"] = hint.line;
    json["rule"] = hint.at;
  }
  json["message"] = hint.message;
  json["fix"] = hint.fix;
  return json;
}

Json traffic_json(const api::Plan::Traffic& traffic) {
  Json json{{"copies", traffic.copies},
            {"bytes", traffic.bytes},
            {"scalar_copies", traffic.scalar_copies},
            {"scalar_bytes", traffic.scalar_bytes}};
  if (traffic.expected_bytes) json["expected_bytes"] = *traffic.expected_bytes;
  return json;
}

}  // namespace

std::string plan_json(const api::Plan& plan) {
  Json placed = Json::object(), devices = Json::object(), transfers = Json::array(),
       hints = Json::array(), remedies = Json::array();
  for (const api::Plan::Device& device : plan.devices) {
    placed[device.name] = counts_json(counts_of(device.placed));
    devices[device.name] = device_json(device);
  }
  for (const api::Plan::Copy& copy : plan.copies) transfers.push_back(copy_json(copy));
  for (const api::Plan::Hint& hint : plan.hints) hints.push_back(hint_json(hint));
  for (const api::Plan::Remedy& remedy : plan.remedies) {
    remedies.push_back({{"rule", remedy.text},
                        {"bytes", remedy.freed},
                        {"suffices", remedy.suffices},
                        {"step_ms", remedy.seconds * 1e3}});
  }
  Json json{{"placed", placed},
            {"devices", devices},
            {"transfers", transfers},
            {"traffic", traffic_json(plan.traffic)},
            {"time",
             {{"step_ms", plan.seconds * 1e3},
              {"computing_ms", plan.computing_seconds * 1e3},
              {"exposed_copies_ms", plan.exposed_seconds * 1e3}}}};
  if (plan.ranks > 1) json["exchange"] = exchange_json(plan);
  json["hints"] = hints;
  json["fits"] = plan.fits;
  json["remedies"] = remedies;
  return json_text(json);
}

}  // namespace tandem
