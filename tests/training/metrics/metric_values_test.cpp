// Every metric against scikit-learn's and PyTorch's numbers (tests/data/metric_values.json), over
// shuffled batches and over ranks; samples without a metric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "engine/train/evaluation/evaluated_metrics.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

struct Samples {
  HostTensor values, labels;
  std::vector<std::int64_t> groups;
  LossTerm term;

  std::int64_t count() const { return labels.shape()[0]; }
};

Samples samples_of(const Json& json) {
  Samples samples;
  samples.values =
      HostTensor::from<float>(json["shape"].get<Shape>(), json["values"].get<std::vector<float>>());
  const Shape shape = json["label_shape"].get<Shape>();
  samples.labels =
      json["integer_labels"].get<bool>()
          ? HostTensor::from<std::int64_t>(shape, json["labels"].get<std::vector<std::int64_t>>())
          : HostTensor::from<float>(shape, json["labels"].get<std::vector<float>>());
  if (json.contains("groups")) samples.groups = json["groups"].get<std::vector<std::int64_t>>();
  samples.term.kind = find_loss(json["loss"].get<std::string>());
  return samples;
}

HostTensor chosen(const HostTensor& all, std::span<const std::int64_t> samples) {
  TensorType type = all.type();
  const std::size_t bytes = all.bytes() / static_cast<std::size_t>(type.shape[0]);
  type.shape[0] = static_cast<std::int64_t>(samples.size());
  HostTensor some(std::move(type));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::memcpy(static_cast<char*>(some.data()) + i * bytes,
                static_cast<const char*>(all.data()) + static_cast<std::size_t>(samples[i]) * bytes,
                bytes);
  }
  return some;
}

/// The result of a metric.
struct Measured {
  std::optional<double> number;
  MetricTable table;

  bool operator==(const Measured& other) const {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    const std::vector<double>&a = table.numbers, &b = other.table.numbers;
    return number.has_value() == other.number.has_value() &&
           (!number || same(*number, *other.number)) && table.names == other.table.names &&
           std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
  }
};

class OneMetric {
 public:
  OneMetric(const std::string& keys, const Samples& samples,
            std::optional<std::int64_t> ignore_index)
      : samples_(samples), ignore_index_(ignore_index) {
    const RunConfig config = parse_run_config(
        "model = \"m.onnx\"\nsteps = 4\noptimizer = { kind = \"sgd\" }\neval = { metrics = [ { " +
            keys + " } ] }\n",
        "/folder/train.toml");
    config_ = config.eval.metrics[0];
    metric_ = {&config_, &samples_.term};
    if (!config_.by.empty()) {
      const std::set<std::int64_t> different(samples.groups.begin(), samples.groups.end());
      metric_.slice_field = 0;
      metric_.slices.assign(different.begin(), different.end());
    }
  }

  const MetricConfig& config() const { return config_; }

  /// The metric over these samples, added batch by batch.
  std::unique_ptr<Metric> over(const std::vector<std::int64_t>& order, std::size_t batch) const {
    std::unique_ptr<Metric> metric = metric_.make();
    for (std::size_t first = 0; first < order.size(); first += batch) {
      const auto part = std::span(order).subspan(first, std::min(batch, order.size() - first));
      std::vector<std::int64_t> groups;
      for (const std::int64_t sample : part) {
        if (!samples_.groups.empty())
          groups.push_back(samples_.groups[static_cast<std::size_t>(sample)]);
      }
      metric->add({chosen(samples_.values, part), chosen(samples_.labels, part), ignore_index_,
                   groups, groups});
    }
    return metric;
  }
  /// The metric over these samples, added up from what each rank has of them.
  std::unique_ptr<Metric> over_ranks(const std::vector<std::int64_t>& order,
                                     const std::vector<std::size_t>& ends) const {
    std::unique_ptr<Metric> sum = metric_.make();
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      const std::vector<std::int64_t> own(order.begin() + static_cast<std::ptrdiff_t>(first),
                                          order.begin() + static_cast<std::ptrdiff_t>(end));
      sum->add_sums(over(own, 4)->sums());
      first = end;
    }
    return sum;
  }
  Measured measured(Metric& metric) const {
    if (is_one_number(config_)) return {metric.value(), {}};
    return {std::nullopt, metric.table()};
  }
  std::string unfit() const {
    return metric_.make()->unfit(samples_.values.type(), samples_.labels.type());
  }

 private:
  Samples samples_;
  std::optional<std::int64_t> ignore_index_;
  MetricConfig config_;
  EvaluatedMetric metric_;
};

