// tandem::api::evaluate_run: loss and metrics of a trained model over data.
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/train/on_ranks.h"
#include "api/trained/class_words.h"
#include "api/trained/compare_uses.h"
#include "api/trained/trained_data.h"
#include "engine/formats/count_text.h"
#include "engine/graph/text.h"
#include "engine/train/divergence/divergence_cause.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/group/gathered.h"
#include "placement/report/json.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

std::string joined_names(const std::vector<std::string>& files) {
  return files.empty() ? "held-out data of the configuration" : joined(files);
}

/// NaN is written without its sign.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
}

std::vector<Diagnostic> problems_of(const std::vector<std::pair<std::string, double>>& values) {
  std::vector<Diagnostic> problems;
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) continue;
    problems.push_back({.message = "the " + name + " is not finite",
                        .path = "eval",
                        .expected = "a number",
                        .got = number_text(value)});
  }
  return problems;
}

/// Finds values in the data that make a metric of a finite model not finite.
std::vector<Diagnostic> causes_in(const tandem::DataSource& source, const RunConfig& config) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(source.samples()));
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<int> fields(source.fields().size());
  std::iota(fields.begin(), fields.end(), 0);
  std::vector<Diagnostic> found = not_finite_samples(source, fields, samples, nullptr);
  for (Diagnostic& d : weightless_means(config, source, samples, "all labels"))
    found.push_back(std::move(d));
  return found;
}

EvaluationReport evaluated(const std::string& run, const TrainedOptions& options,
                           const std::shared_ptr<RankGroup>& group) {
  Rendezvous& ranks = *group->rendezvous();
  std::optional<TrainedModel> opened_model;
  std::shared_ptr<const tandem::DataSource> source;
  on_all_ranks(ranks, "model and data", [&] {
    TrainedRun opened = open_trained(run, options);
    opened.uses_held_out = options.data.empty();
    opened.placing.ranks = group;
    source =
        open_held_out(opened_model.emplace(std::move(opened), std::vector<std::string>{}), options);
  });
  TrainedModel& trained = *opened_model;
  const RunConfig& config = trained.config();
  compare_uses(*group, trained, source->samples());
  if (trained.in_stages() && options.on_message) options.on_message(trained.stages_text());
  const auto start = std::chrono::steady_clock::now();
  check_stop(options);
  RunParts parts = trained.parts();
  std::optional<Evaluation> programs;
  on_all_ranks(ranks, "programs", [&] {
    parts.words = trained_words(trained);
    programs.emplace(config, parts, source, trained.states(), trained.arenas());
    trained.load();
  });
  Evaluation& evaluation = *programs;
  std::vector<Diagnostic> of_states = trained.not_finite();
  const std::int64_t samples = source->samples();
  const auto seconds_so_far = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const Evaluation::Values values = *evaluation.run([&](std::int64_t done) {
    check_stop(options);
    if (options.on_progress) {
      const double part = static_cast<double>(done) / static_cast<double>(evaluation.own_samples());
      const double rows = part * static_cast<double>(samples);
      options.on_progress(static_cast<std::int64_t>(rows), part, rows / seconds_so_far());
    }
    return false;
  });
  check_order(trained.engine());
  if (trained.in_stages()) of_states = trained.not_finite();  // states exist only from here on
  const double seconds = seconds_so_far();

  EvaluationReport report;
  report.problems = problems_of(values);
  std::vector<Diagnostic> causes = std::move(of_states);
  if (causes.empty() && !report.problems.empty()) causes = causes_in(*source, config);
  report.problems.insert(report.problems.end(), causes.begin(), causes.end());
  report.warnings = trained.run().warnings;
  if (trained.run().uses_held_out && !trained.run().exported()) {
    for (std::string& line : compare_held_out(trained.run().used(), *config.data, samples))
      report.warnings.push_back(std::move(line));
  }
  report.text = fmt::format("{}\ndata        {}: {}\n", trained.run().text(),
                            joined_names(options.data), count_text(samples, "sample"));
  Json metrics = Json::object();
  for (const auto& [name, value] : values) {
    report.text += fmt::format("{:<11} {}\n", name, number_text(value));
    metrics[name] = std::isfinite(value) ? Json(value) : Json(number_text(value));
  }
  for (const tandem::MetricTable& table : evaluation.tables()) {
    report.text += table_text(table);
    metrics[table.metric] = Json::parse(table_json(table));
  }
  Json json{{"run", run}};
  trained.run().describe(json);
  json["samples"] = samples;
  json["metrics"] = std::move(metrics);
  json["seconds"] = seconds;
  json["warnings"] = report.warnings;
  for (const Diagnostic& d : report.problems) json["errors"].push_back(diagnostic_json(d));
  report.json = json.dump(2, ' ', false, Json::error_handler_t::replace);
  return report;
}

}  // namespace

EvaluationReport v1::evaluate_run(const std::string& run, const TrainedOptions& options) {
  return on_ranks([&](const std::shared_ptr<RankGroup>& group) {
    return evaluated(run, quiet_but_on_rank_0(options, group), group);
  });
}

}  // namespace tandem::api
