// tandem runs and tandem diff: lists runs and compares two of them.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>

#include "api/commands/report/html.h"
#include "api/commands/runs/run_record.h"
#include "api/program/runs.h"
#include "engine/config/keys/changed_keys.h"
#include "engine/formats/files.h"
#include "engine/formats/tokenizer/utf8.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

using RunJson = nlohmann::ordered_json;

/// Numbers that are not finite become texts, as in metrics.jsonl.
RunJson json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string json_text_of(const RunJson& json) {
  return json.dump(2, ' ', false, RunJson::error_handler_t::replace);
}

std::string age_text(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s ago", std::max<std::int64_t>(seconds, 0));
  if (seconds < 7200) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

/// Columns are as wide as their widest cell; those from `first_number` on are aligned at the right.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::size_t first_number) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < first_number ? row[i] + gap : gap + row[i]);
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string best_text(const RunRecord& run) {
  if (run.best)
    return fmt::format("{} {} at step {}", run.best->metric, number_text(run.best->value),
                       run.best->step);
  if (run.evaluation.empty()) return "";
  const auto& [name, value] = run.evaluation.back();
  return fmt::format("{} {}", name, number_text(value));
}

RunJson run_json(const RunRecord& run) {
  RunJson json{{"name", run.name},
               {"path", run.path},
               {"model", run.model},
               {"state", run_state_name(run.state)},
               {"step", run.step}};
  if (run.loss) json["loss"] = json_number(*run.loss);
  json["evaluation"] = RunJson::object();
  for (const auto& [name, value] : run.evaluation) json["evaluation"][name] = json_number(value);
  if (run.best) {
    json["best"] = {{"metric", run.best->metric},
                    {"value", json_number(run.best->value)},
                    {"step", run.best->step}};
  }
  json["seconds"] = run.seconds;
  json["changed"] = run.changed;
  return json;
}

/// The folder that contains the runs.
std::string folder_of_runs(const std::string& folder) {
  const std::string named = folder.empty() ? "." : folder;
  if (!is_directory(named)) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "there is no such folder",
                                             .file = named,
                                             .expected = "a folder with run directories",
                                             .fix = "tandem runs FOLDER"});
  }
  const std::string inside = named + "/runs";
  return is_directory(inside) ? inside : named;
}

std::string optional_text(const std::optional<double>& value) {
  return value ? number_text(*value, 6) : "-";
}

/// A result of two runs, by name.
struct RunResult {
  std::string name, a, b, difference;
};

std::vector<RunResult> results_of(const RunRecord& a, const RunRecord& b) {
  std::vector<RunResult> results;
  const auto number = [&](const std::string& name, const std::optional<double>& x,
                          const std::optional<double>& y) {
    const bool have_both = x && y && std::isfinite(*x) && std::isfinite(*y);
    results.push_back(
        {name, optional_text(x), optional_text(y),
         have_both ? fmt::format("{}{}", *y > *x ? "+" : "", number_text(*y - *x, 3)) : ""});
  };
  results.push_back({"state", run_state_name(a.state), run_state_name(b.state), ""});
  number("step", static_cast<double>(a.step), static_cast<double>(b.step));
  number("seconds", a.seconds, b.seconds);
  number("loss", a.loss, b.loss);
  std::vector<std::string> names;
  for (const RunRecord* run : {&a, &b}) {
    for (const auto& [name, value] : run->evaluation) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  const auto in = [](const RunRecord& run, const std::string& name) -> std::optional<double> {
    for (const auto& [key, value] : run.evaluation) {
      if (key == name) return value;
    }
    return std::nullopt;
  };
  for (const std::string& name : names) number("held-out " + name, in(a, name), in(b, name));
  if (a.best || b.best) {
    const auto best = [](const RunRecord& run) -> std::optional<double> {
      return run.best ? std::optional(run.best->value) : std::nullopt;
    };
    const std::string& metric = a.best ? a.best->metric : b.best->metric;
    const bool is_same = !a.best || !b.best || a.best->metric == b.best->metric;
    if (is_same) number("best " + metric, best(a), best(b));
  }
  return results;
}

using RunSettings = std::map<std::string, std::string>;

bool have_same_policy(const RunRecord& a, const RunRecord& b) {
  const auto text = [](const RunRecord& run) {
    const std::string path = run.path + "/policy.toml";
    return path_exists(path) ? read_file(path) : std::string();
  };
  return text(a) == text(b);
}

}  // namespace

