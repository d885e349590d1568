// Chains of operators that a pass keeps in range give what they gave in range, and PyTorch's limit
// where they gave NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

class StableChains : public ::testing::Test {
 protected:
  Graph passed(const Graph& graph) {
    PassContext context{operators_, {}, {}, {}};
    return run_passes(graph, context);
  }

  OperatorSet operators_ = all_operators();
  std::optional<GraphBuilder> g_{operators_};
};

/// x log(y) where x is 0 with y of every kind, and twice where it is not.
class StableEntropies : public StableChains {
 protected:
  static constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> xs_{0, 0, 0, 0, 0, 0, 2, 0.5f};
  const std::vector<float> ys_{nan, infinity, 0, -1, 3, 1, 3, 0.25f};
  const double log_3 = std::log(3.0), log_4 = std::log(4.0);

  enum class Form { by_hand_zero, by_hand_x, xlogy };

  ValueId chain(Form form, ValueId x, ValueId y) {
    const ValueId zero = g_->scalar(0, DType::float32);
    ValueId product = g_->mul(x, g_->add_node("Log", {y}));
    if (form == Form::xlogy)
      product = g_->add_node("Where", {g_->add_node("IsNaN", {y}), y, product});
    return g_->add_node("Where", {g_->add_node("Equal", {x, zero}),
                                  form == Form::by_hand_zero ? zero : x, product});
  }

  void expect(Form form, const std::vector<double>& slopes_by_x) {
    const TensorType type{DType::float32, {std::ssize(xs_)}};
    g_->output("z", chain(form, g_->input("x", type), g_->input("y", type)));
    GraphBuilder b(operators_, passed(g_->finish()));
    g_.emplace(operators_);
    const std::vector<ValueId> of{b.graph().find_input("x")->value,
                                  b.graph().find_input("y")->value};
    const ValueId z = b.graph().outputs[0].value;
    const std::vector<GradientSeed> seeds{{z, b.filled(1, type)}};
    std::vector<ValueId> wanted = add_gradients(b, seeds, of);
    wanted.insert(wanted.begin(), z);
    const std::vector<HostTensor> found =
        testing::evaluate(b.finish(),
                          {{"x", HostTensor::from<float>(type.shape, xs_)},
                           {"y", HostTensor::from<float>(type.shape, ys_)}},
                          wanted);
    const std::vector<double> values{0, 0, 0, 0, 0, 0, 2 * log_3, -0.5 * log_4};
    const std::vector<double> slopes_by_y{0, 0, 0, 0, 0, 0, 2.0 / 3, 2};
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      EXPECT_NEAR(found[0].number(at), values[i], 1e-6) << i;
      EXPECT_NEAR(found[1].number(at), slopes_by_x[i], 1e-6) << i;
      EXPECT_NEAR(found[2].number(at), slopes_by_y[i], 1e-6) << i;
    }
  }
};

TEST_F(StableEntropies, WrittenByHandHaveTheSlopeOfWhatIsTaken) {
  expect(Form::by_hand_zero, {0, 0, 0, 0, 0, 0, log_3, -log_4});
  expect(Form::by_hand_x, {1, 1, 1, 1, 1, 1, log_3, -log_4});
}

// torch.special.xlogy: log(y) at x = 0 as well, where that is a number.
TEST_F(StableEntropies, AsXlogyHaveTheSlopeOfTheLogarithm) {
  expect(Form::xlogy, {0, 0, 0, 0, log_3, 0, log_3, -log_4});
}

/// x - (log(sum(exp(x - m))) + m) in shapes where m is the maximum of a row, or is not.
class StableLogSoftmax : public StableChains {
 protected:
  using Chain = std::function<ValueId(ValueId x)>;

