// What the loss over sequences of labels refuses: values, fields, and samples of the data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/graph/add_losses.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

/// "x" [2, 5, 4], "p", the Softmax of it, "l", the LogSoftmax, and "row" [2, 4].
Graph frames() {
  static const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  g.set_scope({"head", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, {2, 5, 4}});
  g.output("x", x);
  g.output("p", g.add_node("Softmax", {x}, {{"axis", std::int64_t{2}}}));
  g.output("l", g.add_node("LogSoftmax", {x}, {{"axis", std::int64_t{2}}}));
  g.output("row", g.reduce_sum(x, {1}, false));
  return g.finish();
}

RunConfig config_of(const std::string& value, const std::string& options) {
  return parse_run_config(
      "model = \"m.onnx\"\nsteps = 1\n[loss]\nterms = [ { kind = \"ctc\", "
      "logits = \"" +
          value + "\", labels = \"y\"" + options + " } ]\n[optimizer]\nkind = \"sgd\"\n",
      "/folder/train.toml");
}

std::string mistake(const std::string& value, const std::string& options, const TensorType& y) {
  static const OperatorSet operators = all_operators();
  GraphBuilder g(operators, frames());
  const FieldTypes fields{{"y", y}, {"n", {DType::int64, {2}}}, {"f", {DType::float32, {2}}}};
  return error_of([&] { add_loss(g, config_of(value, options).loss, fields, {2, 2}); });
}

TEST(CtcMistakes, ValuesAndFieldsHaveToFit) {
  const TensorType y{DType::int64, {2, 3}};
  EXPECT_EQ(mistake("x", "", y), "no error");
  EXPECT_EQ(mistake("l", "", {DType::int16, {2, 3}}), "no error");
  EXPECT_EQ(mistake("x", ", input_lengths = \"n\", target_lengths = \"n\"", y), "no error");
  EXPECT_THAT(mistake("p", "", y),
              AllOf(HasSubstr("\"p\" is the output of Softmax, but this loss applies it itself"),
                    HasSubstr("name its input \"x\" instead")));
  EXPECT_THAT(mistake("row", "", y), HasSubstr("expected [batch, time, classes], got [2, 4]"));
  EXPECT_THAT(mistake("x", ", blank = 4", y), HasSubstr("expected 0 to 3, got 4"));
  EXPECT_THAT(mistake("x", "", {DType::float32, {2, 3}}),
              AllOf(HasSubstr("\"y\" holds no list of class numbers"), HasSubstr("\"int64\"")));
  EXPECT_THAT(mistake("x", ", time_first = true", y),
              HasSubstr("expected integers, [5, labels], got int64[2, 3]"));
  EXPECT_THAT(mistake("x", ", input_lengths = \"f\"", y),
              AllOf(HasSubstr("\"f\" holds no lengths"), HasSubstr("got float32[2]")));
  EXPECT_THAT(mistake("x", ", input_lengths = \"m\"", y),
              HasSubstr("there is no data field \"m\""));
}

/// What a check of the data reports; the last sample has these labels and lengths.
std::string refused(const std::vector<std::int64_t>& labels, std::int64_t frames_of_sample,
                    std::int64_t count, const std::string& options) {
  std::vector<std::int64_t> all{1, 2, 3, 1, -100, -100};
  all.insert(all.end(), labels.begin(), labels.end());
  const auto source =
      make_array_source({{"y", HostTensor::from<std::int64_t>({3, 3}, all)},
                         {"n", HostTensor::from<std::int64_t>({3}, {5, 5, frames_of_sample})},
                         {"m", HostTensor::from<std::int64_t>({3}, {3, 1, count})}});
  return error_of([&] { check_integer_fields(config_of("x", options), frames(), *source); });
}

TEST(CtcSamples, AreRefusedBeforeTraining) {
  const std::string frames_field = ", input_lengths = \"n\"",
                    both = frames_field + ", target_lengths = \"m\"";
  EXPECT_EQ(refused({1, 1, 2}, 5, 3, ""), "no error");
  EXPECT_EQ(refused({-100, -100, -100}, 0, 0, frames_field), "no error");
  EXPECT_EQ(refused({3, 3, 0}, 3, 2, both), "no error");
  EXPECT_THAT(refused({1, 4, 2}, 5, 3, ""),
              AllOf(HasSubstr("memory:3: data.fields.y: a label is not a class: loss term \"ctc\" "
                              "(ctc): expected 0 to 3 but not blank, 0, or padding, -100, got 4"),
                    HasSubstr("(classes are counted from 0")));
  EXPECT_THAT(refused({1, -1, 2}, 5, 3, ""), HasSubstr("got -1"));
  EXPECT_THAT(refused({1, 0, 2}, 5, 3, ""), HasSubstr("a label is the blank"));
  EXPECT_THAT(
      refused({1, 0, 2}, 5, 3, ", blank = 3"),
      AllOf(HasSubstr("memory:1: "), HasSubstr("a label is the blank"), HasSubstr("got 3")));
  EXPECT_THAT(refused({1, -100, 2}, 5, 3, ""),
              AllOf(HasSubstr("a label follows the padding"), HasSubstr("got 2")));
  EXPECT_THAT(refused({1, 2, 3}, 6, 3, frames_field),
              AllOf(HasSubstr("data.fields.n: a length is out of range"),
                    HasSubstr("expected 0 to 5, got 6")));
  EXPECT_THAT(refused({1, 2, 3}, 5, 4, both),
              AllOf(HasSubstr("data.fields.m: a length is out of range"),
                    HasSubstr("expected 0 to 3, got 4")));
}

TEST(CtcSamples, WithTooFewFramesAreRefusedUnlessTheyDoNotCount) {
  const std::string frames_field = ", input_lengths = \"n\"";
  EXPECT_EQ(refused({2, 2, 2}, 5, 3, frames_field), "no error");
  EXPECT_THAT(
      refused({2, 2, 2}, 4, 3, frames_field),
      AllOf(HasSubstr("too few frames for its labels: its loss is inf"),
            HasSubstr("expected 5 frames"), HasSubstr("got 4"), HasSubstr("zero_infinity = true")));
  EXPECT_EQ(refused({2, 2, 2}, 4, 3, frames_field + ", zero_infinity = true"), "no error");
  EXPECT_THAT(refused({2, 4, 2}, 4, 3, frames_field + ", zero_infinity = true"),
              AllOf(HasSubstr("is not a class"), Not(HasSubstr("frames"))));
}

}  // namespace
}  // namespace tandem