Report list_runs(const std::string& folder) {
  const std::string where = folder_of_runs(folder);
  Report report;
  std::vector<RunRecord> runs;
  for (const std::string& name : list_directory(where)) {
    const std::string path = where + "/" + name;
    if (!is_run(path)) continue;
    try {
      runs.push_back(read_run(path, /*with_series=*/false));
    } catch (const Error& error) {
      report.warnings.push_back(printable(path + ": " + error.what()));
    }
  }
  std::stable_sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.name > b.name;
  });
  std::vector<std::vector<std::string>> rows{
      {"run", "model", "state", "best", "steps", "loss", "time", "written"}};
  RunJson json{{"folder", where}, {"runs", RunJson::array()}};
  const std::int64_t now = std::time(nullptr);
  for (const RunRecord& run : runs) {
    rows.push_back({printable(run.name),
                    printable(std::filesystem::path(run.model).filename().string()),
                    run_state_name(run.state), printable(best_text(run)), std::to_string(run.step),
                    run.loss ? number_text(*run.loss) : "-", duration_text(run.seconds),
                    age_text(now - run.changed)});
    json["runs"].push_back(run_json(run));
  }
  report.text = runs.empty() ? "no runs in " + printable(where) + "\n" : text_table(rows, 4);
  report.json = json_text_of(json);
  return report;
}

Report compare_runs(const std::string& a, const std::string& b) {
  const RunRecord first = read_run(a, /*with_series=*/false);
  const RunRecord second = read_run(b, /*with_series=*/false);
  const RunSettings &then = first.settings, &now = second.settings;
  std::set<std::string> keys;
  for (const auto* settings : {&then, &now}) {
    for (const auto& [key, value] : *settings) keys.insert(key);
  }
  std::vector<std::vector<std::string>> rows;
  RunJson changed = RunJson::object();
  for (const std::string& key : keys) {
    const auto in = [&key = key](const auto& settings) {
      const auto found = settings.find(key);
      return found == settings.end() ? std::string() : found->second;
    };
    const std::string x = in(then), y = in(now);
    if (x == y) continue;
    const auto shown = [](const std::string& value) {
      return value.empty() ? std::string("-") : printable(value);
    };
    rows.push_back({"  " + printable(key), shown(x), shown(y)});
    changed[key] = {x.empty() ? RunJson(nullptr) : RunJson(x),
                    y.empty() ? RunJson(nullptr) : RunJson(y)};
  }
  const bool same_policy = have_same_policy(first, second);
  Report report;
  report.text =
      rows.empty() ? "configuration: the same\n" : "configuration\n" + text_table(rows, 3);
  if (!same_policy)
    report.text += fmt::format(
        "policy.toml differs: tandem policy diff {0}/policy.toml {1}/policy.toml --config "
        "{1}/train.resolved.toml\n",
        printable(first.path), printable(second.path));
  std::vector<std::vector<std::string>> results{
      {"  ", printable(first.name), printable(second.name), ""}};
  for (const RunResult& result : results_of(first, second))
    results.push_back({"  " + printable(result.name), result.a, result.b, result.difference});
  report.text += "result\n" + text_table(results, 1);
  const RunJson json{{"configuration", changed},
                     {"same_policy", same_policy},
                     {"runs", {run_json(first), run_json(second)}}};
  report.json = json_text_of(json);
  return report;
}

}  // namespace tandem::api
