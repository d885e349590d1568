// Shows where operators run, what crosses between devices, and where the policy could not be
// followed.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

/// The number of operators per device and phase.
std::string devices_table(const ReportJson& placement) {
  std::map<std::string, std::map<std::string, int>> counts;
  std::map<std::string, int> references;
  for (const ReportJson& node : list_in(placement, "nodes")) {
    const std::string device = text_in(node, "device");
    ++counts[device][text_in(node, "phase")];
    if (text_in(node, "kernel").starts_with("reference")) ++references[device];
  }
  const auto uses = placement.is_object() ? placement.find("uses") : placement.end();
  std::vector<std::vector<std::string>> rows;
  for (const ReportJson& name : list_in(placement, "devices")) {
    if (!name.is_string()) continue;
    const std::string device = name.get<std::string>();
    const std::string use = uses == placement.end() ? "" : text_in(*uses, device.c_str());
    rows.push_back({html(device), html(use)});
    for (const char* phase : {"forward", "backward", "update"})
      rows.back().push_back(number_text(counts[device][phase]));
    rows.back().push_back(number_text(references[device]));
  }
  return html_table({"Device", "Is", "Forward", "Backward", "Update", "On reference kernels"}, rows,
                    2);
}

std::string copies_table(const ReportRun& run) {
  const ReportJson& copies = list_in(run.plan, "copies");
  if (copies.empty()) return "";
  double bytes = 0;
  std::vector<CopyRow> rows;
  for (const ReportJson& copy : copies) {
    rows.push_back({text_in(copy, "value"), text_in(copy, "from"), text_in(copy, "to"),
                    text_in(copy, "phase"), number_in(copy, "bytes")});
    bytes += rows.back().bytes;
  }
  const double count = static_cast<double>(copies.size()) + number_in(run.plan, "more_copies");
  std::string text = fmt::format("<p>{} {} between devices, {} by the plan", number_text(count),
                                 count == 1 ? "copy" : "copies", bytes_text_of(bytes));
  if (const double measured = number_in(run.summary, "copied_bytes_per_step"); measured > 0)
    text += fmt::format("; {} a step were copied", bytes_text_of(measured));
  return text + ".</p>" + largest_copies(rows);
}

std::string fallen_table(const ReportJson& placement) {
  std::vector<std::vector<std::string>> rows;
  for (const ReportJson& fallen : list_in(placement, "fell_back")) {
    rows.push_back({"<span class=\"break\">" + html(text_in(fallen, "path")) + "</span>",
                    html(text_in(fallen, "attribute")), html(text_in(fallen, "requested")),
                    html(text_in(fallen, "actual")), html(text_in(fallen, "reason"))});
  }
  if (rows.empty()) return "";
  return "<details><summary>Not where the policy prefers them</summary>" +
         html_table({"Path", "Attribute", "Asked for", "Is", "Reason"}, rows) + "</details>";
}

}  // namespace

std::string largest_copies(const std::vector<CopyRow>& copies) {
  constexpr std::size_t most = 20;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < copies.size() && i < most; ++i) {
    const CopyRow& copy = copies[i];
    rows.push_back({"<span class=\"break\">" + html(copy.value) + "</span>",
                    html(copy.from) + " → " + html(copy.to), html(copy.phase),
                    bytes_text_of(copy.bytes)});
  }
  return "<details><summary>The largest copies</summary>" +
         html_table({"Value", "Way", "Phase", "Bytes"}, rows, 3) + "</details>";
}

std::string placement_section(const ReportInput& input) {
  constexpr int most_runs = 8;
  std::string text;
  int shown = 0;
  for (const ReportRun& run : input.runs) {
    if (list_in(run.placement, "devices").empty() || shown++ >= most_runs) continue;
    text += run_heading(input, run) + devices_table(run.placement) + copies_table(run) +
            fallen_table(run.placement);
  }
  return text;
}

}  // namespace tandem::api
