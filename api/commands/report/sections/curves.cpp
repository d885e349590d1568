// Curves over steps: losses and metrics, rates and gradients, throughput.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "api/commands/report/chart.h"
#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

bool is_rate(const std::string& name) {
  return name == "lr" || name == "gradient_norm" || name == "loss_scale" ||
         name == "skipped_steps" || name.starts_with("norm.");
}
bool is_of_throughput(const std::string& name) {
  return name == "samples_per_second" || name == "data.wait" || name.starts_with("ranks.");
}

ChartLine line_of(const ReportInput& input, std::size_t run, const RunSeries& series,
                  const std::string& name) {
  ChartLine line;
  line.name = input.is_one() ? name : input.runs[run].label + (name.empty() ? "" : ", " + name);
  line.run = static_cast<int>(run);
  line.is_dotted = series.is_evaluation;
  line.x = series.steps;
  line.y = series.values;
  return line;
}

/// A loss that falls by much needs a logarithmic axis to show differences at its end.
AxisKind axis_for(const std::vector<ChartLine>& lines) {
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  for (const ChartLine& line : lines) {
    for (const double value : line.y) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
  }
  return least > 0 && greatest > 50 * least ? AxisKind::logarithmic : AxisKind::linear;
}

/// A metric of all runs, in training and over held-out data.
Chart chart_of(const ReportInput& input, const std::string& name, const std::string& title,
               const std::string& unit) {
  Chart chart{.title = title, .unit = unit};
  for (std::size_t i = 0; i < input.runs.size(); ++i) {
    const RunRecord& run = input.runs[i].record;
    const RunSeries *const training = run.find(name, false), *const held_out = run.find(name, true);
    const bool tells = training != nullptr && held_out != nullptr;
    if (training != nullptr)
      chart.lines.push_back(
          line_of(input, i, *training, tells || input.is_one() ? "training" : ""));
    if (held_out != nullptr) chart.lines.push_back(line_of(input, i, *held_out, "held out"));
  }
  chart.y_axis = axis_for(chart.lines);
  if (chart.y_axis == AxisKind::logarithmic)
    chart.unit += chart.unit.empty() ? "logarithmic" : ", logarithmic";
  return chart;
}

/// Names of the wanted series over all runs, in the order of first occurrence; "loss" first.
template <class IsWanted>
std::vector<std::string> names_of_series(const ReportInput& input, const IsWanted& is_wanted) {
  std::vector<std::string> names;
  for (const ReportRun& run : input.runs) {
    for (const RunSeries& series : run.record.series) {
      if (is_wanted(series.name) &&
          std::find(names.begin(), names.end(), series.name) == names.end())
        names.push_back(series.name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& n) { return n == "loss"; });
  return names;
}

std::string charts(const std::string& all) {
  return all.empty() ? "" : "<div class=\"charts\">" + all + "</div>";
}

/// Norms of one type for all parameters in one chart, as many as there are colours.
std::string norms_chart(const ReportInput& input, const std::string& kind,
                        const std::string& title) {
  constexpr std::size_t most = 8;
  Chart chart{.title = title, .unit = "root of the sum of squares"};
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < input.runs.size(); ++i) {
    for (const RunSeries& series : input.runs[i].record.series) {
      if (!series.name.starts_with(kind)) continue;
      if (chart.lines.size() == most)
        ++left_out;
      else
        chart.lines.push_back(line_of(input, i, series, series.name.substr(kind.size())));
    }
  }
  if (left_out > 0) chart.unit += fmt::format("; {} more are in metrics.jsonl", left_out);
  chart.y_axis = axis_for(chart.lines);
  return line_chart(chart, 1);
}

}  // namespace

std::string curves_section(const ReportInput& input) {
  constexpr std::size_t most = 40;
  const std::vector<std::string> names = names_of_series(
      input, [](const std::string& name) { return !is_rate(name) && !is_of_throughput(name); });
  std::string all;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    const std::string title = names[i] == "loss" ? "Loss" : names[i];
    all +=
        line_chart(chart_of(input, names[i], title, names[i] == "loss" ? "mean over samples" : ""),
                   input.count());
  }
  if (all.empty()) {
    return names.empty() ? "<p>No step has been logged yet.</p>"
                         : "<p>No loss and no metric that was logged is finite.</p>";
  }
  const std::string more =
      names.size() > most
          ? fmt::format("<p class=\"quiet\">{} more are in metrics.jsonl.</p>", names.size() - most)
          : "";
  return charts(all) + more;
}

std::string rates_section(const ReportInput& input) {
  constexpr std::pair<const char*, const char*> known[] = {
      {"lr", "Learning rate"},
      {"gradient_norm", "Norm of all gradients"},
      {"loss_scale", "Loss scale"},
      {"skipped_steps", "Skipped steps"}};
  std::string all;
  for (const auto& [name, title] : known) {
    const std::string unit = std::string(name) == "gradient_norm" ? "before clipping" : "";
    all += line_chart(chart_of(input, name, title, unit), input.count());
  }
  all += norms_chart(input, "norm.gradient.", "Norms of gradients");
  all += norms_chart(input, "norm.update.", "Norms of updates");
  return charts(all);
}

std::string throughput_section(const ReportInput& input) {
  std::string all =
      line_chart(chart_of(input, "samples_per_second", "Samples", "per second"), input.count());
  Chart wait = chart_of(input, "data.wait", "Waiting for data", "% of the time of steps");
  wait.y_axis = AxisKind::linear;
  wait.unit = "% of the time of steps";
  for (ChartLine& line : wait.lines) {
    for (double& value : line.y) value *= 100;
  }
  return charts(all + line_chart(wait, input.count()));
}

}  // namespace tandem::api
