// tandem::api::lr_range: a sweep of the learning rate over a few steps.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/commands/tune/range_test.h"
#include "api/init/guessed_run.h"
#include "api/model/model.h"
#include "api/output_file.h"
#include "api/policy/batch_size.h"
#include "api/program/tune.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/train/loop/trainer.h"
#include "placement/report/json.h"

namespace tandem::api {
namespace {

constexpr std::int64_t least_range_steps = 10, most_range_steps = 1'000'000;

void check_range(const LrRangeOptions& options) {
  std::vector<Diagnostic> problems;
  const bool is_range = std::isfinite(options.to) && options.from > 0 && options.from < options.to;
  if (!is_range) {
    problems.push_back({.message = "not a range of learning rates",
                        .file = "--lr-range",
                        .expected = "FROM,TO with 0 < FROM < TO",
                        .got = fmt::format("{:g},{:g}", options.from, options.to)});
  }
  if (options.steps < least_range_steps || options.steps > most_range_steps) {
    problems.push_back({.message = "out of range",
                        .file = "--lr-steps",
                        .expected = fmt::format("{} to {}", least_range_steps, most_range_steps),
                        .got = std::to_string(options.steps)});
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

RunConfig config_of_range(const std::string& path, const LrRangeOptions& options) {
  if (is_guessed(path)) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "a range test needs a train.toml",
                                             .file = path,
                                             .fix = "`tandem init` writes one for a model"});
  }
  RunConfig config = with_fitting_batch_size(read_run_config(path, options.overrides),
                                             {.config = path,
                                              .overrides = options.overrides,
                                              .place = options.place,
                                              .devices = options.devices},
                                             options.on_message);
  if (!config.data) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "there is no [data] table",
                           .file = config.file,
                           .fix = "add [data] with kind, train.files and fields"});
  }
  return config;
}

/// The rate rises by the same factor in each step; groups with their own rate keep their ratio to
/// it.
void sweep_rates(RunConfig& config, const LrRangeOptions& options) {
  OptimizerConfig& optimizer = config.optimizer;
  const double part = optimizer.base.lr > 0 ? options.from / optimizer.base.lr : 1;
  for (OptimizerGroup& group : optimizer.groups) {
    group.options.lr *= part;
    group.schedule.reset();
  }
  optimizer.base.lr = options.from;
  optimizer.schedule = {};
  tandem::ExponentialSchedule rising;
  rising.period = tandem::Duration{1, tandem::Duration::Unit::steps};
  rising.gamma = std::pow(options.to / options.from, 1.0 / static_cast<double>(options.steps - 1));
  optimizer.schedule.kind = rising;
  config.steps = options.steps;
  config.epochs.reset();
  config.max_seconds.reset();
}

std::string folder_of_range(const RunConfig& config, const LrRangeOptions& options) {
  const std::string folder = options.folder.empty()
                                 ? std::filesystem::path(config.file).parent_path().string()
                                 : normal_path(options.folder);
  if (!options.folder.empty() && !path_exists(folder)) make_directories(folder);
  if (is_directory(folder)) return folder;
  throw Error(ErrorKind::usage, Diagnostic{.message = "this is a file",
                                           .file = "--run-dir",
                                           .expected = "a folder for lr_range.csv and .svg",
                                           .got = folder});
}

LrRangeReport report_of_range(const RangeTest& test, const LrRangeOptions& options,
                              const std::string& config_path, const std::string& folder) {
  LrRangeReport report;
  report.steepest = test.steepest();
  report.diverged = test.diverged();
  const bool falls = std::isfinite(report.steepest), ends = std::isfinite(report.diverged);
  report.text = fmt::format("steps      {} of {}, rates {:.3g} to {:.3g}\n", test.points().size(),
                            options.steps, test.points().front().lr, test.points().back().lr);
  report.text += falls ? fmt::format("steepest   {:.3g}\n", report.steepest)
                       : std::string("steepest   nowhere: the loss does not fall\n");
  report.text += ends ? fmt::format("diverged   {:.3g}, of which a tenth is {:.3g}\n",
                                    report.diverged, report.diverged / 10)
                      : fmt::format("diverged   not up to {:.3g}\n", test.points().back().lr);
  report.text += "wrote      " + folder + "/lr_range.csv and lr_range.svg";
  if (falls)
    report.text +=
        fmt::format("\ntandem train {} optimizer.lr={:.2g}", config_path, report.steepest);
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json("nan");
  };
  nlohmann::ordered_json json{{"steepest", number(report.steepest)},
                              {"diverged", number(report.diverged)},
                              {"points", nlohmann::ordered_json::array()}};
  for (const RangePoint& point : test.points())
    json["points"].push_back(
        {{"lr", point.lr}, {"loss", number(point.loss)}, {"smoothed", number(point.smoothed)}});
  report.json = json_text(json);
  return report;
}

/// Passes the messages of a training on.
class MessageObserver final : public TrainingObserver {
 public:
  explicit MessageObserver(std::function<void(const std::string&)> on_message)
      : on_message_(std::move(on_message)) {}
  void message(const std::string& text) override {
    if (on_message_) on_message_(text);
  }

 private:
  std::function<void(const std::string&)> on_message_;
};

}  // namespace

LrRangeReport lr_range(const std::string& config_path, const LrRangeOptions& options) {
  check_range(options);
  RunConfig config = config_of_range(config_path, options);
  const std::string folder = folder_of_range(config, options);
  sweep_rates(config, options);
  const PlacingArguments placing{options.place, options.devices};
  RunPolicy policy = read_run_policy(config, placing);
  const Engine engine(policy.threads);
  ConfiguredModelOptions of_model;
  of_model.on_message = options.on_message;
  of_model.stop_requested = [&] { return options.stop.stop_requested(); };
  const auto model = std::make_shared<ConfiguredModel>(engine, config, of_model);
  ModelData model_data(model);
  PlacedModel placed(model, std::move(policy), placing, &model_data);
  DataSets data = model_data.sets();
  data.eval = nullptr;
  Training training(config, placed.run_parts(), std::move(data),
                    std::make_shared<MessageObserver>(options.on_message));

  RangeTest test;
  const auto start = std::chrono::steady_clock::now();
  training.walk(options.steps, [&](double loss, std::optional<double> lr) {
    if (!lr) {
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "the model's training_info has its own learning rate",
                             .file = config.model.file,
                             .fix = "leave --lr-range out"});
    }
    const bool goes_on = test.add(*lr, loss);
    if (options.on_progress) {
      Progress progress;
      progress.step = test.points().size();
      progress.steps = static_cast<std::uint64_t>(options.steps);
      progress.values = {{"loss", loss}, {"lr", *lr}};
      progress.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      progress.samples_per_second = static_cast<double>(config.batch_size) *
                                    static_cast<double>(progress.step) /
                                    std::max(progress.seconds, 1e-9);
      options.on_progress(progress);
    }
    return goes_on && !options.stop.stop_requested();
  });
  check_order(engine);
  write_output(folder + "/lr_range.csv", to_csv(test), "--run-dir", "step,lr,loss,smoothed");
  write_output(folder + "/lr_range.svg", to_picture(test), "--run-dir", "learning-rate range test");
  LrRangeReport report = report_of_range(test, options, config_path, folder);
  report.interrupted = options.stop.stop_requested();
  return report;
}

}  // namespace tandem::api
