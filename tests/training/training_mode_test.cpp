// What PyTorch refuses or warns about in training mode (torch/nn/functional.py: _verify_batch_size,
// _verify_spatial_size; ATen's checks of convolution, pooling and reductions).
#include "engine/train/divergence/training_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrainingMode : public ::testing::Test {
 protected:
  ValueId zeros(Shape shape) { return b_.constant(HostTensor({DType::float32, std::move(shape)})); }
  ValueId input(Shape shape) { return b_.input("x", {DType::float32, std::move(shape)}); }
  void scope(const std::string& path) { b_.set_scope({path, Phase::forward, {}}); }

  TrainingModeReport batch_normalization(const Shape& x, TrainingCase of) {
    GraphBuilder b(operators_);
    const auto state = [&](const char* name) {
      State s;
      s.name = name;
      s.kind = StateKind::buffer;
      s.start = HostTensor({DType::float32, {x[1]}});
      return b.state(std::move(s));
    };
    b.set_scope({"norm.BatchNormalization", Phase::forward, {}});
    const ValueId in = b.input("x", {DType::float32, x});
    const auto out = b.node("BatchNormalizationTraining",
                            {in, state("scale"), state("bias"), state("mean"), state("var")});
    b.output("y", out[0]);
    return check_training_mode(b.finish(), of);
  }
  TrainingModeReport report(TrainingCase of = {.samples = 2, .all_samples = 2}) {
    return check_training_mode(b_.graph(), of);
  }

  OperatorSet operators_ = all_operators();
  GraphBuilder b_{operators_};
};

// "Expected more than 1 value per channel when training"
TEST_F(TrainingMode, BatchNormalizationNeedsTwoValuesOfAChannel) {
  const TrainingCase last{.samples = 1, .all_samples = 1, .ends_epoch = true};
  const auto refused = batch_normalization({1, 3}, last).problems;
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].path, "norm.BatchNormalization");
  EXPECT_THAT(refused[0].message, HasSubstr("last step of an epoch"));
  EXPECT_THAT(refused[0].fix, HasSubstr("data.drop_last = true"));
  EXPECT_EQ(batch_normalization({1, 3, 1, 1}, last).problems.size(), 1u);
  EXPECT_THAT(batch_normalization({1, 3, 2, 1}, last).problems, IsEmpty());
  EXPECT_THAT(batch_normalization({2, 3}, {.samples = 2, .all_samples = 2}).problems, IsEmpty());
}

TEST_F(TrainingMode, StatisticsOverRanksCountTheSamplesOfAll) {
  EXPECT_EQ(batch_normalization({1, 3}, {.samples = 1, .all_samples = 4}).problems.size(), 1u);
  EXPECT_THAT(
      batch_normalization({1, 3}, {.samples = 1, .all_samples = 4, .statistics_over_ranks = true})
          .problems,
      IsEmpty());
}

// "Expected more than 1 spatial element when training"
TEST_F(TrainingMode, InstanceNormalizationNeedsTwoPlaces) {
  scope("norm.InstanceNormalization");
  b_.output("y", b_.node("LayerNormalization", {input({2, 3, 1}), zeros({1})},
                         {{"axis", std::int64_t{2}}})[0]);
  ASSERT_EQ(report().problems.size(), 1u);
  EXPECT_THAT(report().problems[0].message, HasSubstr("InstanceNormalization of one value"));
}

TEST_F(TrainingMode, LayerNormalizationOfOneValueIsTold) {
  scope("norm.LayerNormalization");
  b_.output("y", b_.node("LayerNormalization", {input({2, 3, 1}), zeros({1})},
                         {{"axis", std::int64_t{2}}})[0]);
  EXPECT_THAT(report().problems, IsEmpty());
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("each result is the bias")));
}

