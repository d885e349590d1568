// The optimizers' updates against the same formulas written out in double, over several steps.
#include <cmath>

#include "tests/operators/network_cases.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t updated_numbers = 19;
constexpr int step_count = 5;

HostTensor tensor(const std::vector<double>& values, DType dtype) {
  return HostTensor::from<double>({static_cast<std::int64_t>(values.size())}, values)
      .converted(dtype);
}

double rate_of(int step) { return 0.1 / step; }
double scale_of(int step) { return step == 4 ? 0.5 : 1.0; }
bool skips(int step) { return step == 3; }
std::vector<double> grad_of(int step) { return pattern(updated_numbers, 7 * step); }

/// The scalars lr, step, scale, skip of one step, rounded to float32.
std::vector<HostTensor> scalars(int step) {
  return {scalar_of(static_cast<float>(rate_of(step))), HostTensor::from<std::int64_t>({}, {step}),
          scalar_of(static_cast<float>(scale_of(step))), HostTensor::from<bool>({}, {skips(step)})};
}

/// Runs the steps, each from the kernel's own results of the step before; compares after each.
/// `by_hand(step, lr, g, master, states)` updates one element in double, g already scaled.
template <class F>
void check(const std::string& op, const Attributes& attributes, std::size_t state_count,
           F by_hand) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    std::vector<HostTensor> inputs{tensor(pattern(updated_numbers), dtype),
                                   tensor(grad_of(1), dtype)};
    for (std::size_t k = 0; k < state_count; ++k) {
      inputs.push_back(tensor(std::vector<double>(updated_numbers, 0.0), dtype));
    }
    if (op == "SgdUpdate" && state_count == 0) inputs.emplace_back();
    const std::size_t first_scalar = inputs.size();
    for (HostTensor& s : scalars(1)) inputs.push_back(s);
    const Graph graph = single_node(op, inputs, attributes);
    each_kernel(graph, [&](const Kernel& kernel) {
      std::vector<HostTensor> now = inputs;
      std::vector<double> master = pattern(updated_numbers);
      std::vector<std::vector<double>> states(updated_numbers, std::vector<double>(2, 0.0));
      for (int step = 1; step <= step_count; ++step) {
        now[1] = tensor(grad_of(step), dtype);
        const std::vector<HostTensor> s = scalars(step);
        std::copy(s.begin(), s.end(), now.begin() + static_cast<std::ptrdiff_t>(first_scalar));
        const std::vector<HostTensor> next = run_node(kernel, graph, graph.nodes[0], now);
        now[0] = next[0];
        for (std::size_t k = 0; k < state_count; ++k) now[2 + k] = next[1 + k];
        for (std::int64_t i = 0; i < updated_numbers && !skips(step); ++i) {
          const double g = scale_of(step) * grad_of(step)[i];
          by_hand(step, static_cast<float>(rate_of(step)), g, master[i], states[i]);
        }
        const double tolerance = dtype == DType::float32 ? 2e-6 : 1e-12;
        SCOPED_TRACE("step " + std::to_string(step));
        EXPECT_EQ(compare(now[0], tensor(master, DType::float64), tolerance), "") << "master";
        for (std::size_t k = 0; k < state_count; ++k) {
          std::vector<double> column;
          for (const auto& state : states) column.push_back(state[k]);
          EXPECT_EQ(compare(now[2 + k], tensor(column, DType::float64), tolerance), "");
        }
      }
    });
  }
}

struct Sgd {
  double momentum = 0, dampening = 0, decay = 0;
  bool nesterov = false;
};

void check_sgd(const Sgd& s) {
  check("SgdUpdate",
        {{"momentum", s.momentum},
         {"dampening", s.dampening},
         {"weight_decay", s.decay},
         {"nesterov", s.nesterov ? 1 : 0}},
        s.momentum != 0 ? 1 : 0,
        [&](int step, double lr, double g, double& w, std::vector<double>& state) {
          g += s.decay * w;
          if (s.momentum != 0) {
            if (step == 1) {
              state[0] = g;
            } else {
              state[0] = s.momentum * state[0] + (1 - s.dampening) * g;
            }
            g = s.nesterov ? g + s.momentum * state[0] : state[0];
          }
          w -= lr * g;
        });
}

TEST(SgdUpdate, Plain) { check_sgd({}); }
TEST(SgdUpdate, WeightDecay) { check_sgd({.decay = 0.1}); }
TEST(SgdUpdate, Momentum) { check_sgd({.momentum = 0.9}); }
TEST(SgdUpdate, Dampening) { check_sgd({.momentum = 0.9, .dampening = 0.3, .decay = 0.01}); }
TEST(SgdUpdate, Nesterov) { check_sgd({.momentum = 0.8, .decay = 0.01, .nesterov = true}); }

struct Adam {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  bool decoupled = false, correct = true, onnx = false;
};