  /// After the passes there are `many` LogSoftmax, and the numbers are the same.
  void expect(const Shape& shape, std::size_t many, const Chain& chain) {
    g_->output("y", chain(g_->input("x", {DType::float32, shape})));
    const Graph before = g_->finish();
    g_.emplace(operators_);
    const Graph after = passed(before);
    EXPECT_EQ(std::count_if(after.nodes.begin(), after.nodes.end(),
                            [](const Node& node) { return node.op->name == "LogSoftmax"; }),
              static_cast<std::ptrdiff_t>(many))
        << to_text(after);
    std::mt19937 engine(3);
    std::uniform_real_distribution<float> uniform(-2, 2);
    HostTensor x(TensorType{DType::float32, shape});
    for (float& each : x.as<float>()) each = uniform(engine);
    const HostTensor want = testing::evaluate(before, {{"x", x}}, {before.outputs[0].value}).at(0);
    const HostTensor got = testing::evaluate(after, {{"x", x}}, {after.outputs[0].value}).at(0);
    ASSERT_EQ(got.type(), want.type());
    for (std::int64_t i = 0; i < want.type().elements(); ++i)
      EXPECT_NEAR(got.number(i), want.number(i), 1e-5) << i;
  }
  ValueId largest(ValueId x, const Ints& axes, bool keepdims = true) {
    return g_->add_node("ReduceMax", {x},
                        {{"axes", axes}, {"keepdims", std::int64_t{keepdims ? 1 : 0}}});
  }
  /// x less log(sum(exp(x - taken))) + added, in the shape of one number a row.
  ValueId chain(ValueId x, ValueId taken, ValueId added, std::int64_t axis, bool keepdims) {
    const ValueId powers = g_->add_node("Exp", {g_->sub(x, taken)});
    const ValueId sums = g_->add_node("Log", {g_->reduce_sum(powers, {axis}, keepdims)});
    Shape rows = g_->shape(x);
    rows[static_cast<std::size_t>(axis)] = 1;
    const ValueId of_rows = g_->add(sums, added);
    return g_->sub(x, keepdims ? of_rows : g_->reshape(of_rows, rows));
  }
};

TEST_F(StableLogSoftmax, OfTheRowsOwnMaximum) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 5}, Shape{3, 3, 3}, Shape{2, 3, 4}}) {
    for (std::int64_t axis = 0; axis < std::ssize(shape); ++axis) {
      SCOPED_TRACE(to_string(shape) + " along " + std::to_string(axis));
      expect(shape, 1, [&](ValueId x) {
        const ValueId m = largest(x, {axis});
        return chain(x, m, m, axis, true);
      });
      expect(shape, 1, [&](ValueId x) {
        const ValueId m = largest(x, {axis});
        Shape squeezed = shape;
        squeezed.erase(squeezed.begin() + axis);
        return chain(x, m, g_->reshape(m, squeezed), axis, false);
      });
    }
  }
}

TEST_F(StableLogSoftmax, OfOneNumberForAll) {
  for (const bool keepdims : {true, false}) {
    expect({3, 3}, 1, [&](ValueId x) {
      const ValueId two = g_->scalar(2, DType::float32);
      return chain(x, two, two, 1, keepdims);
    });
    expect({3, 3}, 1, [&](ValueId x) {
      const ValueId m = largest(x, {0, 1}, false);
      return chain(x, m, m, 1, keepdims);
    });
  }
  // One number for each of the other axes, which broadcasting lines up.
  expect({5, 3, 4}, 1, [&](ValueId x) {
    const ValueId m = largest(x, {0}, false);
    return chain(x, m, m, 0, false);
  });
}

TEST_F(StableLogSoftmax, NotOfMaximaOfAnotherAxis) {
  for (const Shape& shape : {Shape{3, 3}, Shape{3, 3, 3}, Shape{2, 3, 3}}) {
    const std::int64_t last = std::ssize(shape) - 1;
    SCOPED_TRACE(to_string(shape));
    expect(shape, 0, [&](ValueId x) {  // used as if they were the rows' maxima
      const ValueId m = largest(x, {last - 1});
      Shape squeezed = shape;
      squeezed.erase(squeezed.begin() + last - 1);
      return chain(x, m, g_->reshape(m, squeezed), last, false);
    });
    expect(shape, 0, [&](ValueId x) {
      const ValueId m = largest(x, {last - 1});
      Shape turned = shape;
      turned[static_cast<std::size_t>(last)] = 1;
      return chain(x, m, g_->reshape(m, turned), last, true);
    });
  }
  expect({3, 3}, 0, [&](ValueId x) {
    const ValueId m = largest(x, {0}, false);
    return chain(x, m, m, 1, false);
  });
  // Maxima of another axis than the one that is summed over.
  expect({3, 3, 3}, 0, [&](ValueId x) {
    const ValueId m = largest(x, {1, 2});
    return chain(x, m, g_->reshape(m, {1, 3, 1}), 2, true);
  });
}

}  // namespace
}  // namespace tandem
