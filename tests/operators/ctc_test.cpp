// CtcLoss where there is no path, and where labels and lengths are out of range.
#include <cmath>

#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

HostTensor integers(Shape shape, std::vector<double> numbers) {
  return HostTensor::from<double>(std::move(shape), numbers).converted(DType::int64);
}
/// Two samples of two frames of three classes with equal probabilities.
HostTensor equal_log_probs() {
  return HostTensor::from<float>({2, 2, 3}, std::vector<float>(12, -std::log(3.0f)));
}

// PyTorch: ctc_loss of the first sample is inf, and its gradient is nan.
TEST(CtcLoss, OfLabelsThatDoNotFitIsInfinite) {
  const std::vector<HostTensor> inputs{equal_log_probs(), integers({2, 2}, {1, 1, 1, 0}),
                                       integers({2}, {2, 1})};
  const Graph graph = single_node("CtcLoss", inputs, {});
  each_kernel(graph, [&](const Kernel& kernel) {
    const std::vector<double> losses = numbers_of(run_in_context(kernel, graph, inputs, {})[0]);
    EXPECT_EQ(losses[0], std::numeric_limits<double>::infinity());
    EXPECT_NEAR(losses[1], std::log(3.0), 1e-6);  // 3 of 9 paths: 1 1, blank 1, 1 blank
  });
  std::vector<HostTensor> of_gradient{HostTensor::from<float>({2}, {1, 1})};
  of_gradient.insert(of_gradient.end(), inputs.begin(), inputs.end());
  const Graph gradient = single_node("CtcLossGrad", of_gradient, {});
  each_kernel(gradient, [&](const Kernel& kernel) {
    const std::vector<double> dx = numbers_of(run_in_context(kernel, gradient, of_gradient, {})[0]);
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(dx[i])) << i;
    for (int t = 0; t < 2; ++t) {  // two of the three paths have label 1 in a frame
      EXPECT_NEAR(dx[6 + 3 * t], -1 / 3.0, 1e-6);
      EXPECT_NEAR(dx[7 + 3 * t], -2 / 3.0, 1e-6);
      EXPECT_EQ(dx[8 + 3 * t], 0);
    }
  });
}

TEST(CtcLoss, ReportsWhatIsOutOfRange) {
  struct Case {
    std::vector<double> labels, label_lengths, lengths;
    ErrorWord::Kind kind;
    std::int64_t value;
  };
  for (const Case& c : {Case{{1, 0, 7, 0}, {1, 1}, {2, 2}, ErrorWord::bad_label, 7},
                        Case{{1, 0, -1, 0}, {1, 1}, {2, 2}, ErrorWord::bad_label, -1},
                        Case{{1, 0, 1, 0}, {1, 3}, {2, 2}, ErrorWord::index_out_of_range, 3},
                        Case{{1, 0, 1, 0}, {1, 1}, {2, 9}, ErrorWord::index_out_of_range, 9},
                        Case{{1, 7, 2, -5}, {1, 1}, {2, 2}, ErrorWord::none, 0}}) {
    const std::vector<HostTensor> inputs{equal_log_probs(), integers({2, 2}, c.labels),
                                         integers({2}, c.label_lengths), integers({2}, c.lengths)};
    const Graph graph = single_node("CtcLoss", inputs, {});
    each_kernel(graph, [&](const Kernel& kernel) {
      ErrorWord error;
      StepContext context;
      context.error = &error;
      const std::vector<HostTensor> losses = run_in_context(kernel, graph, inputs, context);
      EXPECT_EQ(error.packed.load() >> 32, c.kind);
      EXPECT_EQ(error.value.load(), c.value);
      for (const double loss : numbers_of(losses[0])) EXPECT_FALSE(std::isnan(loss));
    });
  }
}

TEST(CtcLoss, RefusesOperandsThatDoNotFit) {
  const auto message = [](const std::vector<HostTensor>& inputs, const Attributes& attributes) {
    try {
      single_node("CtcLoss", inputs, attributes);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const HostTensor x = equal_log_probs(), one = integers({2}, {1, 1});
  EXPECT_EQ(message({x, integers({2, 1}, {1, 1}), one}, {}), "no error");
  EXPECT_NE(message({x, integers({3, 1}, {1, 1, 1}), one}, {}).find("[2, 1]"), std::string::npos);
  EXPECT_NE(message({x, integers({2, 1}, {1, 1}), one}, {{"blank", std::int64_t{3}}})
                .find("blank is no class"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem::testing
