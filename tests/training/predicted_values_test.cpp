// What predictions write for values: probabilities and classes by the formulas, and refusals.
#include "engine/metrics/predicted_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/graph/error.h"
#include "engine/losses/loss.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

LossTerm term(const char* kind) {
  LossTerm term;
  term.kind = find_loss(kind);
  return term;
}
const LossTerm binary = term("binary_cross_entropy"), classes = term("softmax_cross_entropy"),
               mse = term("mse");

std::vector<HostTensor> converted(const HostTensor& value, const LossTerm* of, PredictionForm form,
                                  int axis = -1) {
  const PredictedValue predicted("y", value.type(), of, form, axis);
  std::vector<HostTensor> result;
  predicted.convert(value, result);
  EXPECT_EQ(result.size(), predicted.arrays().size());
  return result;
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) values.push_back(tensor.number(i));
  return values;
}

TEST(PredictedValues, BinaryLogitsAreProbabilities) {
  const HostTensor x = HostTensor::from<float>({4, 1}, {0, 30, -200, 1.5f});
  const auto p = converted(x, &binary, PredictionForm::automatic);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].type(), (TensorType{DType::float64, {4, 1}}));
  const std::vector<double> values = numbers(p[0]);
  EXPECT_EQ(values[0], 0.5);
  EXPECT_DOUBLE_EQ(1 - values[1], 1 - 1 / (1 + std::exp(-30.0)));
  EXPECT_GT(values[2], 0);
  EXPECT_DOUBLE_EQ(values[3], 1 / (1 + std::exp(-1.5)));
  EXPECT_THAT(numbers(converted(x, &binary, PredictionForm::classes)[0]), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(numbers(converted(x, &binary, PredictionForm::values)[0]), numbers(x));
}

TEST(PredictedValues, LogitsOfClassesAreAClassAndItsProbability) {
  const HostTensor x = HostTensor::from<float>({2, 3}, {1, 3, 2, 500, 500, -500});
  const auto both = converted(x, &classes, PredictionForm::automatic);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_THAT(numbers(both[0]), ElementsAre(1, 0));  // the first of equal ones
  EXPECT_EQ(both[0].type(), (TensorType{DType::int64, {2}}));
  const double sum = std::exp(-2.0) + 1 + std::exp(-1.0);
  EXPECT_NEAR(both[1].number(0), 1 / sum, 1e-15);
  EXPECT_NEAR(both[1].number(1), 0.5, 1e-15);
  const auto all = converted(x, &classes, PredictionForm::probability);
  EXPECT_EQ(all[0].shape(), (Shape{2, 3}));
  EXPECT_NEAR(all[0].number(0), std::exp(-2.0) / sum, 1e-15);
  EXPECT_NEAR(all[0].number(5), 0, 1e-15);
}

TEST(PredictedValues, ClassesLieOnTheAxisThatIsNamed) {
  // [1, 2, 3]: two positions of three classes, or three positions of two.
  const HostTensor x = HostTensor::from<float>({1, 2, 3}, {0, 5, 1, 7, 2, 1});
  EXPECT_THAT(numbers(converted(x, &classes, PredictionForm::classes, 2)[0]), ElementsAre(1, 0));
  EXPECT_THAT(numbers(converted(x, &classes, PredictionForm::classes, 1)[0]), ElementsAre(1, 0, 0));
  // If labels fit both ways, the loss decides; with more axes there is no way to know.
  EXPECT_THAT(numbers(converted(x, &classes, PredictionForm::classes)[0]), ElementsAre(1, 0));
  const PredictedValue assumed("y", x.type(), &classes, PredictionForm::classes, -1);
  EXPECT_THAT(assumed.note(), HasSubstr("on the last axis; --class-axis 1"));
  const HostTensor image(TensorType{DType::float32, {1, 2, 3, 4}});
  EXPECT_THAT(error_of([&] { converted(image, &classes, PredictionForm::automatic); }),
              HasSubstr("--class-axis with 1 to 3"));
  EXPECT_THAT(error_of([&] { converted(x, &classes, PredictionForm::automatic, 3); }),
              HasSubstr("no such axis"));
  EXPECT_EQ(converted(x, &classes, PredictionForm::values)[0].shape(), (Shape{1, 2, 3}));
}

TEST(PredictedValues, OtherValuesAreGivenOutAsTheyAre) {
  const HostTensor half = HostTensor::from<float>({2}, {1.5f, -2}).converted(DType::bfloat16);
  for (const LossTerm* of : {static_cast<const LossTerm*>(nullptr), &mse}) {
    const auto values = converted(half, of, PredictionForm::automatic);
    EXPECT_EQ(values[0].dtype(), DType::float32);
    EXPECT_THAT(numbers(values[0]), ElementsAre(1.5, -2));
    EXPECT_THAT(error_of([&] { converted(half, of, PredictionForm::probability); }),
                HasSubstr("--as values"));
  }
  const HostTensor eighth = HostTensor::from<float>({2}, {1.5f, -2}).converted(DType::float8_e5m2);
  const HostTensor wide = converted(eighth, nullptr, PredictionForm::values)[0];
  EXPECT_EQ(wide.dtype(), DType::float32);
  EXPECT_THAT(numbers(wide), ElementsAre(1.5, -2));
  const HostTensor small = HostTensor::from<std::int8_t>({2}, {-1, 3});
  EXPECT_EQ(converted(small, nullptr, PredictionForm::values)[0].dtype(), DType::int64);
}

}  // namespace
}  // namespace tandem
