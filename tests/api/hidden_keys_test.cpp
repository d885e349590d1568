// Samples whose masks hide all keys from attention: found before a run, in the forms that exporters
// write.
#include "engine/train/divergence/hidden_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "api/model/engine.h"
#include "engine/graph/builder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr double lowest = -3.4028234663852886e38;  // torch.finfo(torch.float32).min

using Rows = std::vector<std::vector<std::int64_t>>;

/// Scores [2, 1, 3] of two samples over three keys, and a masked softmax of them.
class HiddenKeysTest : public ::testing::Test {
 protected:
  HiddenKeysTest() : b_(operators_) {
    b_.set_scope({"attn.Softmax", tandem::Phase::forward, {}});
    scores_ = b_.input("scores", {DType::float32, {2, 1, 3}});
  }
  ValueId mask(const Shape& shape = {2, 1, 3}) { return b_.input("mask", {DType::int64, shape}); }
  ValueId is(ValueId values, std::int64_t what) {
    return b_.add_node("Equal", {values, b_.scalar(static_cast<double>(what), DType::int64)});
  }
  ValueId softmax(ValueId x) { return b_.add_node("Softmax", {x}, {{"axis", std::int64_t{2}}}); }
  ValueId number(double value) { return b_.scalar(value, DType::float32); }
  /// Warnings for these rows of the field "mask": three per sample, except for lengths.
  std::vector<std::string> warnings(const Rows& rows, ValueId output,
                                    const Shape& sample = {1, 3}) {
    b_.output("y", output);
    const Graph graph = b_.finish();
    std::vector<std::int64_t> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    Shape shape = sample;
    shape.insert(shape.begin(), std::ssize(rows));
    const auto source = make_array_source(
        {{"mask", HostTensor::from<std::int64_t>(shape, all)},
         {"scores", HostTensor(TensorType{DType::float32, {std::ssize(rows), 1, 3}})}});
    const Evaluator evaluate = reference_evaluator();
    HiddenKeys hidden(graph, evaluate);
    hidden.add(*source);
    return hidden.warnings();
  }

  const OperatorSet operators_ = all_operators();
  GraphBuilder b_;
  ValueId scores_;
};

// torch.nn.MultiheadAttention(key_padding_mask=…) and masked_fill: torch.softmax of only -inf is
// nan.
TEST_F(HiddenKeysTest, OfMasksThatFillScores) {
  const ValueId y = softmax(b_.add_node("Where", {is(mask(), 0), number(minus_infinity), scores_}));
  EXPECT_THAT(warnings({{1, 1, 0}, {1, 0, 0}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}}, y),
              ElementsAre(AllOf(HasSubstr("memory:3: data.fields.mask: no key is visible to "
                                          "attn.Softmax in 2 of 5 samples"),
                                HasSubstr("its softmax is nan, as torch.softmax's"),
                                HasSubstr("leave such samples out"))));
}

TEST_F(HiddenKeysTest, ThatAreVisibleAreNone) {
  const ValueId y = softmax(b_.add_node("Where", {is(mask(), 0), number(minus_infinity), scores_}));
  EXPECT_THAT(warnings({{1, 0, 0}, {0, 0, 1}, {1, 1, 1}}, y), IsEmpty());
}

// transformers: (1 - mask) * torch.finfo(dtype).min, added to the scores.
TEST_F(HiddenKeysTest, OfFiniteNumbersAreAMean) {
  const ValueId one_less = b_.sub(number(1), b_.cast(mask(), DType::float32));
  const ValueId y = softmax(b_.add(scores_, b_.mul(one_less, number(lowest))));
  EXPECT_THAT(warnings({{1, 1, 0}, {0, 0, 0}}, y),
              ElementsAre(AllOf(HasSubstr("memory:2"), HasSubstr("a mean of hidden ones"))));
}

