#include "placement/report/diff.h"

#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "engine/graph/text.h"
#include "placement/quantities.h"
#include "placement/report/json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Move {
  std::string path, attribute, from, to;
  bool parameter = false;
};

std::string device(const ResolvedPolicy& resolved, const Decided<int>& decided) {
  return resolved.devices[decided.value].name;
}

void compare(std::vector<Move>& moves, const std::string& path, bool parameter,
             const char* attribute, std::string from, std::string to) {
  if (from != to) moves.push_back({path, attribute, std::move(from), std::move(to), parameter});
}

std::string cache_of(const ParameterAttributes& parameter) {
  if (!parameter.cached.rows) return "none";
  return std::to_string(parameter.cached.rows->size()) + " rows";
}

std::vector<Move> moves_between(const ResolvedPolicy& a, const ResolvedPolicy& b) {
  std::vector<Move> moves;
  for (const OperatorAttributes& from : a.operators) {
    const OperatorAttributes* to = b.find_node(from.path);
    if (!to) continue;
    if (!from.added || from.run.reason.rule >= 0 || to->run.reason.rule >= 0) {
      compare(moves, from.path, false, "run", device(a, from.run), device(b, to->run));
    }
    compare(moves, from.path, false, "acts", std::string(name_of(from.acts.value)),
            std::string(name_of(to->acts.value)));
    compare(moves, from.path, false, "lookahead", std::to_string(from.lookahead.value),
            std::to_string(to->lookahead.value));
  }
  for (const ParameterAttributes& from : a.parameters) {
    const ParameterAttributes* to = b.find_parameter(from.name);
    if (!to) continue;
    const std::string& path = from.path.empty() ? from.name : from.path;
    compare(moves, path, true, "param", device(a, from.param), device(b, to->param));
    if (from.kind == StateKind::parameter) {
      compare(moves, path, true, "state", device(a, from.state), device(b, to->state));
    }
    compare(moves, path, true, "lookahead", std::to_string(from.lookahead.value),
            std::to_string(to->lookahead.value));
    compare(moves, path, true, "ship", std::string(name_of(from.ship.value)),
            std::string(name_of(to->ship.value)));
    compare(moves, path, true, "cache", cache_of(from), cache_of(*to));
    compare(moves, path, true, "shard", std::string(name_of(from.shard.value)),
            std::string(name_of(to->shard.value)));
  }
  return moves;
}

std::string scope_of(const std::string& path) {
  const std::size_t end = path.find_last_of(".:");
  return end == std::string::npos ? "" : path.substr(0, end);
}

/// Equal moves of one scope are one line.
std::string moves_text(const std::vector<Move>& moves) {
  std::map<std::tuple<std::string, bool, std::string, std::string, std::string>,
           std::vector<const Move*>>
      groups;
  std::vector<const Move*> firsts;
  const auto key = [](const Move& m) {
    return std::tuple{scope_of(m.path), m.parameter, m.attribute, m.from, m.to};
  };
  for (const Move& move : moves) {
    auto& group = groups[key(move)];
    if (group.empty()) firsts.push_back(&move);
    group.push_back(&move);
  }
  std::string text;
  for (const Move* first : firsts) {
    const auto& group = groups[key(*first)];
    const std::string scope = scope_of(first->path);
    std::string what = first->path;
    if (group.size() > 1 && !scope.empty()) {
      what = fmt::format("{} ({} {}s)", scope, group.size(),
                         first->parameter ? "parameter" : "operator");
    } else if (group.size() > 1) {
      what = joined(group, ", ", &Move::path);
    }
    text += fmt::format("~ {:<32} {} {} -> {}\n", what, first->attribute, first->from, first->to);
  }
  return text;
}

std::string change_text(double from, double to, const std::string& shown_from,
                        const std::string& shown_to, const std::string& difference) {
  if (from == to) return shown_from + " (unchanged)";
  return fmt::format("{} -> {} ({}{})", shown_from, shown_to, to > from ? "+" : "-", difference);
}

std::string bytes_change(std::size_t from, std::size_t to) {
  const auto a = static_cast<double>(from), b = static_cast<double>(to);
  return change_text(a, b, bytes_text(a), bytes_text(b), bytes_text(b > a ? b - a : a - b));
}

/// Peaks by device, of the devices of either.
std::map<std::string, std::pair<std::size_t, std::size_t>> peaks_of(const PlannedPolicy& a,
                                                                    const PlannedPolicy& b) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> peaks;
  for (std::size_t d = 0; d < a.step.memory.size(); ++d)
    peaks[a.resolved.devices[d].name].first = a.step.memory[d].peak;
  for (std::size_t d = 0; d < b.step.memory.size(); ++d)
    peaks[b.resolved.devices[d].name].second = b.step.memory[d].peak;
  return peaks;
}

Json moves_json(const std::vector<Move>& moves, bool parameters) {
  Json list = Json::array();
  for (const Move& move : moves) {
    if (move.parameter != parameters) continue;
    list.push_back(
        {{"path", move.path}, {"attribute", move.attribute}, {"from", move.from}, {"to", move.to}});
  }
  return list;
}

template <class T>
Json pair_json(T a, T b) {
  return {{"a", a}, {"b", b}};
}

}  // namespace

PolicyDifference difference(const PlannedPolicy& a, const PlannedPolicy& b) {
  const std::vector<Move> moves = moves_between(a.resolved, b.resolved);
  const PlannedStep &x = a.step, &y = b.step;
  const Traffic from = traffic_of(x.crossings), to = traffic_of(y.crossings);

  PolicyDifference diff;
  diff.differs = !moves.empty();
  diff.text = moves.empty() ? "nothing moves\n" : moves_text(moves);
  Json devices = Json::object();
  for (const auto& [name, peak] : peaks_of(a, b)) {
    devices[name] = {{"peak", pair_json(peak.first, peak.second)}};
    diff.text += fmt::format("{:<12} peak {}\n", name, bytes_change(peak.first, peak.second));
  }
  const double seconds_from = x.seconds * 1e3, seconds_to = y.seconds * 1e3;
  diff.text +=
      fmt::format("copies       {} -> {} a step, {}\ntime         {}\n", from.copies, to.copies,
                  bytes_change(from.bytes, to.bytes),
                  change_text(seconds_from, seconds_to, fmt::format("{:.3f} ms", seconds_from),
                              fmt::format("{:.3f} ms", seconds_to),
                              fmt::format("{:.3f} ms", std::abs(seconds_to - seconds_from))));
  if (x.fits() != y.fits()) {
    diff.text +=
        fmt::format("fits         {} -> {}\n", x.fits() ? "yes" : "no", y.fits() ? "yes" : "no");
  }
  diff.json = json_text({{"differs", diff.differs},
                         {"operators", moves_json(moves, false)},
                         {"parameters", moves_json(moves, true)},
                         {"devices", devices},
                         {"transfers",
                          {{"copies", pair_json(from.copies, to.copies)},
                           {"bytes", pair_json(from.bytes, to.bytes)}}},
                         {"time", {{"step_ms", pair_json(seconds_from, seconds_to)}}},
                         {"fits", pair_json(x.fits(), y.fits())}});
  return diff;
}

}  // namespace tandem
