// Trainings whose steps have sequences of several lengths: a program for each length over the same
// states, the numbers of samples that are all padded, and resumed runs.
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

#include "engine/data/buckets/bucketed_order.h"
#include "engine/data/order/drawn_order.h"
#include "engine/graph/builder.h"
#include "tests/harness/program_check.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::difference;
using testing::error_of;
using ::testing::HasSubstr;
using testing::Trained;

constexpr std::int64_t longest = 8, sequence_count = 50;

/// x [batch, length] → logits of the sum and of the sum of squares of x, which zeros do not change.
Graph sums_of_sequences(const OperatorSet& operators, std::int64_t batch, std::int64_t length) {
  GraphBuilder g(operators);
  const ValueId x = g.input("x", {DType::float32, {batch, length}});
  const auto weighted = [&](const std::string& name, ValueId sums, float start) {
    State state;
    state.name = name + ".weight";
    state.path = name + ":weight";
    state.trainable = true;
    state.start = HostTensor::from<float>({1, 3}, std::vector<float>{start, -start, 0});
    g.set_scope({name + ".MatMul", Phase::forward, {}});
    return g.matmul(sums, g.state(std::move(state)));
  };
  g.set_scope({"sums.ReduceSum", Phase::forward, {}});
  const ValueId sum = g.reduce_sum(x, {1}, true), squares = g.reduce_sum(g.mul(x, x), {1}, true);
  const ValueId first = weighted("first", sum, 0.01f), second = weighted("second", squares, 0.02f);
  g.set_scope({"logits.Add", Phase::forward, {}});
  g.output("logits", g.add(first, second));
  return g.finish();
}

/// Samples of 1 to 8 small numbers; the label follows from their sum.
std::shared_ptr<const DataSource> short_and_long() {
  std::vector<float> x;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < sequence_count; ++i) {
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < longest; ++k) {
      const std::int64_t number = k <= i * 5 % longest ? (i + k) % 4 + 1 : 0;
      x.push_back(static_cast<float>(number));
      sum += number;
    }
    labels.push_back(sum % 3);
  }
  return make_array_source({{"x", HostTensor::from<float>({sequence_count, longest}, x)},
                            {"labels", HostTensor::from<std::int64_t>({sequence_count}, labels)}});
}

class BucketsTraining : public testing::TrainingRun {
 protected:
  BucketsTraining() {
    train_ = short_and_long();
    BucketConfig config;
    config.field = "x";
    config.lengths = {2, 5, longest};
    DataSets sets{train_, nullptr, {}};
    add_buckets(config, sets);
    buckets_ = sets.buckets;
  }

  RunParts parts() {
    RunParts parts = engine_.parts();
    testing::own_model(parts).make_graph = [this](const ForwardKey& key) {
      if (key.length == 0) return sums_of_sequences(engine_.operators, key.samples, longest);
      lengths_.insert(key.length);
      return sums_of_sequences(engine_.operators, key.samples, key.length);
    };
    return parts;
  }
  DataSets in_buckets() const { return {.train = train_, .order = order_, .buckets = buckets_}; }
  /// Those samples in the same steps, all of them padded to the longest length.
  DataSets filled_up(const RunConfig& config) const {
    const auto below = order_ ? order_ : shuffled_order(sequence_count, {});
    return {.train = train_, .order = bucketed_order(below, buckets_, config.batch_size, true)};
  }

  Trained train(const std::vector<std::string>& keys, bool cuts, std::uint64_t stop_after = 0,
                const std::string& resume = "") {
    Trained trained;
    testing::Hooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      trained.steps.push_back(p);
      done = p.step;
    };
    hooks.stop_requested = [&] { return stop_after > 0 && done >= stop_after; };
    const RunConfig config = testing::small_config(folder_.path(), keys);
    trained.training = std::make_unique<Training>(
        config, parts(), cuts ? in_buckets() : filled_up(config), hooks.observer());
    trained.result = trained.training->run(resume, {});
    return trained;
  }

  std::shared_ptr<const Buckets> buckets_;
  std::shared_ptr<const SampleOrder> order_;
  std::set<std::int64_t> lengths_;
};

