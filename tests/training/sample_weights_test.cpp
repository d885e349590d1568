// Weights of samples in whole trainings: a sample of weight 2 counts like two, one of weight 0 like
// none, whatever the micro-batches of a step.
#include "tests/training/training_run.h"

#include "engine/train/divergence/check_integers.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::expect_near;
using ::testing::HasSubstr;
using testing::terms;
using testing::Trained;

const std::string weighted = ", sample_weights=\"weights\"";

std::vector<std::int64_t> first_samples(std::int64_t count) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < count; ++i) order.push_back(i);
  return order;
}

/// The small network's data with these weights; `times` instead: that many copies of each sample.
std::shared_ptr<const DataSource> data_with(const std::vector<float>& weights,
                                            const std::vector<int>& times = {},
                                            bool holes = false) {
  const auto count = static_cast<std::int64_t>(weights.size());
  const std::shared_ptr<const DataSource> all = testing::small_data(count, 3, holes);
  std::vector<std::int64_t> chosen;
  std::vector<float> of_chosen;
  for (const std::int64_t sample : first_samples(count)) {
    const auto i = static_cast<std::size_t>(sample);
    for (int n = times.empty() ? 1 : times[i]; n > 0; --n) {
      chosen.push_back(sample);
      of_chosen.push_back(times.empty() ? weights[i] : 1);
    }
  }
  const auto samples = static_cast<std::int64_t>(chosen.size());
  HostTensor x(TensorType{DType::float32, {samples, 6}});
  HostTensor labels(TensorType{DType::int64, {samples}});
  all->fill(0, chosen, nullptr, x.data());
  all->fill(1, chosen, nullptr, labels.data());
  return make_array_source(
      {{"x", x}, {"labels", labels}, {"weights", HostTensor::from<float>({samples}, of_chosen)}});
}

/// 22 weights from 0 to 3: steps of 8, 8 and 6 samples.
std::vector<float> some_weights() {
  std::vector<float> weights;
  for (int i = 0; i < 22; ++i) weights.push_back(static_cast<float>(i * 5 % 7) / 2);
  return weights;
}

class SampleWeights : public testing::TrainingRun {
 protected:
  void expect_micro_batches_add_up(const std::string& options, bool holes) {
    train_ = data_with(some_weights(), {}, holes);
    const std::vector<std::string> keys{"epochs=2", terms(weighted + options), "optimizer.lr=0.02"};
    const Trained whole = run(keys);
    for (const char* size : {"4", "1"}) {
      std::vector<std::string> split = keys;
      split.push_back(std::string("micro_batch=") + size);
      const Trained parts = run(split);
      ASSERT_EQ(parts.steps.size(), whole.steps.size());
      for (std::size_t i = 0; i < whole.steps.size(); ++i) {
        EXPECT_NEAR(parts.all("loss")[i], whole.all("loss")[i], 1e-6 * whole.all("loss")[i])
            << size << " step " << i + 1;
      }
      expect_near(parts.training->states(), whole.training->states(), 1e-6);
    }
  }
};

TEST_F(SampleWeights, MicroBatchesEqualTheWholeBatch) { expect_micro_batches_add_up("", false); }
TEST_F(SampleWeights, MicroBatchesAddUpToSums) {
  expect_micro_batches_add_up(", reduction=\"sum\"", false);
}
TEST_F(SampleWeights, MicroBatchesEqualTheWholeBatchWithClassWeights) {
  expect_micro_batches_add_up(", class_weights=[0.5, 2.0, 1.0], ignore_index=-1", true);
}

TEST_F(SampleWeights, MicroBatchesAddUpToAMeanOverSamples) {
  expect_micro_batches_add_up(", reduction=\"batchmean\"", false);
}

// The sum divided by the number of samples: 8, 8 and 6.
TEST_F(SampleWeights, DoNotCountInBatchmean) {
  train_ = eval_ = data_with(some_weights());
  const auto losses_of = [&](const char* reduction) {
    return run(
        {"epochs=1", terms(weighted + ", reduction=\"" + reduction + "\""), "optimizer.lr=0.0"});
  };
  const Trained sum = losses_of("sum"), mean = losses_of("batchmean");
  const std::vector<double> samples{8, 8, 6};
  ASSERT_EQ(mean.steps.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double wanted = sum.all("loss")[i] / samples[i];
    EXPECT_NEAR(mean.all("loss")[i], wanted, 1e-6 * wanted) << i;
  }
  const double evaluated = Trained::value(sum.evaluations.back(), "loss") / 22;
  EXPECT_NEAR(Trained::value(mean.evaluations.back(), "loss"), evaluated, 1e-6 * evaluated);
}

// Steps without weight have a loss of 0, and the run continues.
TEST_F(SampleWeights, ThatAreAllZeroAddNothingToBatchmean) {
  train_ = data_with(std::vector<float>(8, 0));
  for (const char* micro_batch : {"micro_batch=4", "micro_batch=2"}) {
    const Trained trained = run(
        {"epochs=1", "batch_size=4", micro_batch, terms(weighted + ", reduction=\"batchmean\"")});
    ASSERT_EQ(trained.steps.size(), 2u) << micro_batch;
    EXPECT_EQ(trained.all("loss")[0], 0) << micro_batch;
    EXPECT_EQ(trained.all("loss")[1], 0) << micro_batch;
  }
}

TEST_F(SampleWeights, AreCopiesOfSamples) {
  const std::vector<float> weights{1, 2, 0, 3, 1, 0};
  const std::vector<int> times{1, 2, 0, 3, 1, 0};
  for (const std::string& options : {std::string(), std::string(", reduction=\"sum\""),
                                     std::string(", class_weights=[0.5, 2.0, 1.0]")}) {
    train_ = eval_ = data_with(weights);
    const Trained by_weight = run({"steps=3", "batch_size=6", terms(weighted + options)});
    train_ = eval_ = data_with(weights, times);
    const Trained by_copies = run({"steps=3", "batch_size=7", terms(options)});
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(by_weight.all("loss")[i], by_copies.all("loss")[i],
                  2e-6 * by_copies.all("loss")[i])
          << options << i;
    expect_near(by_weight.training->states(), by_copies.training->states(), 1e-5);
    ASSERT_EQ(by_weight.evaluations.size(), 1u);
    const double loss = Trained::value(by_copies.evaluations[0], "loss");
    EXPECT_NEAR(Trained::value(by_weight.evaluations[0], "loss"), loss, 2e-6 * loss) << options;
  }
}

TEST_F(SampleWeights, ThatAreAllZeroAreNamed) {
  train_ = data_with(std::vector<float>(8, 0));
  EXPECT_THAT(testing::error_text([&] { run({terms(weighted)}); }),
              AllOf(HasSubstr("the loss is not finite at step 1"),
                    HasSubstr("is 0 / 0: the sample weights of all of them are 0"),
                    HasSubstr("got sample_weights with zeros")));
}

TEST_F(SampleWeights, BelowZeroAreRefused) {
  const std::shared_ptr<const DataSource> data = data_with({1, 1, -0.5, 1, 1, 1, 1, 1});
  const RunConfig config = testing::small_config(folder_.path(), {terms(weighted)});
  const Graph forward = testing::small_network(engine_.operators, 8);
  EXPECT_THAT(testing::error_text([&] { check_integer_fields(config, forward, *data); }),
              AllOf(HasSubstr("-0.5"), HasSubstr("a weight of the loss term \"loss\""),
                    HasSubstr("a finite number from 0 on")));
}

}  // namespace
}  // namespace tandem
