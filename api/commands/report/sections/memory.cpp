// Memory in use during a step, device by device, by the plan of the run.
#include <algorithm>

#include <fmt/format.h>

#include "api/commands/report/chart.h"
#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

std::vector<double> numbers_in(const ReportJson& object, const char* key) {
  std::vector<double> numbers;
  for (const ReportJson& value : list_in(object, key))
    numbers.push_back(value.is_number() ? value.get<double>() : 0);
  return numbers;
}

StackedChart memory_chart(const ReportJson& plan, const ReportJson& device) {
  StackedChart chart{.title = text_in(device, "name"),
                     .unit = "bytes in use",
                     .x_name = "operation of the step, in order of launch"};
  constexpr std::size_t most_points = 4000;  // runs write a tenth of that
  chart.x = numbers_in(device, "at");
  chart.x.resize(std::min(chart.x.size(), most_points));
  const auto layer = [&](const char* name, std::vector<double> values) {
    values.resize(chart.x.size(), 0);
    if (std::any_of(values.begin(), values.end(), [](double value) { return value > 0; }))
      chart.layers.push_back({name, std::move(values)});
  };
  if (chart.x.empty()) chart.x = {0, std::max(1.0, number_in(plan, "launches"))};
  const auto all_along = [&](const char* key) {
    return std::vector<double>(chart.x.size(), number_in(device, key));
  };
  layer("parameters", all_along("parameters"));
  layer("optimizer state", all_along("state"));
  layer("gradients", numbers_in(device, "gradients"));
  layer("activations", numbers_in(device, "activations"));
  layer("workspace", numbers_in(device, "workspace"));
  for (const ReportJson& path : list_in(device, "paths"))
    chart.notes.push_back(path.is_string() ? path.get<std::string>() : "");
  chart.notes.resize(chart.x.size());
  for (const ReportJson& phase : list_in(plan, "phases"))
    chart.marks.push_back({number_in(phase, "from"), text_in(phase, "phase")});
  return chart;
}

}  // namespace

std::string memory_section(const ReportInput& input) {
  constexpr int most_runs = 4;
  std::string text;
  int shown = 0;
  for (const ReportRun& run : input.runs) {
    if (!run.plan.is_object() || shown == most_runs) continue;
    std::string charts;
    for (const ReportJson& device : list_in(run.plan, "devices")) {
      if (number_in(device, "peak") <= 0) continue;
      const StackedChart chart = memory_chart(run.plan, device);
      if (chart.layers.empty()) continue;
      charts += stacked_chart(chart);
    }
    if (charts.empty()) continue;
    ++shown;
    text += run_heading(input, run) + "<div class=\"charts\">" + charts + "</div>";
  }
  if (text.empty()) return "<p>This run has no plan.json, which training writes at its start.</p>";
  return text +
         "<p class=\"quiet\">What the plan allocates for one step, or for the micro-batch that "
         "contains the update. Inputs, outputs and constants are not in it.</p>";
}

}  // namespace tandem::api
