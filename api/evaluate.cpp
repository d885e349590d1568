// tandem::api::evaluate_run: loss and metrics of a trained model over data.
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/trained_data.h"
#include "engine/training/evaluation.h"

namespace tandem::api {
namespace {

std::string names_of(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : ", ") + file;
  return text.empty() ? "held-out data of the configuration" : text;
}

}  // namespace

Report evaluate_run(const std::string& run, const TrainedOptions& options) {
  TrainedModel trained(open_trained(run, options), {});
  const RunConfig& config = trained.config();
  const auto source = open_held_out(trained, options);
  const auto start = std::chrono::steady_clock::now();
  check_stop(options);
  Evaluation evaluation(config, trained.parts(), source, trained.states(), trained.arenas());
  trained.load();
  const std::int64_t samples = source->samples();
  const auto seconds_so_far = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto values = evaluation.run([&](std::int64_t done) {
    check_stop(options);
    if (!options.on_progress) return;
    const auto rows = static_cast<double>(done);
    options.on_progress(done, rows / static_cast<double>(samples), rows / seconds_so_far());
  });
  check_order(trained.engine());
  const double seconds = seconds_so_far();

  Report report;
  report.warnings = trained.run().warnings;
  report.text = fmt::format("{}\ndata        {}: {} samples\n", trained.run().text(),
                            names_of(options.data), samples);
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) {
    report.text += fmt::format("{:<11} {:.6g}\n", name, value);
    metrics[name] = value;
  }
  nlohmann::ordered_json json{{"run", run}};
  trained.run().describe(json);
  json["samples"] = samples;
  json["metrics"] = std::move(metrics);
  json["seconds"] = seconds;
  json["warnings"] = report.warnings;
  report.json = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return report;
}

}  // namespace tandem::api
