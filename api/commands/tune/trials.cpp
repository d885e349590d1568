#include "api/commands/tune/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/commands/tune/trial_pictures.h"
#include "engine/formats/files.h"
#include "engine/formats/json_file.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "placement/report/json.h"

namespace tandem::api {
namespace {

using TrialsJson = nlohmann::ordered_json;

constexpr std::string_view status_words[] = {"waiting", "interrupted", "stopped", "finished",
                                             "failed"};
constexpr const char* trials_file = "tune.json";
constexpr std::size_t longest_error = 2000;

TrialsJson trial_number(double value) {
  return std::isfinite(value) ? TrialsJson(value) : TrialsJson(fmt::format("{}", value));
}

/// A number, or "nan", "inf", "-inf".
double read_trial_number(const JsonItem& item) {
  if (const auto number = item.as_number()) return *number;
  const std::string text = item.any_text();
  if (text == "inf" || text == "-inf")
    return (text[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
  if (text != "nan" && text != "-nan") item.refuse("not a number", "a number or \"nan\"");
  return std::numeric_limits<double>::quiet_NaN();
}

TrialsJson search_json(const Search& search) {
  return {{"config", search.config},
          {"config_sha256", search.config_sha256},
          {"over", search.over},
          {"seed", search.seed},
          {"halving", search.halving},
          {"metric", search.metric},
          {"better", search.better == Better::larger ? "larger" : "smaller"}};
}

[[noreturn]] void refuse_search(const std::string& folder, const std::string& what,
                                const std::string& here, const std::string& now) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "the folder holds another search: " + what + " is not the same",
                         .file = folder + "/" + trials_file,
                         .expected = here,
                         .got = now,
                         .fix = "name another folder with --to, or continue with its settings"});
}

void expect_same_search(const std::string& folder, const JsonItem& root, const Search& search) {
  std::vector<std::string> over;
  for (const JsonItem& item : root.at("over").list()) over.push_back(item.any_text());
  const auto expect = [&](const char* what, const std::string& here, const std::string& now) {
    if (here != now) refuse_search(folder, what, here, now);
  };
  expect("--over", joined(over), joined(search.over));
  expect("--seed",
         std::to_string(root.at("seed").natural(0, std::numeric_limits<std::uint64_t>::max())),
         std::to_string(search.seed));
  expect("--halving", std::to_string(root.at("halving").natural(0, 16)),
         std::to_string(search.halving));
  expect("--metric", root.at("metric").any_text(), search.metric);
  expect("the configuration", root.at("config_sha256").sha256(), search.config_sha256);
}

void read_trial(const JsonItem& item, std::vector<Trial>& trials) {
  const std::uint64_t number = item.at("trial").natural(1);
  if (number > trials.size()) return;  // the file was written with a larger number of trials
  Trial& trial = trials[number - 1];
  const std::string status = item.at("status").any_text();
  const auto word = std::find(std::begin(status_words), std::end(status_words), status);
  if (word == std::end(status_words))
    item.at("status").refuse("no status of a trial",
                             "waiting, interrupted, stopped, finished or failed");
  for (const auto& [key, value] : trial.settings) {
    const JsonItem recorded = item.at("settings").at(key);
    if (recorded.any_text() != value) recorded.refuse("not what this search draws", value);
  }
  trial.status = static_cast<TrialStatus>(word - std::begin(status_words));
  for (const JsonItem& value : item.at("values").list())
    trial.values.push_back(read_trial_number(value));
  trial.steps = item.at("steps").natural();
  trial.seconds = item.at("seconds").number(0, 1e18);
  for (const auto& [name, value] : item.at("evaluation").object())
    trial.evaluation[name] = read_trial_number(value);
  if (const auto error = item.find("error")) trial.error = error->any_text();
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

/// Replaces line breaks in an error, since a row of the table is a line of the file.
std::string error_cell(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return csv_cell(text);
}

std::string trials_csv(const Search& search, const std::vector<Trial>& trials) {
  std::string text = "trial,status," + csv_cell(search.metric) + ",rounds,steps,seconds";
  for (const auto& [key, value] : trials.front().settings) text += "," + csv_cell(key);
  text += ",error\n";
  for (const Trial* trial : ranked(trials, search.better)) {
    text += fmt::format("{},{},{},{},{},{:.3f}", trial->number, to_text(trial->status),
                        std::isnan(trial->value()) ? "nan" : fmt::format("{}", trial->value()),
                        trial->values.size(), trial->steps, trial->seconds);
    for (const auto& [key, value] : trial->settings) text += "," + csv_cell(value);
    text += "," + error_cell(trial->error) + "\n";
  }
  return text;
}

}  // namespace

std::string_view to_text(TrialStatus status) {
  return status_words[static_cast<std::size_t>(status)];
}

std::string Trial::folder_name() const { return fmt::format("trial-{:02}", number); }

double Trial::value() const {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : values.back();
}

std::vector<const Trial*> ranked(const std::vector<Trial>& trials, Better better) {
  std::vector<const Trial*> order;
  for (const Trial& trial : trials) order.push_back(&trial);
  const auto has_value = [](const Trial& trial) {
    return trial.status != TrialStatus::failed && std::isfinite(trial.value());
  };
  std::stable_sort(order.begin(), order.end(), [&](const Trial* a, const Trial* b) {
    if (has_value(*a) != has_value(*b)) return has_value(*a);
    if (!has_value(*a)) return false;
    if (a->values.size() != b->values.size()) return a->values.size() > b->values.size();
    return better == Better::larger ? a->value() > b->value() : a->value() < b->value();
  });
  return order;
}

void read_trials(const std::string& folder, const Search& search, std::vector<Trial>& trials) {
  const std::string path = folder + "/" + trials_file;
  if (!path_exists(folder)) return;
  if (!is_directory(folder)) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "this is a file",
                                             .file = "--to",
                                             .expected = "a folder for the trials",
                                             .got = folder});
  }
  if (!path_exists(path)) {
    if (list_directory(folder).empty()) return;
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "the folder holds other files, and no search",
                           .file = "--to",
                           .expected = "an empty folder, or one with tune.json",
                           .got = folder,
                           .fix = "name another folder with --to"});
  }
  const JsonFile file(path);
  const JsonItem root = file.root();
  expect_same_search(folder, root, search);
  for (const JsonItem& item : root.at("trials").list()) read_trial(item, trials);
}

