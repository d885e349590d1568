// A plan in a notebook: whether it fits, memory by device, copies, what to change.
#include <algorithm>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/page_frame.h"
#include "api/commands/report/section.h"
#include "api/program/fragments.h"
#include "engine/graph/error.h"
#include "placement/report/rule_data.h"

namespace tandem::api {
namespace {

std::string bytes_cell(std::uint64_t bytes) { return bytes_text_of(static_cast<double>(bytes)); }

std::string ms_cell(double seconds) { return number_text(seconds * 1e3, 3); }

std::string remedies_of(const Plan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (const Plan::Remedy& remedy : plan.remedies) {
    rows.push_back({"<code>" + html(remedy.text) + "</code>", remedy.suffices ? "yes" : "no",
                    bytes_cell(remedy.freed), ms_cell(remedy.seconds)});
  }
  if (rows.empty()) return "";
  return "<p>Rules that free memory, after those of the policy:</p>" +
         html_table({"Rule", "Fits", "Frees", "ms a step"}, rows, 2);
}

std::string verdict(const Plan& plan) {
  const std::string time =
      fmt::format("{} ms a step by the cost model, {} ms of them waiting for copies",
                  ms_cell(plan.seconds), ms_cell(plan.exposed_seconds));
  if (plan.fits) return "<p><b>Fits.</b> " + time + ".</p>";
  std::string text = "<p><b class=\"bad\">Does not fit.</b> " + time + ".</p>";
  for (const Diagnostic& misfit : plan.misfits)
    text += "<p class=\"bad\">" + html(to_string(misfit)) + "</p>";
  return text;
}

std::string devices_table(const Plan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (const Plan::Device& device : plan.devices) {
    rows.push_back({html(device.name), html(device.use),
                    "<span class=\"break\">" +
                        html(device.peak_at.empty() ? "start" : device.peak_at) + "</span>",
                    std::to_string(device.placed.operators), bytes_cell(device.parameters),
                    bytes_cell(device.gradients), bytes_cell(device.optimizer_states),
                    bytes_cell(device.activations), bytes_cell(device.workspace),
                    bytes_cell(device.peak), device.is_limited ? bytes_cell(device.limit) : "–"});
  }
  return html_table({"Device", "Is", "Peak at", "Operators", "Parameters", "Gradients", "State",
                     "Activations", "Workspace", "Peak", "Limit"},
                    rows, 3);
}

std::string copies_of(const Plan& plan) {
  std::vector<const Plan::Copy*> largest;
  for (const Plan::Copy& copy : plan.copies) {
    if (!copy.is_scalar) largest.push_back(&copy);
  }
  const auto bytes_a_step = [](const Plan::Copy* copy) {
    return static_cast<double>(copy->bytes) * static_cast<double>(copy->times);
  };
  std::stable_sort(largest.begin(), largest.end(),
                   [&](const auto* a, const auto* b) { return bytes_a_step(a) > bytes_a_step(b); });
  std::vector<CopyRow> rows;
  for (const Plan::Copy* copy : largest)
    rows.push_back({copy->value, copy->from, copy->to, phase_name(copy->phase),
                    static_cast<double>(copy->bytes)});
  if (rows.empty()) return "";
  return fmt::format("<p>{} {} between devices, {}{} a step.</p>", plan.traffic.copies,
                     plan.traffic.copies == 1 ? "copy" : "copies",
                     plan.traffic.is_upper_bound ? "at most " : "",
                     bytes_cell(plan.traffic.bytes)) +
         largest_copies(rows);
}

std::string exchanges_of(const Plan& plan) {
  if (plan.ranks == 1) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Plan::Exchange& exchange : plan.exchanges) {
    rows.push_back({"<span class=\"break\">" + html(exchange.path) + "</span>", html(exchange.op),
                    html(exchange.algorithm), html(exchange.device), std::to_string(exchange.times),
                    bytes_cell(exchange.bytes), ms_cell(exchange.seconds),
                    ms_cell(exchange.exposed_seconds)});
  }
  return fmt::format("<p>The plan of one of {} ranks.</p>", plan.ranks) +
         "<details><summary>What they exchange</summary>" +
         html_table({"Path", "Operation", "Algorithm", "Device", "Times", "Bytes", "ms",
                     "ms that are waited for"},
                    rows, 4) +
         "</details>";
}

std::string notes_of(const Plan& plan) {
  std::string text;
  for (const std::string& note : plan.notes) text += "<p>" + html(note) + "</p>";
  for (const Plan::Hint& hint : plan.hints) {
    if (hint.kind == Plan::Hint::Kind::memory) continue;  // the verdict says it
    const std::string place = hint.file.empty() ? "" : fmt::format("{}:{}: ", hint.file, hint.line);
    text += "<p>" + html(place + hint.message) + (hint.fix.empty() ? "" : "; " + html(hint.fix)) +
            "</p>";
  }
  return text;
}

}  // namespace

std::string plan_html(const Plan& plan) {
  return fragment(verdict(plan) + devices_table(plan) + remedies_of(plan) + copies_of(plan) +
                  exchanges_of(plan) + notes_of(plan));
}

}  // namespace tandem::api
