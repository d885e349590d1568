// Steps and micro-batches in which no label of a mean counts: what is reported before the first
// step, and what the other steps do.
#include "engine/train/divergence/label_checks.h"

#include "engine/data/order/sample_order.h"
#include "engine/graph/builder.h"
#include "engine/train/divergence/check_integers.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::expect_near;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::terms;
using testing::Trained;

class WeightlessSteps : public testing::TrainingRun {
 protected:
  /// The small network's data, but labels at places from `first` to before `end` of the first epoch
  /// are -1.
  void leave_out(std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> all(22);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    HostTensor x(TensorType{DType::float32, {22, 6}}), labels(TensorType{DType::int64, {22}});
    const std::shared_ptr<const DataSource> data = testing::small_data(22, 3);
    data->fill(0, all, nullptr, x.data());
    data->fill(1, all, nullptr, labels.data());
    std::vector<float> weights(22, 1);
    for (std::int64_t i = first; i < end; ++i) {
      const auto sample = static_cast<std::size_t>(order()[static_cast<std::size_t>(i)]);
      labels.as<std::int64_t>()[sample] = -1;
      weights[sample] = 0;
    }
    train_ = make_array_source(
        {{"x", x}, {"labels", labels}, {"weights", HostTensor::from<float>({22}, weights)}});
  }
  std::vector<std::int64_t> order() const {
    return epoch_order(22, {}, testing::small_config(folder_.path(), {}).seed, 0);
  }
  std::vector<std::string> keys(const std::string& options,
                                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"epochs=1", terms(options)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// The warning about the first `steps` steps of a configuration; "" if there is none.
  std::string told(const std::string& options, std::int64_t steps,
                   const std::vector<std::string>& more = {}) {
    return weightless_steps(testing::small_config(folder_.path(), keys(options, more)), {}, *train_,
                            order(), steps);
  }
};

constexpr const char* ignoring = ", ignore_index=-1";

TEST_F(WeightlessSteps, AreToldBeforeTheFirstStep) {
  leave_out(8, 16);  // the second of three steps
  EXPECT_THAT(told(ignoring, 100),
              AllOf(HasSubstr("no label counts in 1 of the first 3 steps of an epoch, the first of "
                              "them 2: the mean of such a step is 0 / 0, as PyTorch's"),
                    HasSubstr("a larger batch_size, reduction = \"sum\"")));
  EXPECT_EQ(told(ignoring, 1), "");  // the run ends before it
  EXPECT_EQ(told(ignoring + std::string(", reduction=\"sum\""), 100), "");
  leave_out(8, 15);
  EXPECT_EQ(told(ignoring, 100), "");
}

TEST_F(WeightlessSteps, OfSampleWeightsAndOfTheLastStep) {
  leave_out(16, 22);
  EXPECT_THAT(told(", sample_weights=\"weights\", ignore_index=-5", 100),
              HasSubstr("1 of the first 3 steps of an epoch, the first of them 3"));
  EXPECT_THAT(told(ignoring, 100), HasSubstr("the first of them 3"));
}

TEST_F(WeightlessSteps, EndTheRunThere) {
  leave_out(8, 16);
  EXPECT_THAT(testing::error_text([&] { run(keys(ignoring)); }),
              AllOf(HasSubstr("the loss is not finite at step"),
                    HasSubstr("is 0 / 0: ignore_index leaves out all of them")));
}

// torch.nn.CrossEntropyLoss(ignore_index=-1) inside the model.
TEST_F(WeightlessSteps, OfALossInsideTheModel) {
  leave_out(8, 16);
  const auto told_of = [&](bool is_mean) {
    GraphBuilder b(engine_.operators);
    b.set_scope({"c.SoftmaxCrossEntropyLoss", Phase::forward, {}});
    const ValueId x = b.input("x", {DType::float32, {8, 3}});
    const ValueId labels = b.input("labels", {DType::int64, {8}});
    const ValueId weights = b.add_node("LabelWeights", {labels, {}},
                                       {{"ignore_index", std::int64_t{-1}},
                                        {"ignore", std::int64_t{1}},
                                        {"classes", std::int64_t{3}}});
    const ValueId losses = b.node("SoftmaxCrossEntropy", {x, labels, weights})[0];
    const ValueId sum = b.reduce_sum(losses, {0}, false);
    b.output("loss", is_mean ? b.div(sum, b.reduce_sum(weights, {0}, false)) : sum);
    const RunConfig config = testing::small_config(folder_.path(), {"epochs=1"});
    return weightless_steps(config, label_means(b.finish()), *train_, order(), 100);
  };
  EXPECT_THAT(told_of(true),
              HasSubstr("of the loss at c.SoftmaxCrossEntropyLoss no label counts in "
                        "1 of the first 3 steps"));
  EXPECT_EQ(told_of(false), "");  // a sum is 0 then
}

// A micro-batch without a label that counts adds nothing to its step, since the mean is over that;
// in PyTorch a mean of each micro-batch would be nan.
TEST_F(WeightlessSteps, MicroBatchesWithoutLabelsAddNothing) {
  leave_out(4, 8);
  for (const char* own : {ignoring, ", sample_weights=\"weights\", ignore_index=-1",
                          ", ignore_index=-1, class_weights=[0.5, 2.0, 1.0]"}) {
    SCOPED_TRACE(own);
    const Trained whole = run(keys(own, {"optimizer.kind=\"adam\"", "optimizer.lr=0.01"}));
    const Trained parts =
        run(keys(own, {"optimizer.kind=\"adam\"", "optimizer.lr=0.01", "micro_batch=4"}));
    EXPECT_THAT(parts.messages, Not(Contains(HasSubstr("no label counts"))));
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      ASSERT_TRUE(std::isfinite(parts.all("loss")[i]));
      EXPECT_NEAR(parts.all("loss")[i], whole.all("loss")[i], 2e-6 * whole.all("loss")[i]);
    }
    expect_near(parts.training->states(), whole.training->states(), 1e-5);
  }
}

}  // namespace
}  // namespace tandem