// PyTorch refuses a GroupNorm of one value only with a batch of one.
TEST_F(TrainingMode, GroupsOfOneValueAreRefusedForOneSample) {
  const auto build = [&](std::int64_t samples) {
    GraphBuilder b(operators_);
    const ValueId x = b.input("x", {DType::float32, {samples, 3}});
    b.set_scope({"gn.Reshape", Phase::forward, {}});
    const ValueId groups = b.add_node("Reshape", {x}, {{"shape", Ints{samples, 3, 1}}});
    b.set_scope({"gn.InstanceNormalization", Phase::forward, {}});
    const ValueId scale = b.constant(HostTensor({DType::float32, {1}}));
    b.output("y", b.node("LayerNormalization", {groups, scale}, {{"axis", std::int64_t{2}}})[0]);
    return check_training_mode(b.finish(), {.samples = samples, .all_samples = samples});
  };
  EXPECT_EQ(build(1).problems.size(), 1u);
  EXPECT_THAT(build(2).problems, IsEmpty());
  EXPECT_EQ(build(2).warnings.size(), 1u);
}

// "Kernel size can't be greater than actual input size", "Output size is too small": refused where
// types are inferred.
TEST_F(TrainingMode, AKernelLargerThanItsInputIsNoGraph) {
  const auto error = [&](const char* op, std::vector<ValueId> inputs, Attributes attributes) {
    try {
      b_.node(op, std::move(inputs), std::move(attributes));
    } catch (const Error& refused) {
      return std::string(refused.what());
    }
    return std::string("no error");
  };
  const Attributes windows{
      {"strides", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}, {"dilations", Ints{1, 1}}};
  const ValueId x = input({2, 1, 2, 2});
  EXPECT_THAT(error("Conv", {x, zeros({4, 1, 3, 3})}, windows),
              HasSubstr("larger than the padded input"));
  Attributes pooling = windows;
  pooling.set("kernel_shape", Ints{3, 3});
  EXPECT_THAT(error("MaxPool", {x}, pooling), HasSubstr("larger than the padded input"));
}

// "Expected reduction dim to be specified ... of a tensor with no elements"
TEST_F(TrainingMode, TheLargestOfNothingIsRefusedAndTheMeanTold) {
  const ValueId x = input({2, 0});
  scope("max.ReduceMax");
  b_.output("m", b_.add_node("ReduceMax", {x}, {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}}));
  scope("mean.ReduceMean");
  b_.output("a", b_.reduce_mean(x, {1}, false));
  ASSERT_EQ(report().problems.size(), 1u);
  EXPECT_EQ(report().problems[0].path, "max.ReduceMax");
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("the mean of nothing is nan")));
}

// "std(): degrees of freedom is <= 0": the exporter writes n - 1 as a constant.
TEST_F(TrainingMode, TheDeviationOfOneValueIsTold) {
  scope("std.Div");
  b_.output("y", b_.div(input({2, 1}), b_.scalar(0, DType::float32)));
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("divides by a constant 0")));
}

TEST_F(TrainingMode, AMaskThatHidesAllKeysOfAQueryIsTold) {
  const float hidden = -std::numeric_limits<float>::infinity();
  const auto masked = [&](const std::vector<float>& values) {
    GraphBuilder b(operators_);
    const ValueId x = b.input("x", {DType::float32, {2, 2, 2}});
    b.set_scope({"attn.Softmax", Phase::forward, {}});
    const ValueId mask = b.constant(HostTensor::from<float>({2, 2}, values));
    b.output("y", b.add_node("Softmax", {b.add(x, mask)}, {{"axis", std::int64_t{2}}}));
    return check_training_mode(b.finish(), {.samples = 2, .all_samples = 2}).warnings;
  };
  EXPECT_THAT(masked({0, hidden, 0, 0}), IsEmpty());
  EXPECT_THAT(masked({0, 0, hidden, hidden}), ElementsAre(HasSubstr("hides every key")));
  EXPECT_THAT(masked({0, 0, -1e9f, -1e9f}), IsEmpty());  // even weights, as in PyTorch
}

}  // namespace
}  // namespace tandem
