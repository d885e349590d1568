// Accuracy and mean squared error over several forms of labels.
#include "engine/training/metrics.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(AccuracyTest, ClassesOnTheLastAxis) {
  Accuracy accuracy;
  accuracy.add(HostTensor::from<float>({2, 3}, {0, 2, 1, 5, 1, 1}),
               HostTensor::from<std::int64_t>({2}, {1, 2}), {});
  EXPECT_DOUBLE_EQ(accuracy.value(), 0.5);
  accuracy.add(HostTensor::from<float>({1, 2, 2}, {0, 1, 1, 0}),
               HostTensor::from<std::int64_t>({1, 2}, {1, 0}), {});
  EXPECT_DOUBLE_EQ(accuracy.value(), 0.75);
}

TEST(AccuracyTest, IgnoredLabelsDoNotCount) {
  Accuracy accuracy;
  accuracy.add(HostTensor::from<float>({2, 2}, {1, 0, 1, 0}),
               HostTensor::from<std::int64_t>({2}, {-100, 0}), -100);
  EXPECT_DOUBLE_EQ(accuracy.value(), 1);
}

TEST(AccuracyTest, OneHotAndBinary) {
  Accuracy one_hot;
  one_hot.add(HostTensor::from<float>({2, 2}, {1, 0, 1, 0}),
              HostTensor::from<float>({2, 2}, {1, 0, 0, 1}), {});
  EXPECT_DOUBLE_EQ(one_hot.value(), 0.5);
  Accuracy binary;
  binary.add(HostTensor::from<float>({4, 1}, {1, -1, 2, -2}),
             HostTensor::from<std::int64_t>({4}, {1, 0, 0, 0}), {});
  EXPECT_DOUBLE_EQ(binary.value(), 0.75);
}

TEST(MeanSquaredErrorTest, CountsElements) {
  MeanSquaredError mse;
  mse.add(HostTensor::from<float>({2}, {1, 3}), HostTensor::from<float>({2, 1}, {0, 0}));
  EXPECT_DOUBLE_EQ(mse.value(), 5);
}

}  // namespace
}  // namespace tandem
