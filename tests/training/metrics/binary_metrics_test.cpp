// Accuracy and mean squared error over several forms of labels; auc, auc_pr, log_loss and
// calibration of many samples against tests/data/metrics.json; the better direction of each metric.
#include "engine/metrics/metric.h"
#include "tests/harness/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace tandem {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Metric> make(std::string_view kind) {
  const MetricConfig metric = metric_of(kind);
  return metric.kind->make(metric, metric.kind->scores);
}

TEST(AccuracyTest, ClassesOnTheLastAxis) {
  const std::unique_ptr<Metric> accuracy = make("accuracy");
  accuracy->add({HostTensor::from<float>({2, 3}, {0, 2, 1, 5, 1, 1}),
                 HostTensor::from<std::int64_t>({2}, {1, 2})});
  EXPECT_DOUBLE_EQ(accuracy->value(), 0.5);
  accuracy->add({HostTensor::from<float>({1, 2, 2}, {0, 1, 1, 0}),
                 HostTensor::from<std::int64_t>({1, 2}, {1, 0})});
  EXPECT_DOUBLE_EQ(accuracy->value(), 0.75);
}

TEST(AccuracyTest, IgnoredLabelsDoNotCount) {
  const std::unique_ptr<Metric> accuracy = make("accuracy");
  accuracy->add({HostTensor::from<float>({2, 2}, {1, 0, 1, 0}),
                 HostTensor::from<std::int64_t>({2}, {-100, 0}), -100});
  EXPECT_DOUBLE_EQ(accuracy->value(), 1);
}

TEST(AccuracyTest, OneHotAndBinary) {
  const std::unique_ptr<Metric> one_hot = make("accuracy");
  one_hot->add({HostTensor::from<float>({2, 2}, {1, 0, 1, 0}),
                HostTensor::from<float>({2, 2}, {1, 0, 0, 1})});
  EXPECT_DOUBLE_EQ(one_hot->value(), 0.5);
  const std::unique_ptr<Metric> binary = make("accuracy");
  binary->add({HostTensor::from<float>({4, 1}, {1, -1, 2, -2}),
               HostTensor::from<std::int64_t>({4}, {1, 0, 0, 0})});
  EXPECT_DOUBLE_EQ(binary->value(), 0.75);
}

TEST(MeanSquaredErrorTest, CountsElements) {
  const std::unique_ptr<Metric> mse = make("mse");
  mse->add({HostTensor::from<float>({2}, {1, 3}), HostTensor::from<float>({2, 1}, {0, 0})});
  EXPECT_DOUBLE_EQ(mse->value(), 5);
}

struct BinarySamples {
  std::vector<float> logits;
  std::vector<std::int64_t> labels;
};

/// As in tests/scripts/metric_expectations.py.
BinarySamples binary_samples_of(const nlohmann::json& c) {
  const std::int64_t distinct = c["distinct"], positive = c["positive"];
  BinarySamples samples;
  for (std::int64_t i = 0; i < c["count"].get<std::int64_t>(); ++i) {
    const std::int64_t value = (i * 7919 + (i % 13) * 104729) % distinct;
    samples.logits.push_back(static_cast<float>(2 * value - distinct) / 256);
    samples.labels.push_back(((i * 48271 + 11) % 65537) * distinct <
                             65537 * (positive * distinct + value) / 4);
  }
  return samples;
}

/// The metric over all samples, added in batches of `batch`.
double value_of(const std::string& metric, const BinarySamples& samples, std::size_t batch) {
  const std::unique_ptr<Metric> m = make(metric);
  for (std::size_t first = 0; first < samples.logits.size(); first += batch) {
    const std::size_t last = std::min(samples.logits.size(), first + batch);
    const std::int64_t count = static_cast<std::int64_t>(last - first);
    m->add(
        {HostTensor::from<float>({count, 1}, {&samples.logits[first], &samples.logits[0] + last}),
         HostTensor::from<std::int64_t>({count},
                                        {&samples.labels[first], &samples.labels[0] + last})});
  }
  return m->value();
}

TEST(BinaryMetricsTest, AgreeWithScikitLearn) {
  std::ifstream file(source_folder() + "/tests/data/metrics.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 6u);
  for (const nlohmann::json& c : cases) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const BinarySamples samples = binary_samples_of(c);
    ASSERT_EQ(std::accumulate(samples.labels.begin(), samples.labels.end(), std::int64_t{0}),
              c["positives"].get<std::int64_t>());
    for (const char* metric : {"auc", "auc_pr", "log_loss", "calibration"}) {
      const double expected = c[metric];
      EXPECT_NEAR(value_of(metric, samples, 4096), expected, 1e-12 * (1 + expected)) << metric;
    }
  }
}