TEST_F(BucketsTraining, GivesTheNumbersOfSamplesThatAreFilledUp) {
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"steps=20", "optimizer.lr=0.001"},
        {"steps=1000", "epochs=3", "optimizer.lr=0.001", "micro_batch=4"},
        {"steps=1000", "epochs=2", "optimizer.lr=0.001", "optimizer.kind=adam"}}) {
    lengths_.clear();
    const Trained cut = train(keys, true);
    EXPECT_EQ(lengths_, (std::set<std::int64_t>{2, 5, longest}));
    const Trained whole = train(keys, false);
    EXPECT_EQ(cut.all("loss"), whole.all("loss"));
    EXPECT_EQ(difference(cut.training->states(), whole.training->states()), "");
  }
}

TEST_F(BucketsTraining, WeightsOfSamplesCountInTheStepsThatTheyAreIn) {
  const std::vector<std::string> keys{"steps=1000", "epochs=2", "optimizer.lr=0.001",
                                      "micro_batch=4",
                                      testing::terms(", class_weights=[1, 2, 0.5]")};
  const Trained cut = train(keys, true), whole = train(keys, false);
  EXPECT_EQ(cut.all("loss"), whole.all("loss"));
  EXPECT_EQ(difference(cut.training->states(), whole.training->states()), "");
}

TEST_F(BucketsTraining, GoesOnAsIfItHadNeverStopped) {
  const std::vector<std::string> keys{"steps=1000", "epochs=3", "optimizer.lr=0.001",
                                      "optimizer.momentum=0.9"};
  const Trained whole = train(keys, true);
  const Trained stopped = train(keys, true, 9);
  EXPECT_TRUE(stopped.result.interrupted);
  const Trained rest = train(keys, true, 0, stopped.result.run_dir);
  EXPECT_EQ(rest.result.steps, whole.result.steps);
  EXPECT_EQ(difference(rest.training->states(), whole.training->states()), "");
}

TEST_F(BucketsTraining, KeepsItsBatchSizeWithinAnEpoch) {
  const std::vector<std::string> keys{"steps=1000", "epochs=3", "optimizer.lr=0.001"};
  const Trained stopped = train(keys, true, 9);  // an epoch has seven steps
  EXPECT_THAT(error_of([&] {
                train({"steps=1000", "epochs=3", "optimizer.lr=0.001", "batch_size=4"}, true, 0,
                      stopped.result.run_dir);
              }),
              AllOf(HasSubstr("the batch size changes between epochs only"), HasSubstr("8")));
}

// The steps of an epoch with buckets begin at multiples of the batch size.
TEST_F(BucketsTraining, BeginAtAStepOfTheEpoch) {
  const Trained first = train({"steps=1"}, false);
  train({"steps=2", "batch_size=12"}, false, 0, first.result.run_dir);
  EXPECT_THAT(error_of([&] {
                train({"steps=3", "batch_size=12"}, true, 0, first.result.run_dir);
              }),
              AllOf(HasSubstr("the batch size changes between epochs only"),
                    HasSubstr("20 samples of it read")));
}

TEST_F(BucketsTraining, SamplesMayBeDrawn) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < sequence_count; ++i) weights.push_back(static_cast<double>(i % 5));
  order_ = weighted_order(weights, 30);
  const std::vector<std::string> keys{"steps=1000", "epochs=3", "optimizer.lr=0.001"};
  const Trained cut = train(keys, true), whole = train(keys, false);
  EXPECT_EQ(cut.result.steps, 12u);  // three of 8 and one of 6 samples an epoch
  EXPECT_EQ(difference(cut.training->states(), whole.training->states()), "");
  const Trained stopped = train(keys, true, 6);
  const Trained rest = train(keys, true, 0, stopped.result.run_dir);
  EXPECT_EQ(difference(rest.training->states(), whole.training->states()), "");
}

}  // namespace
}  // namespace tandem
