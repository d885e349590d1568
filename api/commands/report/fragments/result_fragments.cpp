// What a training or an evaluation came to, in a notebook.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/page_frame.h"
#include "api/commands/report/section.h"
#include "api/program/fragments.h"
#include "engine/metrics/metric_table.h"

namespace tandem::api {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string metrics_table(const Rows& rows) {
  return rows.empty() ? "" : html_table({"Metric", "Value"}, rows, 1);
}

/// A number as `--json` writes it: those that are not finite are texts.
std::string value_cell(const ReportJson& value) {
  if (value.is_number()) return number_text(value.get<double>());
  return value.is_string() ? html(value.get<std::string>()) : "";
}

double number_of(const ReportJson& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// What `table_json` wrote.
tandem::MetricTable table_of(const std::string& metric, const ReportJson& json) {
  tandem::MetricTable table{.metric = metric};
  const bool has_words = json.is_object() && json.contains("classes") && json.contains("rows");
  table.is_matrix = json.is_array() || has_words;
  if (!table.is_matrix) {
    for (const auto& [name, value] : json.items()) {
      table.names.push_back(name);
      table.numbers.push_back(number_of(value));
    }
    return table;
  }
  const ReportJson& rows = has_words ? list_in(json, "rows") : json;
  for (const ReportJson& row : rows) {
    table.names.push_back(std::to_string(table.names.size()));
    for (const ReportJson& value : row) table.numbers.push_back(number_of(value));
  }
  const ReportJson& classes = list_in(json, "classes");
  for (std::size_t i = 0; i < classes.size() && i < table.names.size(); ++i) {
    if (classes[i].is_string()) table.names[i] = classes[i].get<std::string>();
  }
  return table;
}

tandem::MetricTable table_of(const MetricTable& table) {
  return {table.metric, table.names, table.numbers, table.is_matrix};
}

}  // namespace

std::string metric_table_html(const MetricTable& table) {
  return fragment(table_section(table_of(table)));
}

std::string evaluation_html(const EvaluationReport& evaluation) {
  const ReportJson json = ReportJson::parse(evaluation.json, nullptr, /*allow_exceptions=*/false);
  Rows rows;
  std::string tables;
  const auto metrics = json.is_object() ? json.find("metrics") : json.end();
  if (metrics != json.end() && metrics->is_object()) {
    for (const auto& [name, value] : metrics->items()) {
      if (value.is_array() || value.is_object())
        tables += table_section(table_of(name, value));
      else
        rows.push_back({html(name), value_cell(value)});
    }
  }
  return fragment("<p><span class=\"break\">" + html(text_in(json, "run")) +
                  fmt::format("</span> <span class=\"quiet\">{} samples</span></p>",
                              number_text(number_in(json, "samples"))) +
                  metrics_table(rows) + tables);
}

std::string train_result_html(const TrainResult& result) {
  Rows rows;
  if (!std::isnan(result.loss)) rows.push_back({"loss of the last step", number_text(result.loss)});
  for (const auto& [name, value] : result.evaluation)
    rows.push_back({"held-out " + html(name), number_text(value)});
  if (!result.best_metric.empty())
    rows.push_back(
        {"best " + html(result.best_metric) + fmt::format(", at step {}", result.best_step),
         "<span class=\"best\">" + number_text(result.best_value) + "</span>"});
  std::string tables;
  for (const MetricTable& table : result.tables) tables += table_section(table_of(table));
  const std::string ended = result.interrupted ? ", interrupted and saved" : "";
  return fragment(
      "<p><span class=\"break\">" + html(result.run_dir) +
      fmt::format("</span> <span class=\"quiet\">{} steps{}</span></p>", result.steps, ended) +
      metrics_table(rows) + tables);
}

}  // namespace tandem::api
