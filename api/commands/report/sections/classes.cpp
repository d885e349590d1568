// Metrics with many numbers at the last evaluation: confusion matrices, numbers by class or slice.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/commands/report/chart.h"
#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

constexpr std::size_t most_classes = 25;

/// Cells are shaded by their share of the row: the part of a label's samples that got this
/// prediction.
std::string matrix_html(const tandem::MetricTable& table) {
  const std::size_t n = table.names.size();
  std::string head = "<tr><td></td>", rows;
  for (const std::string& name : table.names) head += "<th scope=\"col\">" + html(name) + "</th>";
  for (std::size_t label = 0; label < n; ++label) {
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) all += std::max(0.0, table.numbers[label * n + i]);
    rows += "<tr><th scope=\"row\">" + html(table.names[label]) + "</th>";
    for (std::size_t i = 0; i < n; ++i) {
      const double value = table.numbers[label * n + i];
      const double part = all > 0 && value > 0 ? value / all : 0;
      rows += fmt::format("<td style=\"--part:{:.3f}\">{}</td>", part,
                          value == 0 ? "" : number_text(value));
    }
    rows += "</tr>";
  }
  return "<div class=\"table\"><table class=\"matrix\"><caption class=\"quiet\">Rows are labels, "
         "columns predictions; shaded by the part of the row.</caption><thead>" +
         head + "</tr></thead><tbody>" + rows + "</tbody></table></div>";
}

/// For a large matrix: lists the most frequent mistakes.
std::string mistakes_html(const tandem::MetricTable& table) {
  constexpr std::size_t most = 30;
  const std::size_t n = table.names.size();
  std::vector<std::size_t> cells;
  for (std::size_t i = 0; i < n * n; ++i) {
    if (i / n != i % n && table.numbers[i] > 0) cells.push_back(i);
  }
  const std::size_t shown = std::min(most, cells.size());
  std::partial_sort(
      cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(shown), cells.end(),
      [&](std::size_t a, std::size_t b) {
        return table.numbers[a] != table.numbers[b] ? table.numbers[a] > table.numbers[b] : a < b;
      });
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < shown; ++i)
    rows.push_back({html(table.names[cells[i] / n]), html(table.names[cells[i] % n]),
                    number_text(table.numbers[cells[i]])});
  return fmt::format("<p class=\"quiet\">{} classes: the mistakes that are made most often.</p>",
                     n) +
         html_table({"Label", "Prediction", "Samples"}, rows, 2);
}

std::string by_class_html(const tandem::MetricTable& table) {
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < table.names.size(); ++i)
    bars.push_back({table.names[i], "", table.numbers[i]});
  const auto worse = [](const Bar& a, const Bar& b) {
    return std::isnan(a.value) ? false : std::isnan(b.value) || a.value < b.value;
  };
  std::string note;
  if (bars.size() > most_classes) {
    std::stable_sort(bars.begin(), bars.end(), worse);
    note = fmt::format("<p class=\"quiet\">The least {} of {}.</p>", most_classes, bars.size());
    bars.resize(most_classes);
  }
  return bar_chart(table.metric, bars, "") + note;
}

}  // namespace

std::string table_section(const tandem::MetricTable& table) {
  if (table.names.empty()) return "";
  if (!table.is_matrix) return by_class_html(table);
  return "<figure><figcaption><h3>" + html(table.metric) +
         "</h3> <span class=\"unit\">samples of the last evaluation</span></figcaption>" +
         (table.names.size() <= most_classes ? matrix_html(table) : mistakes_html(table)) +
         "</figure>";
}

std::string classes_section(const ReportInput& input) {
  std::string text;
  for (const ReportRun& run : input.runs) {
    std::string tables;
    for (const tandem::MetricTable& table : run.record.tables) tables += table_section(table);
    if (!tables.empty())
      text += run_heading(input, run) + "<div class=\"charts\">" + tables + "</div>";
  }
  return text;
}

}  // namespace tandem::api