std::string trials_json(const Search& search, const std::vector<Trial>& trials,
                        const std::string& command) {
  TrialsJson json = search_json(search);
  json["command"] = command;
  json["trials"] = TrialsJson::array();
  for (const Trial& trial : trials) {
    TrialsJson item{{"trial", trial.number},
                    {"folder", trial.folder_name()},
                    {"status", to_text(trial.status)},
                    {"settings", TrialsJson::object()},
                    {"value", trial_number(trial.value())},
                    {"values", TrialsJson::array()},
                    {"steps", trial.steps},
                    {"seconds", trial.seconds},
                    {"evaluation", TrialsJson::object()}};
    for (const auto& [key, value] : trial.settings) item["settings"][key] = value;
    for (const double value : trial.values) item["values"].push_back(trial_number(value));
    for (const auto& [name, value] : trial.evaluation)
      item["evaluation"][name] = trial_number(value);
    if (!trial.error.empty()) item["error"] = trial.error.substr(0, longest_error);
    json["trials"].push_back(std::move(item));
  }
  return json_text(json);
}

std::string trials_text(const Search& search, const std::vector<Trial>& trials) {
  const std::vector<const Trial*> order = ranked(trials, search.better);
  std::vector<std::size_t> widths;
  for (const auto& [key, value] : trials.front().settings) widths.push_back(key.size());
  for (const Trial& trial : trials) {
    for (std::size_t k = 0; k < widths.size(); ++k)
      widths[k] = std::max(widths[k], trial.settings[k].second.size());
  }
  const int metric_width = static_cast<int>(std::max<std::size_t>(search.metric.size(), 10));
  std::string text = fmt::format("trial  {:<{}}  {:>8}", search.metric, metric_width, "steps");
  for (std::size_t k = 0; k < widths.size(); ++k)
    text += fmt::format("  {:<{}}", trials.front().settings[k].first, widths[k]);
  text += "\n";
  for (const Trial* trial : order) {
    if (trial->status == TrialStatus::waiting && trial->values.empty()) continue;
    const std::string value = std::isnan(trial->value()) || trial->status == TrialStatus::failed
                                  ? std::string(to_text(trial->status))
                                  : fmt::format("{:.6g}", trial->value());
    text += fmt::format("{:>5}  {:<{}}  {:>8}", trial->number, value, metric_width, trial->steps);
    for (std::size_t k = 0; k < widths.size(); ++k)
      text += fmt::format("  {:<{}}", trial->settings[k].second, widths[k]);
    if (!trial->error.empty())
      text += "  " + trial->error.substr(0, std::min<std::size_t>(trial->error.find('\n'), 200));
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text;
}

void write_trials(const std::string& folder, const Search& search, const std::vector<Trial>& trials,
                  const std::string& command) {
  replace_file(folder + "/" + trials_file, trials_json(search, trials, command) + "\n");
  replace_file(folder + "/tune.csv", trials_csv(search, trials));
  replace_file(folder + "/tune.svg", trials_picture(search, trials));
}

}  // namespace tandem::api
