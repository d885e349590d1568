// The list of a report's sections, and the code that they share.
#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

constexpr ReportSection all_sections[] = {
    {"overview", "Overview", overview_section},
    {"curves", "Loss and metrics", curves_section},
    {"rates", "Learning rate and gradients", rates_section},
    {"throughput", "Throughput", throughput_section},
    {"memory", "Memory over a step", memory_section},
    {"time", "Time by operator", time_section},
    {"placement", "Placement and copies", placement_section},
    {"classes", "Classes", classes_section},
    {"configuration", "Configuration", configuration_section},
};

}  // namespace

std::span<const ReportSection> report_sections() { return all_sections; }

double number_in(const ReportJson& object, const char* key) {
  if (!object.is_object()) return 0;
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_in(const ReportJson& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const ReportJson& list_in(const ReportJson& object, const char* key) {
  static const ReportJson nothing = ReportJson::array();
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : nothing;
}

std::string html_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows,
                       std::size_t first_number) {
  const auto kind = [&](std::size_t column) {
    return column >= first_number ? " class=\"number\"" : "";
  };
  std::string text = "<div class=\"table\"><table><thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i)
    text += fmt::format("<th scope=\"col\"{}>{}</th>", kind(i), head[i]);
  text += "</tr></thead><tbody>";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      text += fmt::format("<td{}>{}</td>", kind(i), row[i]);
    text += "</tr>";
  }
  return text + "</tbody></table></div>";
}

std::string run_heading(const ReportInput& input, const ReportRun& run) {
  return input.is_one() ? "" : "<p><b>" + html(run.label) + "</b></p>";
}

}  // namespace tandem::api
