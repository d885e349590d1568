// The settings of one run, or those in which several differ.
#include <set>

#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

std::string code(const std::string& text) { return "<code>" + html(text) + "</code>"; }

}  // namespace

std::string configuration_section(const ReportInput& input) {
  std::set<std::string> keys;
  for (const ReportRun& run : input.runs) {
    for (const auto& [key, value] : run.record.settings) keys.insert(key);
  }
  if (keys.empty()) return "<p>There is no train.resolved.toml, or it cannot be read.</p>";
  std::vector<std::string> head{"Key"};
  for (const ReportRun& run : input.runs)
    head.push_back(input.is_one() ? "Value" : html(run.label));
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : keys) {
    std::vector<std::string> row{code(key)};
    std::set<std::string> values;
    for (const ReportRun& run : input.runs) {
      const auto found = run.record.settings.find(key);
      const std::string value = found == run.record.settings.end() ? "" : found->second;
      values.insert(value);
      row.push_back(value.empty() ? "–" : code(value));
    }
    if (input.is_one() || values.size() > 1) rows.push_back(std::move(row));
  }
  if (rows.empty()) return "<p>All runs have the same settings.</p>";
  const std::string table = html_table(head, rows);
  if (!input.is_one()) return "<p class=\"quiet\">Keys in which the runs differ.</p>" + table;
  return "<details><summary>All keys</summary>" + table + "</details>";
}

}  // namespace tandem::api
