// The most important numbers of each run.
#include <algorithm>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/report/section.h"

namespace tandem::api {
namespace {

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  if (seconds == 0 || ::localtime_r(&time, &parts) == nullptr) return "–";
  char text[32];
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts) > 0 ? text : "–";
}

std::string model_name(const RunRecord& run) {
  return run.model.empty() ? "–" : html(std::filesystem::path(run.model).filename().string());
}

std::string state_text(const RunRecord& run) {
  const std::string name = run_state_name(run.state);
  return run.state == RunState::diverged ? "<span class=\"bad\">" + name + "</span>" : name;
}

std::string optional_number(const std::optional<double>& value) {
  return value ? number_text(*value) : "–";
}

std::string fact(const std::string& name, const std::string& value, const std::string& note = "") {
  const std::string small = note.empty() ? "" : "<small>" + note + "</small>";
  return "<div><dt>" + name + "</dt><dd>" + value + small + "</dd></div>";
}

std::string facts_of(const RunRecord& run) {
  std::string facts = fact("State", state_text(run));
  facts += fact("Steps", number_text(static_cast<double>(run.step)));
  facts += fact("Training time", duration_text(run.seconds));
  facts += fact("Loss", optional_number(run.loss), "of the last logged step");
  if (run.best)
    facts += fact("Best " + html(run.best->metric), number_text(run.best->value),
                  fmt::format("at step {}", number_text(static_cast<double>(run.best->step))));
  constexpr std::size_t most = 6;
  for (std::size_t i = 0; i < run.evaluation.size() && i < most; ++i)
    facts += fact("Held-out " + html(run.evaluation[i].first),
                  number_text(run.evaluation[i].second), "at last");
  return "<dl class=\"facts\">" + facts +
         "</dl><p class=\"quiet\" style=\"margin-top:14px\">Model " + model_name(run) +
         ", written last " + time_text(run.changed) + ".</p>";
}

/// Metrics that at least one run has, in the order of first occurrence.
std::vector<std::string> metrics_of(const ReportInput& input) {
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  for (const ReportRun& run : input.runs) {
    for (const auto& [name, value] : run.record.evaluation) {
      if (names.size() < most && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  return names;
}

std::string table_of(const ReportInput& input) {
  std::vector<std::string> head{"Run", "Model", "State", "Steps", "Training time", "Loss", "Best"};
  const std::vector<std::string> metrics = metrics_of(input);
  for (const std::string& name : metrics) head.push_back("Held-out " + html(name));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < input.runs.size(); ++i) {
    const RunRecord& run = input.runs[i].record;
    // The checkbox is hidden until the script, which it needs, shows it.
    std::vector<std::string> row{
        fmt::format("<label class=\"c{} break\"><input type=\"checkbox\" data-run=\"{}\" checked "
                    "hidden><i class=\"key\" aria-hidden=\"true\"></i> {}</label>",
                    i % 8, i, html(input.runs[i].label)),
        model_name(run),
        state_text(run),
        number_text(static_cast<double>(run.step)),
        duration_text(run.seconds),
        optional_number(run.loss),
        run.best ? fmt::format("<span class=\"best\">{}</span> <small>{}, step {}</small>",
                               number_text(run.best->value), html(run.best->metric),
                               number_text(static_cast<double>(run.best->step)))
                 : "–"};
    for (const std::string& name : metrics) {
      const auto found = std::find_if(run.evaluation.begin(), run.evaluation.end(),
                                      [&](const auto& value) { return value.first == name; });
      row.push_back(found == run.evaluation.end() ? "–" : number_text(found->second));
    }
    rows.push_back(std::move(row));
  }
  return html_table(head, rows, 3);
}

}  // namespace

std::string overview_section(const ReportInput& input) {
  std::string text = input.is_one() ? facts_of(input.runs[0].record) : table_of(input);
  for (const ReportRun& run : input.runs) {
    if (run.record.bad_lines == 0) continue;
    text += fmt::format(
        "<p class=\"bad\">{}: {} line{} of metrics.jsonl cannot be read and {} left out.</p>",
        html(run.label), run.record.bad_lines, run.record.bad_lines == 1 ? "" : "s",
        run.record.bad_lines == 1 ? "is" : "are");
  }
  return text;
}

}  // namespace tandem::api
