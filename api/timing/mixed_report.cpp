// Reports queues, boundaries and copies for `bench`: measured next to predicted times.
#include <map>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "api/timing/mixed_profile.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

Json time_json(const CopyTime& time) {
  return {{"copying_ms", time.copying_ms},
          {"exposed_ms", time.exposed_ms},
          {"waiting_ms", time.waiting_ms}};
}

/// Adds both, with the prediction in an object of its own.
void add_times(Json& json, const CopyTime& measured, const CopyTime& predicted) {
  json.update(time_json(measured));
  json["predicted"] = time_json(predicted);
}

struct Boundary {
  std::string from, to;
  std::int64_t copies = 0;
  std::size_t bytes = 0;
  CopyTime measured, predicted;
};

std::vector<Boundary> boundaries_of(const MixedProfile& profile,
                                    const std::vector<Device*>& devices) {
  std::map<std::pair<int, int>, Boundary> boundaries;
  for (const CopyProfile& copy : profile.copies) {
    Boundary& boundary = boundaries[{copy.crossing.from, copy.crossing.to}];
    boundary.copies += copy.crossing.times;
    boundary.bytes += copy.crossing.bytes * static_cast<std::size_t>(copy.crossing.times);
    boundary.measured += copy.measured;
    boundary.predicted += copy.predicted;
  }
  std::vector<Boundary> list;
  for (auto& [ends, boundary] : boundaries) {
    boundary.from = devices[ends.first]->name();
    boundary.to = devices[ends.second]->name();
    list.push_back(std::move(boundary));
  }
  return list;
}

}  // namespace

Json mixed_json(const MixedProfile& profile, const std::vector<Device*>& devices) {
  Json json{{"queues", Json::array()},
            {"transfers", {{"bytes", profile.bytes}}},
            {"boundaries", Json::array()},
            {"copies", Json::array()}};
  for (std::size_t q = 0; q < profile.queues.size(); ++q) {
    const QueueTime& queue = profile.queues[q];
    Json& row = json["queues"].emplace_back(Json{{"name", queue.name}, {"busy_ms", queue.busy_ms}});
    if (!profile.whole) continue;
    row["waiting_ms"] = queue.waiting_ms;
    row["predicted"] = {{"busy_ms", profile.predicted[q].busy_ms},
                        {"waiting_ms", profile.predicted[q].waiting_ms}};
  }
  if (!profile.whole) return json;
  CopyTime measured, predicted;
  for (const Boundary& boundary : boundaries_of(profile, devices)) {
    Json& row = json["boundaries"].emplace_back(Json{{"from", boundary.from},
                                                     {"to", boundary.to},
                                                     {"copies", boundary.copies},
                                                     {"bytes", boundary.bytes}});
    add_times(row, boundary.measured, boundary.predicted);
    measured += boundary.measured;
    predicted += boundary.predicted;
  }
  add_times(json["transfers"], measured, predicted);
  for (const CopyProfile& copy : profile.copies) {
    Json& row = json["copies"].emplace_back(Json{{"value", copy.crossing.value},
                                                 {"producer", copy.crossing.producer},
                                                 {"consumers", copy.crossing.consumers},
                                                 {"from", devices[copy.crossing.from]->name()},
                                                 {"to", devices[copy.crossing.to]->name()},
                                                 {"bytes", copy.crossing.bytes},
                                                 {"times", copy.crossing.times}});
    add_times(row, copy.measured, copy.predicted);
  }
  return json;
}

std::string mixed_text(const MixedProfile& profile, const std::vector<Device*>& devices) {
  std::string text;
  if (!profile.whole) {
    for (const QueueTime& queue : profile.queues)
      text += fmt::format("queue  {} busy {:.3f} ms\n", queue.name, queue.busy_ms);
    if (profile.bytes > 0) {
      text += fmt::format("copies {} a step; waits are measured where all steps are alike\n",
                          bytes_text(profile.bytes));
    }
    return text;
  }
  text +=
      fmt::format("{:<29}{:>19} {:>26}\n", "milliseconds a step", "measured", "by the cost model");
  text += fmt::format("{:<27}{:>10} {:>10}{:>16} {:>10}\n", "queue", "busy", "waiting", "busy",
                      "waiting");
  for (std::size_t q = 0; q < profile.queues.size(); ++q) {
    const QueueTime &measured = profile.queues[q], &predicted = profile.predicted[q];
    text +=
        fmt::format("  {:<25}{:>10.3f} {:>10.3f}{:>16.3f} {:>10.3f}\n", measured.name,
                    measured.busy_ms, measured.waiting_ms, predicted.busy_ms, predicted.waiting_ms);
  }
  text +=
      fmt::format("{:<16}{:>7} {:>11} {:>9} {:>9} {:>9}{:>11} {:>9} {:>9}\n", "boundary", "copies",
                  "bytes", "copying", "exposed", "waiting", "copying", "exposed", "waiting");
  for (const Boundary& boundary : boundaries_of(profile, devices)) {
    text += fmt::format(
        "  {:<14}{:>7} {:>11} {:>9.3f} {:>9.3f} {:>9.3f}{:>11.3f} {:>9.3f} {:>9.3f}\n",
        boundary.from + " > " + boundary.to, boundary.copies, bytes_text(boundary.bytes),
        boundary.measured.copying_ms, boundary.measured.exposed_ms, boundary.measured.waiting_ms,
        boundary.predicted.copying_ms, boundary.predicted.exposed_ms,
        boundary.predicted.waiting_ms);
  }
  return text;
}

}  // namespace tandem::api
