#include "placement/report/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/graph/text.h"
#include "placement/quantities.h"
#include "placement/report/json.h"
#include "placement/report/rule_data.h"
#include "placement/selectors/fold.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

/// An attribute of an operator or a parameter under both policies.
struct Compared {
  std::string path, attribute, from, to;
  bool parameter = false;
  bool added = false;                     // for an operator
  StateKind kind = StateKind::parameter;  // for a parameter
  bool moves() const { return from != to; }
};

/// A selector, and the attributes that move alike for all that it covers.
struct MovedGroup {
  std::string at;
  std::vector<Compared> moves;                   // those of the first item, one an attribute
  std::set<std::pair<bool, std::string>> items;  // parameter or not, path
  ItemCounts counts;
};

std::string device(const ResolvedPolicy& resolved, const Decided<int>& decided) {
  return resolved.devices[decided.value].name;
}

std::string cache_of(const ParameterAttributes& parameter) {
  if (!parameter.cached.rows) return "none";
  return std::to_string(parameter.cached.rows->size()) + " rows";
}

std::vector<Compared> compare(const ResolvedPolicy& a, const ResolvedPolicy& b) {
  std::vector<Compared> all;
  for (const OperatorAttributes& from : a.operators) {
    const OperatorAttributes* to = b.find_node(from.path);
    if (!to) continue;
    const auto add = [&](const char* attribute, std::string before, std::string after) {
      all.push_back({from.path, attribute, std::move(before), std::move(after)});
      all.back().added = from.added;
    };
    if (!from.added || from.run.reason.rule >= 0 || to->run.reason.rule >= 0)
      add("run", device(a, from.run), device(b, to->run));
    add("acts", std::string(name_of(from.acts.value)), std::string(name_of(to->acts.value)));
    add("lookahead", std::to_string(from.lookahead.value), std::to_string(to->lookahead.value));
  }
  for (const ParameterAttributes& from : a.parameters) {
    const ParameterAttributes* to = b.find_parameter(from.name);
    if (!to) continue;
    const auto add = [&](const char* attribute, std::string before, std::string after) {
      all.push_back({from.path.empty() ? from.name : from.path, attribute, std::move(before),
                     std::move(after), true, false, from.kind});
    };
    add("param", device(a, from.param), device(b, to->param));
    if (from.kind == StateKind::parameter)
      add("state", device(a, from.state), device(b, to->state));
    add("lookahead", std::to_string(from.lookahead.value), std::to_string(to->lookahead.value));
    add("ship", std::string(name_of(from.ship.value)), std::string(name_of(to->ship.value)));
    add("cache", cache_of(from), cache_of(*to));
    add("shard", std::string(name_of(from.shard.value)), std::string(name_of(to->shard.value)));
  }
  return all;
}

/// One attribute of all operators, or of all parameters.
struct Column {
  std::vector<const Compared*> rows;
  std::vector<std::string> paths;
  std::vector<int> labels;  // equal for equal moves; -1: it does not move
  std::map<std::pair<std::string, std::string>, int> known;

  void add(const Compared& row) {
    const auto next = static_cast<int>(known.size());
    rows.push_back(&row);
    paths.push_back(row.path);
    labels.push_back(row.moves() ? known.try_emplace({row.from, row.to}, next).first->second : -1);
  }
};

std::vector<MovedGroup> moved_groups(const std::vector<Compared>& all) {
  std::vector<Column> columns;
  std::map<std::pair<bool, std::string>, std::size_t> places;
  for (const Compared& row : all) {
    const auto [place, fresh] = places.try_emplace({row.parameter, row.attribute}, columns.size());
    if (fresh) columns.emplace_back();
    columns[place->second].add(row);
  }
  std::vector<MovedGroup> groups;
  std::map<std::string, std::size_t> by_selector;
  for (const Column& column : columns) {
    for (const Folded& fold : folded(column.paths, column.labels)) {
      const auto [place, fresh] = by_selector.try_emplace(fold.at, groups.size());
      if (fresh) groups.emplace_back().at = fold.at;
      MovedGroup& group = groups[place->second];
      group.moves.push_back(*column.rows[fold.items.front()]);
      for (const int item : fold.items) {
        const Compared& row = *column.rows[item];
        if (!group.items.emplace(row.parameter, row.path).second) continue;
        if (row.parameter) {
          group.counts.add_parameter(row.kind);
        } else {
          group.counts.add_operator(row.added);
        }
      }
    }
  }
  return groups;
}

