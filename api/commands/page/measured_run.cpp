#include "api/commands/page/measured_run.h"

#include <cmath>
#include <unordered_map>

#include "api/commands/page/trace_queues.h"
#include "api/commands/runs/run_record.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/optimizers/composed.h"

namespace tandem::api {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
constexpr std::size_t most_points = 2000;

PageJson json_of_file(const std::string& path) {
  if (!path_exists(path)) return nullptr;
  const PageJson json = PageJson::parse(read_file(path, most_bytes), nullptr, false);
  return json.is_discarded() ? PageJson() : json;
}

PageJson finite(double value) { return std::isfinite(value) ? PageJson(value) : PageJson(); }

/// The item that an operator of the measured step belongs to; -1: none.
class ItemsByPath {
 public:
  ItemsByPath(const ModelTree& tree, const PolicyItems& items, const Graph& graph) {
    for (std::size_t i = 0; i < items.operators.size(); ++i)
      items_[items.operators[i].path] = tree.of_operator(static_cast<int>(i));
    for (std::size_t p = 0; p < items.parameters.size(); ++p) {
      const State& state = graph.states[static_cast<std::size_t>(items.parameters[p].state)];
      items_["optimizer." + state.name] = tree.of_parameter(static_cast<int>(p));
      items_[composed_path(state.name)] = tree.of_parameter(static_cast<int>(p));
    }
  }
  int find(const std::string& path) const {
    const auto found = items_.find(path);
    return found == items_.end() ? -1 : found->second;
  }

 private:
  std::unordered_map<std::string, int> items_;
};

PageJson series_json(const RunSeries& series) {
  PageJson steps = PageJson::array(), values = PageJson::array();
  const std::size_t count = std::min(series.steps.size(), series.values.size());
  const std::size_t stride = std::max<std::size_t>(1, (count + most_points - 1) / most_points);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % stride != 0 && i + 1 != count) continue;
    steps.push_back(series.steps[i]);
    values.push_back(finite(series.values[i]));
  }
  return {{"name", series.name},
          {"evaluation", series.is_evaluation},
          {"steps", steps},
          {"values", values}};
}

}  // namespace

MeasuredRun::MeasuredRun(std::string run, std::string trace)
    : run_(std::move(run)), trace_(std::move(trace)) {
  if (run_.empty()) return;
  read_run(run_, false);  // refuses what is no run
  if (trace_.empty()) trace_ = run_ + "/trace.json";
}

void MeasuredRun::check() const {
  if (is_there()) return;
  throw PageError{404, "not_found", "no run was given: tandem policy page ... --run RUN"};
}

PageJson MeasuredRun::measured(const ModelTree& tree, const PolicyItems& items,
                               const Graph& graph) const {
  check();
  const RunRecord record = read_run(run_, false);
  PageJson notes = PageJson::array(), by_item = PageJson::object();
  std::string source = "operators.json";
  PageJson measured = json_of_file(run_ + "/operators.json");
  if (!measured.is_object()) {
    source = "bench.json";
    measured = json_of_file(run_ + "/bench.json");
  }
  PageJson operators = PageJson::array();
  if (measured.is_object() && measured.contains("operators")) {
    operators = measured["operators"];
  } else {
    source = "";
    notes.push_back("no times of operators: tandem train --log-operators writes them");
  }
  const ItemsByPath places(tree, items, graph);
  for (const PageJson& row : operators) {
    if (!row.is_object() || !row.contains("ms") || !row["ms"].is_number()) continue;
    const int item = places.find(row.value("path", ""));
    if (item < 0) continue;
    PageJson& entry = by_item[std::to_string(item)];
    if (entry.is_null())
      entry = PageJson{{"forward_ms", 0.0}, {"backward_ms", 0.0}, {"update_ms", 0.0}};
    const std::string key = row.value("phase", "forward") + "_ms";
    if (entry.contains(key)) entry[key] = entry[key].get<double>() + row["ms"].get<double>();
  }
  PageJson timeline = trace_queues(json_of_file(trace_));
  if (timeline.is_null())
    notes.push_back("no trace: tandem train --trace " + trace_ + " writes one");
  return {{"run", run_},          {"state", run_state_name(record.state)},
          {"step", record.step},  {"operators", operators},
          {"by_item", by_item},   {"source", source},
          {"timeline", timeline}, {"notes", notes}};
}

PageJson MeasuredRun::live() const {
  check();
  const RunRecord record = read_run(run_);
  PageJson series = PageJson::array();
  for (const RunSeries& each : record.series) series.push_back(series_json(each));
  const auto steps = record.settings.find("steps");
  return {
      {"run", run_},
      {"state", run_state_name(record.state)},
      {"step", record.step},
      {"steps", steps == record.settings.end() ? PageJson()
                                               : PageJson::parse(steps->second, nullptr, false)},
      {"seconds", record.seconds},
      {"changed", record.changed},
      {"series", series}};
}

}  // namespace tandem::api