std::vector<double> flat_numbers(const Json& expected) {
  std::vector<double> numbers;
  for (const Json& one : expected) {
    if (one.is_array()) {
      for (const double number : flat_numbers(one)) numbers.push_back(number);
    } else {
      numbers.push_back(one.is_null() ? std::nan("") : one.get<double>());
    }
  }
  return numbers;
}

void expect_as(const Json& expected, const Measured& found) {
  if (expected.is_number()) {
    ASSERT_TRUE(found.number);
    EXPECT_NEAR(*found.number, expected.get<double>(),
                1e-12 * (1 + std::abs(expected.get<double>())));
    return;
  }
  const std::vector<double> wanted = flat_numbers(expected);
  EXPECT_EQ(found.table.is_matrix, expected[0].is_array());
  EXPECT_EQ(found.table.names.size(), expected.size());
  ASSERT_EQ(found.table.numbers.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(found.table.numbers[i])) << i;
    else
      EXPECT_NEAR(found.table.numbers[i], wanted[i], 1e-12) << i;
  }
}

Json all_values() {
  std::ifstream file(source_folder() + "/tests/data/metric_values.json");
  return Json::parse(file);
}

TEST(MetricValuesTest, AreThoseOfOtherLibrariesInAnyOrder) {
  const Json values = all_values();
  ASSERT_GE(values["cases"].size(), 90u);
  std::mt19937 random(7);
  for (const Json& c : values["cases"]) {
    const std::string name = c["samples"].get<std::string>();
    const std::string keys = c["metric"].get<std::string>();
    SCOPED_TRACE(name + ": " + keys);
    const Samples samples = samples_of(values["samples"][name]);
    std::optional<std::int64_t> ignore_index;
    if (c.contains("ignore_index")) ignore_index = c["ignore_index"].get<std::int64_t>();
    const OneMetric metric(keys, samples, ignore_index);
    EXPECT_EQ(metric.unfit(), "");
    std::vector<std::int64_t> order(static_cast<std::size_t>(samples.count()));
    std::iota(order.begin(), order.end(), 0);
    const Measured whole = metric.measured(*metric.over(order, order.size()));
    expect_as(c["expected"], whole);
    for (const std::size_t batch : {1u, 4u}) {
      std::shuffle(order.begin(), order.end(), random);
      EXPECT_EQ(metric.measured(*metric.over(order, batch)), whole) << batch;  // the same bits
    }
    const std::size_t half = order.size() / 2;
    for (const std::vector<std::size_t>& ends :
         {std::vector<std::size_t>{half, order.size()}, {0, half + 1, half + 1, order.size()}})
      EXPECT_EQ(metric.measured(*metric.over_ranks(order, ends)), whole) << ends.size();
  }
}

TEST(MetricValuesTest, EachMetricAndOptionHasACase) {
  const Json values = all_values();
  std::string of_cases;
  for (const Json& c : values["cases"]) of_cases += c["metric"].get<std::string>() + "\n";
  for (const MetricKind& kind : all_metrics()) {
    const bool is_elsewhere =  // in metrics.json
        kind.name == "loss" || kind.name == "log_loss" || kind.name == "calibration";
    const std::string head = "kind = '" + std::string(kind.name) + "'";
    EXPECT_TRUE(is_elsewhere || of_cases.find(head) != std::string::npos) << kind.name;
    for (const KeyInfo& option : kind.options.keys()) {
      EXPECT_NE(of_cases.find(head + ", " + std::string(option.path) + " ="), std::string::npos)
          << kind.name << " " << option.path;
    }
  }
}

TEST(MetricValuesTest, OfNoSamplesIsANumberOrNone) {
  const Json values = all_values();
  for (const char* keys : {"kind = 'accuracy'", "kind = 'f1', average = 'macro'", "kind = 'iou'",
                           "kind = 'recall', average = 'micro'", "kind = 'top_5'"}) {
    const OneMetric metric(keys, samples_of(values["samples"]["classes"]), {});
    EXPECT_EQ(metric.over({}, 1)->value(), 0) << keys;
    EXPECT_EQ(metric.over_ranks({}, {0, 0})->value(), 0) << keys;
  }
  for (const char* keys :
       {"kind = 'perplexity'", "kind = 'bits_per_token'", "kind = 'bits_per_byte'"}) {
    const OneMetric metric(keys, samples_of(values["samples"]["classes"]), {});
    EXPECT_TRUE(std::isnan(metric.over({}, 1)->value())) << keys;
  }
  for (const char* keys : {"kind = 'auc'", "kind = 'auc_pr'", "kind = 'gauc', group = 'group'"}) {
    const OneMetric metric(keys, samples_of(values["samples"]["binary"]), {});
    EXPECT_TRUE(std::isnan(metric.over({}, 1)->value())) << keys;
  }
  const OneMetric confusion("kind = 'confusion'", samples_of(values["samples"]["binary"]), {});
  EXPECT_TRUE(confusion.over({}, 1)->table().numbers.empty());
  const OneMetric slices("kind = 'accuracy', by = 'group'",
                         samples_of(values["samples"]["classes"]), {});
  const MetricTable none = slices.over({}, 1)->table();
  ASSERT_EQ(none.numbers.size(), 4u);
  for (const double number : none.numbers) EXPECT_TRUE(std::isnan(number));
}