/// "run, param gpu -> cpu; acts keep -> offload".
std::string moves_text(const std::vector<Compared>& moves) {
  std::vector<std::pair<std::string, std::string>> texts;  // attributes, values
  for (const Compared& move : moves) {
    std::string values = move.from + " -> " + move.to;
    const auto same = std::find_if(texts.begin(), texts.end(),
                                   [&](const auto& text) { return text.second == values; });
    if (same == texts.end()) {
      texts.emplace_back(move.attribute, std::move(values));
    } else if (same->first != move.attribute) {  // operators and parameters have a lookahead
      same->first += ", " + move.attribute;
    }
  }
  return joined(texts, "; ", [](const auto& text) { return text.first + " " + text.second; });
}

std::string groups_text(const std::vector<MovedGroup>& groups) {
  std::string text;
  for (const MovedGroup& group : groups) {
    text += fmt::format("~ {:<32} {} ({})\n", group.at, moves_text(group.moves),
                        joined(nonzero_counts(group.counts)));
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

/// Peaks under both policies, by device.
std::map<std::string, std::pair<std::size_t, std::size_t>> peaks_of(const api::Plan& a,
                                                                    const api::Plan& b) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> peaks;
  for (const api::Plan::Device& device : a.devices) peaks[device.name].first = device.peak;
  for (const api::Plan::Device& device : b.devices) peaks[device.name].second = device.peak;
  return peaks;
}

Json moves_json(const std::vector<Compared>& all, bool parameters) {
  Json list = Json::array();
  for (const Compared& row : all) {
    if (row.parameter != parameters || !row.moves()) continue;
    list.push_back(
        {{"path", row.path}, {"attribute", row.attribute}, {"from", row.from}, {"to", row.to}});
  }
  return list;
}

Json groups_json(const std::vector<MovedGroup>& groups) {
  Json list = Json::array();
  for (const MovedGroup& group : groups) {
    Json moves = Json::array();
    for (const Compared& move : group.moves) {
      moves.push_back({{"attribute", move.attribute}, {"from", move.from}, {"to", move.to}});
    }
    Json& json = list.emplace_back(Json{{"at", group.at}, {"moves", moves}});
    json.update(counts_json(group.counts));
  }
  return list;
}

template <class T>
Json pair_json(T a, T b) {
  return {{"a", a}, {"b", b}};
}

}  // namespace

api::PolicyDiff difference(const PlannedPolicy& a, const PlannedPolicy& b) {
  const std::vector<Compared> all = compare(a.resolved, b.resolved);
  const std::vector<MovedGroup> groups = moved_groups(all);
  const api::Plan &x = a.plan, &y = b.plan;
  const api::Plan::Traffic &from = x.traffic, &to = y.traffic;

  api::PolicyDiff diff;
  diff.differs = !groups.empty();
  for (const Compared& row : all) {
    if (row.moves())
      diff.moves.push_back(
          {row.path, row.parameter, attribute_of(row.attribute), row.from, row.to});
  }
  diff.text = groups.empty() ? "nothing moves\n" : groups_text(groups);
  Json devices = Json::object();
  for (const auto& [name, peak] : peaks_of(x, y)) {
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
  if (x.fits != y.fits) {
    diff.text +=
        fmt::format("fits         {} -> {}\n", x.fits ? "yes" : "no", y.fits ? "yes" : "no");
  }
  diff.json = json_text({{"differs", diff.differs},
                         {"groups", groups_json(groups)},
                         {"operators", moves_json(all, false)},
                         {"parameters", moves_json(all, true)},
                         {"devices", devices},
                         {"transfers",
                          {{"copies", pair_json(from.copies, to.copies)},
                           {"bytes", pair_json(from.bytes, to.bytes)}}},
                         {"time", {{"step_ms", pair_json(seconds_from, seconds_to)}}},
                         {"fits", pair_json(x.fits, y.fits)}});
  return diff;
}

}  // namespace tandem