const char* const of_yes_and_no[] = {"accuracy",  "auc",      "auc_pr", "calibration",
                                     "f1",        "log_loss", "mae",    "mse",
                                     "precision", "r2",       "recall", "rmse"};

TEST(BinaryMetricsTest, TheSameBitsInAnyOrderAndBatch) {
  BinarySamples samples = binary_samples_of({{"count", 5000}, {"distinct", 501}, {"positive", 1}});
  std::vector<std::size_t> order(samples.logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(3);
  for (const std::size_t batch : {std::size_t{1}, std::size_t{77}, std::size_t{4999}}) {
    std::shuffle(order.begin(), order.end(), random);
    BinarySamples shuffled;
    for (const std::size_t i : order) {
      shuffled.logits.push_back(samples.logits[i]);
      shuffled.labels.push_back(samples.labels[i]);
    }
    for (const char* metric : of_yes_and_no)
      EXPECT_EQ(value_of(metric, shuffled, batch), value_of(metric, samples, 5000)) << metric;
  }
}

// Three ranks each have a part of the samples; the parts are added in the order of the ranks.
TEST(BinaryMetricsTest, PartsAddUpToTheWhole) {
  std::mt19937 random(5);
  BinarySamples samples;
  for (int i = 0; i < 1000; ++i) {
    samples.logits.push_back(static_cast<float>(random() % 200) / 64 - 1.5f);
    samples.labels.push_back(random() % 3 == 0);
  }
  for (const char* metric : of_yes_and_no) {
    const std::unique_ptr<Metric> sum = make(metric);
    std::size_t first = 0;
    for (const std::size_t count : {501u, 0u, 499u}) {
      const std::unique_ptr<Metric> part = make(metric);
      const auto n = static_cast<std::int64_t>(count);
      const auto logits = samples.logits.begin() + static_cast<std::ptrdiff_t>(first);
      const auto labels = samples.labels.begin() + static_cast<std::ptrdiff_t>(first);
      if (n > 0)
        part->add({HostTensor::from<float>({n, 1}, {logits, logits + n}),
                   HostTensor::from<std::int64_t>({n}, {labels, labels + n})});
      sum->add_sums(part->sums());
      first += count;
    }
    EXPECT_EQ(sum->value(), value_of(metric, samples, 64)) << metric;  // the same bits
  }
}

TEST(BinaryMetricsTest, AreaOrdersAllFloats) {
  const float inf = std::numeric_limits<float>::infinity();
  // Zeros of both signs are equal: their pair counts one half.
  const BinarySamples samples{{-inf, -3.5F, -1e-30F, 0.0F, -0.0F, 1e-30F, 2.0F, inf},
                              {0, 0, 0, 1, 0, 1, 1, 1}};
  EXPECT_DOUBLE_EQ(value_of("auc", samples, 3), 15.5 / 16);
}

TEST(BinaryMetricsTest, SoftLabelsAndExtremeLogits) {
  const std::unique_ptr<Metric> loss = make("log_loss");
  loss->add({HostTensor::from<float>({4}, {1000, -1000, 1000, 0.5F}),
             HostTensor::from<float>({4}, {1, 0, 0, 0.25F})});
  const double soft = std::log1p(std::exp(0.5)) - 0.25 * 0.5;
  EXPECT_NEAR(loss->value(), (1000 + soft) / 4, 1e-12);
  const std::unique_ptr<Metric> calibration = make("calibration");
  calibration->add(
      {HostTensor::from<float>({2}, {1000, -1000}), HostTensor::from<float>({2}, {0.5F, 0.5F})});
  EXPECT_DOUBLE_EQ(calibration->value(), 1);
}

TEST(BinaryMetricsTest, OneClassHasNoArea) {
  for (const std::int64_t label : {0, 1}) {
    const std::unique_ptr<Metric> auc = make("auc");
    const HostTensor labels = HostTensor::from<std::int64_t>({3}, {label, label, label});
    auc->add({HostTensor::from<float>({3}, {1, 2, 3}), labels});
    EXPECT_TRUE(std::isnan(auc->value()));
    LabelSummary all;
    all.add(labels);
    EXPECT_THAT(auc->undefined(all), HasSubstr(label == 0 ? "no label" : "all labels"));
    all.add(HostTensor::from<std::int64_t>({1}, {1 - label}));
    EXPECT_EQ(auc->undefined(all), "");
  }
  const std::unique_ptr<Metric> calibration = make("calibration");
  const HostTensor labels = HostTensor::from<std::int64_t>({2}, {0, 0});
  calibration->add({HostTensor::from<float>({2}, {1, 2}), labels});
  EXPECT_TRUE(std::isnan(calibration->value()));
  LabelSummary all;
  all.add(labels);
  EXPECT_THAT(calibration->undefined(all), HasSubstr("no label"));
  all.add(HostTensor::from<float>({1}, {0.25F}));  // soft
  EXPECT_EQ(calibration->undefined(all), "");
}

TEST(BinaryMetricsTest, NotANumberIsNotHidden) {
  const float nan = std::nanf("");
  for (const char* metric :
       {"auc", "auc_pr", "log_loss", "calibration", "mse", "rmse", "mae", "r2"}) {
    EXPECT_TRUE(std::isnan(value_of(metric, {{1, nan, 2}, {0, 1, 1}}, 3))) << metric;
  }
}

TEST(BinaryMetricsTest, AveragePrecisionNeedsPositives) {
  const std::unique_ptr<Metric> metric = make("auc_pr");
  LabelSummary all;
  all.add(HostTensor::from<std::int64_t>({2}, {0, 0}));
  EXPECT_THAT(metric->undefined(all), HasSubstr("no label is positive"));
  EXPECT_TRUE(std::isnan(value_of("auc_pr", {{1, 2}, {0, 0}}, 2)));
  EXPECT_DOUBLE_EQ(value_of("auc_pr", {{1, 2}, {1, 1}}, 2), 1);
}

TEST(MetricKindsTest, KnowTheirTerms) {
  const auto fits = [](const char* metric, const char* loss) {
    return find_metric(metric)->fits(*find_loss(loss));
  };
  EXPECT_TRUE(fits("accuracy", "softmax_cross_entropy"));
  EXPECT_TRUE(fits("accuracy", "binary_cross_entropy"));
  EXPECT_FALSE(fits("auc", "softmax_cross_entropy"));
  EXPECT_FALSE(fits("auc", "mse"));
  EXPECT_TRUE(fits("mse", "mse"));
  EXPECT_FALSE(fits("perplexity", "multi_margin"));
  EXPECT_EQ(find_metric("loss")->make, nullptr);
  for (const MetricKind& kind : all_metrics()) {
    EXPECT_EQ(find_metric(kind.name), &kind);
    EXPECT_EQ(kind.make != nullptr, (kind.scores != other_scores)) << kind.name;
    if (kind.make == nullptr) continue;
    LabelSummary none;
    EXPECT_EQ(make(kind.name)->undefined(none) != "", kind.labels != "") << kind.name;
  }
}

/// The value for a model that is always right, or always wrong.
double value_of_model(const MetricKind& kind, bool is_right) {
  const std::unique_ptr<Metric> metric = make(kind.name);
  const std::vector<std::int64_t> groups(4, 3);
  const float x = is_right ? 1 : -1;
  if ((kind.scores & (binary_scores | binary_logits | number_scores)) != 0) {
    metric->add({HostTensor::from<float>({4}, {-x, x, -x, x}),
                 HostTensor::from<float>({4}, {0, 1, 0, 1}), std::nullopt, groups});
    return metric->value();
  }
  std::vector<float> scores(4 * 7, 0);
  for (std::size_t i = 0; i < 4; ++i) scores[i * 7 + i] = x;
  metric->add(
      {HostTensor::from<float>({4, 7}, scores), HostTensor::from<std::int64_t>({4}, {0, 1, 2, 3})});
  return metric->value();
}

TEST(MetricKindsTest, BetterIsWhatARightModelHas) {
  for (const MetricKind& kind : all_metrics()) {
    if (kind.make == nullptr || kind.better == Better::neither) continue;
    const double right = value_of_model(kind, true), wrong = value_of_model(kind, false);
    EXPECT_NE(right, wrong) << kind.name;
    EXPECT_EQ(right > wrong, kind.better == Better::larger) << kind.name;
  }
}

}  // namespace
}  // namespace tandem