TEST(MetricValuesTest, ALabelWithoutANumberIsNotAmongTheGreatest) {
  const MetricConfig metric = metric_of("top_5");
  const std::unique_ptr<Metric> top = metric.kind->make(metric, class_scores);
  const float nan = std::nanf("");
  top->add({HostTensor::from<float>({1, 6}, {nan, 1, 1, 1, 1, 1}),
            HostTensor::from<std::int64_t>({1}, {0})});
  EXPECT_EQ(top->value(), 0);
  // Among six equal scores the last one is not one of the first five.
  top->add({HostTensor::from<float>({2, 6}, std::vector<float>(12, 1)),
            HostTensor::from<std::int64_t>({2}, {5, 4})});
  EXPECT_DOUBLE_EQ(top->value(), 1.0 / 3);
}

TEST(MetricValuesTest, GroupsOfOneClassHaveNone) {
  const MetricConfig config = metric_of("gauc");
  const std::unique_ptr<Metric> gauc = config.kind->make(config, binary_scores);
  const HostTensor labels = HostTensor::from<std::int64_t>({4}, {0, 0, 1, 1});
  const std::vector<std::int64_t> apart{1, 1, 2, 2}, mixed{1, 2, 1, 2};
  LabelSummary all;
  all.add(labels, apart);
  EXPECT_EQ(gauc->undefined(all), "no group has labels of both classes");
  gauc->add({HostTensor::from<float>({4}, {1, 2, 3, 4}), labels, std::nullopt, apart});
  EXPECT_TRUE(std::isnan(gauc->value()));
  all.add(labels, mixed);
  EXPECT_EQ(gauc->undefined(all), "");
  const std::unique_ptr<Metric> nan = config.kind->make(config, binary_scores);
  nan->add({HostTensor::from<float>({4}, {1, 2, std::nanf(""), 4}), labels, std::nullopt, mixed});
  EXPECT_TRUE(std::isnan(nan->value()));
}

TEST(MetricValuesTest, RegressionNeedsLabelsThatDiffer) {
  const MetricConfig config = metric_of("r2");
  const std::unique_ptr<Metric> r2 = config.kind->make(config, number_scores);
  LabelSummary all;
  EXPECT_NE(r2->undefined(all), "");
  all.add(HostTensor::from<float>({2}, {3, 3}));
  EXPECT_EQ(r2->undefined(all), "all labels are equal");
  r2->add({HostTensor::from<float>({2}, {1, 2}), HostTensor::from<float>({2}, {3, 3})});
  EXPECT_TRUE(std::isnan(r2->value()));
  all.add(HostTensor::from<float>({1}, {4}));
  EXPECT_EQ(r2->undefined(all), "");
}

TEST(MetricValuesTest, TypesThatDoNotFitAreTold) {
  const Json values = all_values();
  const auto unfit = [&](const char* samples, const char* keys) {
    return OneMetric(keys, samples_of(values["samples"][samples]), {}).unfit();
  };
  EXPECT_THAT(unfit("classes", "kind = 'f1'"), ::testing::HasSubstr("average"));
  EXPECT_EQ(unfit("binary", "kind = 'f1'"), "");
  EXPECT_THAT(unfit("classes", "kind = 'top_k', k = 6"), ::testing::HasSubstr("more than 6"));
  EXPECT_EQ(unfit("classes", "kind = 'top_5'"), "");
  EXPECT_THAT(unfit("classes", "kind = 'recall', by = 'group'"), ::testing::HasSubstr("average"));
  const MetricConfig config = metric_of("confusion");
  const TensorType many{DType::float32, {2, 1001}}, labels{DType::int64, {2}};
  EXPECT_THAT(config.kind->make(config, class_scores)->unfit(many, labels),
              ::testing::HasSubstr("1000"));
}

}  // namespace
}  // namespace tandem