// arange(3) < length
TEST_F(HiddenKeysTest, OfLengthsOfZero) {
  const ValueId places = b_.constant(HostTensor::from<std::int64_t>({1, 1, 3}, {0, 1, 2}));
  const ValueId seen = b_.add_node("Less", {places, mask({2, 1, 1})});
  const ValueId y = softmax(b_.add_node("Where", {seen, scores_, number(minus_infinity)}));
  EXPECT_THAT(warnings({{3}, {0}, {1}}, y, {1, 1}),
              ElementsAre(AllOf(HasSubstr("memory:2"), HasSubstr("1 of 3 samples"))));
}

// Only padding (id 1, as in RoBERTa): an empty text.
TEST_F(HiddenKeysTest, OfIdsThatArePaddingAlone) {
  const ValueId padding = is(mask(), 1);
  const ValueId added = b_.add_node("Where", {padding, number(minus_infinity), number(0)});
  EXPECT_THAT(warnings({{5, 7, 1}, {0, 2, 1}, {1, 1, 1}}, softmax(b_.add(scores_, added))),
              ElementsAre(HasSubstr("memory:3")));
}

// scaled_dot_product_attention since PyTorch 2.5, whose softmax gives 0 then.
TEST_F(HiddenKeysTest, WhoseNanIsReplaced) {
  const ValueId p = softmax(b_.add_node("Where", {is(mask(), 0), number(minus_infinity), scores_}));
  const ValueId y = b_.add_node("Where", {b_.add_node("IsNaN", {p}), number(0), p});
  EXPECT_THAT(warnings({{1, 1, 0}, {0, 0, 0}}, y),
              ElementsAre(AllOf(HasSubstr("memory:2"), HasSubstr("its result is 0"))));
}

TEST_F(HiddenKeysTest, OfTheOperatorAttention) {
  const auto part = [&](const char* name) {
    return b_.input(name, {DType::float32, {2, 1, 3, 4}});
  };
  const ValueId added =
      b_.add_node("Where", {is(mask({2, 1, 1, 3}), 0), number(minus_infinity), number(0)});
  const ValueId y =
      b_.node("Attention", {part("q"), part("k"), part("v"), added}, {{"scale", 0.5}})[0];
  EXPECT_THAT(warnings({{0, 0, 0}, {0, 1, 0}}, y, {1, 1, 3}),
              ElementsAre(AllOf(HasSubstr("memory:1"), HasSubstr("its result is 0"))));
}

// A query of left padding sees no key under a causal mask: one such row is enough for nan.
TEST_F(HiddenKeysTest, OfOneQuery) {
  GraphBuilder b(operators_);
  b.set_scope({"attn.Softmax", tandem::Phase::forward, {}});
  const ValueId scores = b.input("scores", {DType::float32, {2, 2, 2}});
  const ValueId mask = b.input("mask", {DType::int64, {2, 1, 2}});
  const ValueId causal = b.constant(HostTensor::from<std::int64_t>({1, 2, 2}, {1, 0, 1, 1}));
  const ValueId seen = b.cast(b.mul(mask, causal), DType::boolean);
  b.output("y", b.add_node(
                    "Softmax",
                    {b.add_node("Where", {seen, scores, b.scalar(minus_infinity, DType::float32)})},
                    {{"axis", std::int64_t{2}}}));
  const Graph graph = b.finish();
  const auto source =
      make_array_source({{"mask", HostTensor::from<std::int64_t>({3, 1, 2}, {1, 1, 0, 1, 1, 0})}});
  const Evaluator evaluate = reference_evaluator();
  HiddenKeys hidden(graph, evaluate);
  hidden.add(*source);
  EXPECT_THAT(hidden.warnings(), ElementsAre(AllOf(HasSubstr("memory:2"),
                                                   HasSubstr("1 of 3 samples"), HasSubstr("nan"))));
}

TEST_F(HiddenKeysTest, OfConstantsAreNotTheDatas) {
  const ValueId fixed = b_.constant(HostTensor::from<float>({1, 1, 3}, {0, 0, 0}));
  EXPECT_THAT(warnings({{0, 0, 0}}, softmax(b_.add(scores_, fixed))), IsEmpty());
}

}  // namespace
}  // namespace tandem::api
