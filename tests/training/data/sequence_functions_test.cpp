// Functions that derive positions, masks, labels one place ahead and a decoder's inputs from a row
// of ids. Expected values are written out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/transforms.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Transform parsed(const std::string& text) { return parse_transform(text); }

/// The results of the functions for one row of ids of this type.
std::vector<std::int64_t> made(const std::vector<std::string>& functions,
                               const std::vector<std::int64_t>& ids, DType dtype = DType::int64) {
  const HostTensor row =
      HostTensor::from<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids).converted(dtype);
  TransformPlan plan(row.type());
  for (const std::string& function : functions) plan.append(parsed(function));
  HostTensor result(plan.to());
  plan.run(row.data(), {}, result.data());
  return result.integers();
}

TEST(SequenceFunctions, PositionsCountPlaces) {
  EXPECT_THAT(made({"positions"}, {7, 7, 0}), ElementsAre(0, 1, 2));
  EXPECT_THAT(made({"positions(start=2)", "int32"}, {7, 7, 0}, DType::uint16),
              ElementsAre(2, 3, 4));
}

TEST(SequenceFunctions, FillIsOneNumber) {
  EXPECT_THAT(made({"fill(1)"}, {7, 0, -3}), ElementsAre(1, 1, 1));
  EXPECT_THAT(made({"fill(0)", "int32"}, {7, 0}, DType::int32), ElementsAre(0, 0));
  TransformPlan half(TensorType{DType::int64, {2}});
  half.append(parsed("fill(0.5)"));
  EXPECT_EQ(half.to(), (TensorType{DType::float32, {2}}));
}

TEST(SequenceFunctions, NextIsTheFollowingIdWhereThereIsOne) {
  EXPECT_THAT(made({"next"}, {5, 6, 7, 8}), ElementsAre(6, 7, 8, -100));
  EXPECT_THAT(made({"next"}, {5}), ElementsAre(-100));
  EXPECT_THAT(made({"next(pad=0)"}, {5, 6, 0, 0}), ElementsAre(6, -100, -100, -100));
  EXPECT_THAT(made({"next(pad=0)"}, {5, 0, 6, 0}, DType::int32), ElementsAre(0, 6, -100, -100))
      << "a 0 in the middle is an id";
  EXPECT_THAT(made({"next(pad=0)"}, {0, 0}), ElementsAre(-100, -100));
  // Labels that transformers would shift itself; those to ignore stay so.
  EXPECT_THAT(made({"next"}, {-100, 6, 7, -100}), ElementsAre(6, 7, -100, -100));
}

// transformers' T5ForConditionalGeneration._shift_right of the same rows.
TEST(SequenceFunctions, ADecoderReadsItsLabelsOnePlaceLater) {
  EXPECT_THAT(made({"shift_right(start=0)"}, {5, 6, 1, -100}), ElementsAre(0, 5, 6, 1));
  EXPECT_THAT(made({"shift_right(start=2, pad=1)"}, {5, -100, -100}), ElementsAre(2, 5, 1));
}

TEST(SequenceFunctions, WhatDoesNotFitIsRefused) {
  TransformPlan scalar(TensorType{DType::int64, {}});
  EXPECT_THROW(scalar.append(parsed("positions")), std::invalid_argument);
  EXPECT_THROW(scalar.append(parsed("next")), std::invalid_argument);
  TransformPlan floats(TensorType{DType::float32, {4}});
  EXPECT_THROW(floats.append(parsed("next")), std::invalid_argument);
  EXPECT_THROW(floats.append(parsed("shift_right(start=0)")), std::invalid_argument);
  EXPECT_THROW(parsed("fill()"), std::invalid_argument);
  EXPECT_THROW(parsed("fill(1e300)"), std::invalid_argument);
  EXPECT_THROW(parsed("shift_right"), std::invalid_argument) << "nobody can guess the start";
  EXPECT_THROW(parsed("positions(start=-1)"), std::invalid_argument);
}

}  // namespace
}  // namespace tandem
