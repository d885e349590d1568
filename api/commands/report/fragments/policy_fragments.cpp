// Where a policy places something, or what a search has found, in a notebook.
#include <algorithm>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/page_frame.h"
#include "api/commands/report/section.h"
#include "api/program/fragments.h"

namespace tandem::api {
namespace {

using Rows = std::vector<std::vector<std::string>>;

ReportJson parsed(const Report& report) {
  return ReportJson::parse(report.json, nullptr, /*allow_exceptions=*/false);
}

std::string path_cell(const std::string& path) {
  return "<span class=\"break\">" + html(path) + "</span>";
}

const ReportJson& object_in(const ReportJson& json, const char* key) {
  static const ReportJson nothing = ReportJson::object();
  if (!json.is_object()) return nothing;
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : nothing;
}

/// Without the columns in which every cell is empty.
std::string table_of_known(const std::vector<std::string>& head, const Rows& rows) {
  std::vector<std::string> shown_head;
  Rows shown(rows.size());
  for (std::size_t column = 0; column < head.size(); ++column) {
    if (std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row[column].empty(); }))
      continue;
    shown_head.push_back(head[column]);
    for (std::size_t i = 0; i < rows.size(); ++i) shown[i].push_back(rows[i][column]);
  }
  return html_table(shown_head, shown);
}

std::string decisions_table(const Explanation& explanation) {
  Rows rows;
  for (const Decision& decision : explanation.decisions) {
    rows.push_back({html(name(decision.attribute)), html(decision.value), html(decision.reason),
                    html(decision.requested), html(decision.why_not)});
  }
  if (rows.empty()) return "";
  return table_of_known({"Attribute", "Is", "Because of", "Asked for", "Reason"}, rows);
}

/// "12 operators, 3 parameters"
std::string counts_text(const ReportJson& counts) {
  std::string text;
  for (const char* kind : {"operators", "parameters", "buffers", "added"}) {
    const double count = number_in(counts, kind);
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  }
  return text;
}

std::string rule_text(const ReportJson& rule) {
  if (!rule.is_object()) return "default";
  return fmt::format("{}:{} {}", text_in(rule, "file"), number_in(rule, "line"),
                     text_in(rule, "at"));
}

std::string groups_table(const ReportJson& json) {
  Rows rows;
  for (const ReportJson& group : list_in(json, "groups")) {
    std::string selectors;
    for (const ReportJson& at : list_in(group, "at")) {
      if (at.is_string()) selectors += (selectors.empty() ? "" : ", ") + at.get<std::string>();
    }
    const std::string value = text_in(group, "value"), requested = text_in(group, "requested");
    rows.push_back({html(text_in(group, "attribute")), html(value),
                    html(rule_text(object_in(group, "rule"))), html(counts_text(group)),
                    path_cell(selectors), requested == value ? "" : html(requested),
                    html(text_in(group, "fell_back"))});
  }
  if (rows.empty()) return "";
  return table_of_known({"Attribute", "Is", "Because of", "Of", "Which are", "Asked for", "Reason"},
                        rows);
}

std::string nodes_table(const ReportJson& json) {
  Rows rows;
  for (const ReportJson& node : list_in(json, "nodes")) {
    rows.push_back({html(text_in(node, "phase")), html(text_in(node, "op")),
                    path_cell(text_in(node, "path")), html(text_in(node, "device")),
                    html(text_in(node, "kernel")), html(text_in(node, "reason")),
                    number_text(number_in(node, "ms"), 3)});
  }
  if (rows.empty()) return "";
  return "<details><summary>In a step</summary>" +
         html_table({"Phase", "Operator", "Path", "Device", "Kernel", "Because of", "ms"}, rows,
                    6) +
         "</details>";
}

std::vector<std::string> placement_row(const std::string& name, const ReportJson& plan) {
  std::string peaks;
  for (const auto& [device, memory] : object_in(plan, "devices").items()) {
    peaks += fmt::format("{}{} {}", peaks.empty() ? "" : ", ", device,
                         bytes_text_of(number_in(memory, "peak")));
  }
  const auto fits = plan.find("fits");
  const bool does_fit = fits != plan.end() && fits->is_boolean() && fits->get<bool>();
  return {html(name), does_fit ? "yes" : "no", html(peaks), number_text(number_in(plan, "step_ms")),
          bytes_text_of(number_in(plan, "transfer_bytes"))};
}

}  // namespace

std::string explanation_html(const Explanation& explanation) {
  const ReportJson json = parsed(explanation);
  return fragment("<p><b class=\"break\">" + html(explanation.path) +
                  "</b> <span class=\"quiet\">" + html(text_in(json, "kind")) + "</span></p>" +
                  decisions_table(explanation) + groups_table(json) + nodes_table(json));
}

std::string found_policy_html(const Report& found) {
  const ReportJson json = parsed(found);
  std::string rules;
  for (const ReportJson& rule : list_in(json, "auto")) {
    if (rule.is_string()) rules += html(rule.get<std::string>()) + "\n";
  }
  Rows rows;
  if (const ReportJson& before = object_in(json, "before"); !before.empty())
    rows.push_back(placement_row("as it was", before));
  rows.push_back(placement_row("found", object_in(json, "after")));
  for (const ReportJson& baseline : list_in(json, "baselines"))
    rows.push_back(placement_row(text_in(baseline, "name"), baseline));
  return fragment(
      "<pre><code>" + rules + "</code></pre>" +
      html_table({"Placement", "Fits", "Memory", "ms a step", "Between devices"}, rows, 3) +
      fmt::format("<p class=\"quiet\">{} placements compared by the cost model.</p>",
                  number_text(number_in(json, "plans"))));
}

}  // namespace tandem::api