void check_adam(const Adam& s) {
  check("AdamUpdate",
        {{"beta1", s.beta1},
         {"beta2", s.beta2},
         {"epsilon", s.epsilon},
         {"weight_decay", s.decay},
         {"decoupled", s.decoupled ? 1 : 0},
         {"bias_correction", s.correct ? 1 : 0},
         {"epsilon_form", std::string(s.onnx ? "onnx" : "pytorch")}},
        2, [&](int step, double lr, double g, double& w, std::vector<double>& state) {
          if (s.decoupled) {
            w *= 1 - lr * s.decay;
          } else {
            g += s.decay * w;
          }
          state[0] = s.beta1 * state[0] + (1 - s.beta1) * g;
          state[1] = s.beta2 * state[1] + (1 - s.beta2) * g * g;
          const double c1 = s.correct ? 1 - std::pow(s.beta1, step) : 1;
          const double c2 = s.correct ? 1 - std::pow(s.beta2, step) : 1;
          if (s.onnx) {
            w -= lr * std::sqrt(c2) / c1 * state[0] / (std::sqrt(state[1]) + s.epsilon);
          } else {
            w -= lr * (state[0] / c1) / (std::sqrt(state[1] / c2) + s.epsilon);
          }
        });
}

TEST(AdamUpdate, Plain) { check_adam({}); }
TEST(AdamUpdate, OtherBetas) { check_adam({.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3}); }
TEST(AdamUpdate, WeightDecay) { check_adam({.decay = 0.1}); }
TEST(AdamUpdate, Decoupled) { check_adam({.decay = 0.1, .decoupled = true}); }
TEST(AdamUpdate, NoBiasCorrection) { check_adam({.epsilon = 1e-3, .correct = false}); }
TEST(AdamUpdate, OnnxEpsilon) { check_adam({.epsilon = 1e-2, .onnx = true}); }
TEST(AdamUpdate, OnnxEpsilonWithoutCorrection) {
  check_adam({.epsilon = 1e-2, .correct = false, .onnx = true});
}

// The two forms differ if epsilon is not small compared with sqrt(v).
TEST(AdamUpdate, EpsilonFormsDiffer) {
  const auto one_step = [](const char* form) {
    std::vector<HostTensor> inputs{
        tensor(pattern(updated_numbers), DType::float64), tensor(grad_of(2), DType::float64),
        tensor(pattern(updated_numbers), DType::float64),
        tensor(std::vector<double>(updated_numbers, 0.01), DType::float64)};
    for (HostTensor& s : scalars(2)) inputs.push_back(s);
    const Graph graph =
        single_node("AdamUpdate", inputs, {{"epsilon", 0.1}, {"epsilon_form", std::string(form)}});
    std::vector<std::pair<std::string, HostTensor>> feeds;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      feeds.emplace_back("x" + std::to_string(i), inputs[i]);
    return evaluate(graph, feeds, {graph.nodes[0].outputs[0]})[0];
  };
  EXPECT_NE(compare(one_step("onnx"), one_step("pytorch"), 1e-3), "");
}

// A group has the same bits as its updates have one by one.
TEST(GroupedUpdate, EqualsSingleUpdates) {
  std::vector<HostTensor> all, singles[2];
  for (int k = 0; k < 2; ++k) {
    singles[k] = {tensor(pattern(updated_numbers, k), DType::float32),
                  tensor(grad_of(k + 1), DType::float32),
                  tensor(pattern(updated_numbers, k + 4), DType::float32)};
    all.insert(all.end(), singles[k].begin(), singles[k].end());
    for (HostTensor& s : scalars(2)) singles[k].push_back(s);
  }
  for (HostTensor& s : scalars(2)) all.push_back(s);
  const Attributes settings{{"momentum", 0.9}, {"weight_decay", 0.1}};
  Attributes grouped = settings;
  grouped.set("op", std::string("SgdUpdate"));
  grouped.set("count", std::int64_t{2});
  const Graph group = single_node("GroupedUpdate", all, grouped);
  const Graph single = single_node("SgdUpdate", singles[0], settings);
  const auto reference = [](const Graph& graph, const std::vector<HostTensor>& inputs) {
    const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
    return run_node(*kernel, graph, graph.nodes[0], inputs);
  };
  const std::vector<HostTensor> together = reference(group, all);
  for (std::size_t k = 0; k < 2; ++k) {
    const std::vector<HostTensor> alone = reference(single, singles[k]);
    EXPECT_EQ(compare(together[2 * k], alone[0], 0), "");
    EXPECT_EQ(compare(together[2 * k + 1], alone[1], 0), "");
  }
}

TEST(ClipScale, NormAndFactor) {
  const std::vector<HostTensor> inputs{scalar_of(9), scalar_of(16)};
  const Graph graph = single_node("ClipScale", inputs, {{"max_norm", 2.0}});
  each_kernel(graph, [&](const Kernel& kernel) {
    const std::vector<HostTensor> y = run_node(kernel, graph, graph.nodes[0], inputs);
    EXPECT_FLOAT_EQ(y[0].as<float>()[0], 2.0f / (5.0f + 1e-6f));
    EXPECT_FLOAT_EQ(y[1].as<float>()[0], 5.0f);
  });
}

TEST(ClipScale, NotANumberIsSeen) {
  const std::vector<HostTensor> inputs{scalar_of(std::nanf("")), scalar_of(16)};
  const Graph graph = single_node("ClipScale", inputs, {{"max_norm", 2.0}});
  each_kernel(graph, [&](const Kernel& kernel) {
    const std::vector<HostTensor> y = run_node(kernel, graph, graph.nodes[0], inputs);
    EXPECT_TRUE(std::isnan(y[0].as<float>()[0]) && std::isnan(y[1].as<float>()[0]));
  });
}

}  // namespace
}  // namespace tandem::testing
