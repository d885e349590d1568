// A test fixture that runs whole trainings of the small network and keeps what they report.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"
#include "tests/training/test_hooks.h"

namespace tandem::testing {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Trained {
  std::unique_ptr<Training> training;
  TrainingResult result;
  std::vector<TrainingProgress> steps, evaluations;
  std::vector<std::string> messages;

  static double value(const TrainingProgress& progress, const std::string& name) {
    for (const auto& [key, number] : progress.values) {
      if (key == name) return number;
    }
    ADD_FAILURE() << "no " << name;
    return std::nan("");
  }
  std::vector<double> all(const std::string& name) const {
    std::vector<double> values;
    for (const TrainingProgress& p : steps) values.push_back(value(p, name));
    return values;
  }
};

class TrainingRun : public ::testing::Test {
 protected:
  /// Runs to the end, or until `stop_after` steps are done. `resume` is a run directory.
  Trained run(const std::vector<std::string>& keys, std::uint64_t stop_after = 0,
              const std::string& resume = "") {
    Trained run;
    Hooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      (p.evaluation ? run.evaluations : run.steps).push_back(p);
      done = p.step;
    };
    hooks.on_message = [&](const std::string& text) { run.messages.push_back(text); };
    hooks.stop_requested = [&] { return stop_after > 0 && done >= stop_after; };
    run.training = std::make_unique<Training>(small_config(folder_.path(), keys), engine_.parts(),
                                              DataSets{train_, eval_}, hooks.observer());
    run.result = run.training->run(resume, {});
    return run;
  }

  TemporaryFolder folder_;
  SmallEngine engine_;
  std::shared_ptr<const DataSource> train_ = small_data(22, 3), eval_;
};

/// One softmax_cross_entropy term with more keys: `, ignore_index=-1`.
inline std::string terms(const std::string& options) {
  return "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
         "labels=\"labels\"" +
         options + "}]";
}

// `tolerance` is relative to the largest number of the tensor.
inline void expect_near(StateStore& a, StateStore& b, double tolerance) {
  for (const auto& [name, x] : states_of(a)) {
    if (name.ends_with("/gradient_sum")) continue;
    ASSERT_TRUE(b.has(name)) << name;
    const HostTensor y = b.read(name);
    double largest = 0, worst = 0;
    for (std::int64_t i = 0; i < x.type().elements(); ++i) {
      largest = std::max(largest, std::abs(y.number(i)));
      worst = std::max(worst, std::abs(x.number(i) - y.number(i)));
    }
    EXPECT_LE(worst, tolerance * largest) << name;
  }
}

/// Lines of metrics.jsonl without times.
inline std::vector<nlohmann::json> metrics_of(const std::string& run_dir) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : lines_of(run_dir + "/metrics.jsonl")) {
    nlohmann::json json = nlohmann::json::parse(line);
    json.erase("wall");
    json.erase("samples_per_second");
    json.erase("data.wait");
    for (const char* time : {"ranks.slowest", "ranks.slowest_seconds", "ranks.median_seconds"})
      json.erase(time);
    lines.push_back(std::move(json));
  }
  return lines;
}

}  // namespace tandem::testing
