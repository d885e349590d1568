// Every case of every operator: forward on every kernel in every layout, gradients by finite
// differences.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/harness/checked_gradients.h"
#include "tests/harness/layout_variants.h"
#include "tests/harness/operator_case.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

const std::vector<OperatorCase>& cases_to_run() {
  static const std::vector<OperatorCase> list = all_cases();
  return list;
}

// Inputs in the graph's types (scalars may keep theirs), without absent ones.
std::vector<HostTensor> inputs_for(const OperatorCase& c, const Graph& graph) {
  std::vector<HostTensor> inputs = case_inputs(c, DType::float32);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (c.inputs[i].absent) continue;
    inputs[i] = inputs[i].converted(graph.type(graph.nodes[0].inputs[i]).dtype);
  }
  return inputs;
}

std::vector<HostTensor> run_on_reference(const Graph& graph,
                                         const std::vector<HostTensor>& inputs) {
  const Node& node = graph.nodes[0];
  std::vector<std::string> refusals;
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, node), &refusals);
  if (kernel == nullptr) {
    std::string message = "no reference kernel";
    for (const std::string& refusal : refusals) message += "; " + refusal;
    throw std::runtime_error(message);
  }
  return run_node(*kernel, graph, node, inputs);
}

class OperatorTest : public ::testing::TestWithParam<std::string> {
 protected:
  template <class F>
  void each_case(F f) {
    for (const OperatorCase& c : cases_to_run()) {
      if (c.op != GetParam()) continue;
      SCOPED_TRACE("case " + c.name);
      try {
        f(c);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
};

void check_layouts(const OperatorCase& c, const Kernel& kernel, const Graph& graph,
                   const std::vector<HostTensor>& expected) {
  const Node& node = graph.nodes[0];
  const std::vector<HostTensor> inputs = inputs_for(c, graph);
  for (const LayoutVariant& variant : layout_variants) {
    SCOPED_TRACE(variant.name);
    RunOptions options;
    for (const HostTensor& x : inputs) options.input_layouts.push_back(variant.layout(x.shape()));
    for (const HostTensor& y : expected)
      options.output_layouts.push_back(variant.layout(y.shape()));
    expect_equal(run_node(kernel, graph, node, inputs, options), expected, c.tolerance);
  }
  for (std::size_t i = 0; node.outputs.size() > 1 && i < node.outputs.size(); ++i) {
    SCOPED_TRACE("only output " + std::to_string(i) + " is read");
    if (!may_be_read_alone(node, i)) continue;
    RunOptions options;
    options.only_output = static_cast<int>(i);
    KernelRequest request = plain_request(graph, node);
    for (std::size_t k = 0; k < request.outputs.size(); ++k) request.outputs[k].present = k == i;
    if (kernel.refuse && kernel.refuse(request)) continue;
    const auto results = run_node(kernel, graph, node, inputs, options);
    EXPECT_EQ(compare(results[i], expected[i], c.tolerance), "");
  }
}

bool updates_in_place(const Node& node) {
  return !node.op->aliases.empty() || node.op->name == "GroupedUpdate" ||
         node.op->name == "GatherStates";
}

void check_broadcast(const OperatorCase& c, const Kernel& kernel, const Graph& graph,
                     const Graph& wide_graph) {
  SCOPED_TRACE("broadcast");
  std::vector<Layout> layouts, unused;
  std::vector<HostTensor> inputs = inputs_for(c, graph), wide = inputs_for(c, wide_graph);
  broadcast_first_axis(inputs, layouts);
  broadcast_first_axis(wide, unused);
  expect_equal(run_node(kernel, graph, graph.nodes[0], inputs, layouts),
               run_on_reference(wide_graph, wide), c.tolerance);
}

// Compares kernels of a type with the double reference.
TEST_P(OperatorTest, Forward) {
  each_case([](const OperatorCase& c) {
    const Graph wide_graph = case_graph(c, operator_set(), DType::float64);
    const std::vector<HostTensor> expected =
        run_on_reference(wide_graph, inputs_for(c, wide_graph));
    ASSERT_NO_THROW(verify(wide_graph));
    if (!c.expected.empty()) {
      const HostTensor known = HostTensor::from<double>(expected[0].shape(), c.expected);
      EXPECT_EQ(compare(expected[0], known, c.tolerance), "") << "against the known result";
    }
    const Graph graph = case_graph(c, operator_set(), DType::float32);
    int ran = 0;
    for (const Kernel& kernel : cpu_list()) {
      if (kernel.op != c.op) continue;
      if (kernel.refuse && kernel.refuse(plain_request(graph, graph.nodes[0]))) continue;
      SCOPED_TRACE(kernel.name);
      ++ran;
      check_layouts(c, kernel, graph, expected);
      if (!updates_in_place(graph.nodes[0])) check_broadcast(c, kernel, graph, wide_graph);
    }
    EXPECT_GT(ran, 0) << "every kernel refuses";
  });
}

// sum(dy y) as a function of the inputs, for one fixed random dy.
class Loss {
 public:
  Loss(const OperatorCase& c, const Graph& graph) : graph_(graph), inputs_(inputs_for(c, graph)) {
    const std::vector<Port>& ports = graph.nodes[0].op->outputs;
    const std::size_t count = ports.back().variadic ? graph.nodes[0].outputs.size() : 1;
    std::mt19937_64 random(std::hash<std::string>()(c.name));
    std::uniform_real_distribution<double> unit(-1, 1);
    for (std::size_t i = 0; i < count; ++i) {
      const TensorType& type = graph.type(graph.nodes[0].outputs[i]);
      HostTensor dy(TensorType{DType::float64, type.shape});
      for (double& v : dy.as<double>()) v = unit(random);
      dy_.push_back(dy);
    }
  }

  const std::vector<HostTensor>& inputs() const { return inputs_; }
  const std::vector<HostTensor>& dy() const { return dy_; }

  double operator()(const std::vector<HostTensor>& inputs) const {
    const std::vector<HostTensor> y = run_on_reference(graph_, inputs);
    double sum = 0;
    for (std::size_t i = 0; i < dy_.size(); ++i) {
      for (std::int64_t k = 0; k < dy_[i].type().elements(); ++k) {
        sum += dy_[i].number(k) * y[i].number(k);
      }
    }
    return sum;
  }

  /// d loss / d input by central differences.
  HostTensor slope(std::size_t input) const {
    std::vector<HostTensor> moved = inputs_;
    moved[input] = inputs_[input].clone();
    HostTensor result(inputs_[input].type());
    for (std::size_t i = 0; i < result.as<double>().size(); ++i) {
      double& x = moved[input].as<double>()[i];
      const double before = x, step = 1e-5 * std::max(1.0, std::fabs(x));
      x = before + step;
      const double above = (*this)(moved);
      x = before - step;
      const double below = (*this)(moved);
      x = before;
      result.as<double>()[i] = (above - below) / (2 * step);
    }
    return result;
  }

 private:
  const Graph& graph_;
  std::vector<HostTensor> inputs_;
  std::vector<HostTensor> dy_;
};

// The gradient as the operator builds it, with the feeds that it needs.
struct BuiltGradient {
  Graph graph;
  Gradients dx;
};

BuiltGradient build_gradient(const Graph& forward, const Loss& loss,
                             const std::vector<bool>& wanted) {
  GraphBuilder g(operator_set(), forward);
  const Node node = forward.nodes[0];
  std::vector<ValueId> dy(node.outputs.size());
  for (std::size_t i = 0; i < loss.dy().size(); ++i) {
    dy[i] = g.input("dy" + std::to_string(i), loss.dy()[i].type());
  }
  g.set_scope({node.path, Phase::backward});
  GradientContext context{g, node, dy, wanted};
  Gradients dx = node.op->gradient(context);
  return {g.finish(), std::move(dx)};
}

TEST_P(OperatorTest, Gradient) {
  const Operator& op = operator_set().get(GetParam());
  if (op.gradient == nullptr) return;  // the completeness test checks the reason
  each_case([](const OperatorCase& c) {
    if (!c.check_gradient) {
      EXPECT_NE(c.why, "") << "a case without a gradient check needs a reason";
      return;
    }
    const Graph graph = case_graph(c, operator_set(), DType::float64);
    const std::vector<bool> wanted = checked_gradients(c, graph);
    if (wanted.empty()) return;

    const Loss loss(c, graph);
    const BuiltGradient built = build_gradient(graph, loss, wanted);
    ASSERT_NO_THROW(verify(built.graph)) << to_text(built.graph);
    ASSERT_EQ(built.dx.size(), wanted.size());
    std::vector<std::pair<std::string, HostTensor>> feeds;
    for (std::size_t i = 0; i < loss.inputs().size(); ++i) {
      feeds.emplace_back("x" + std::to_string(i), loss.inputs()[i]);
    }
    for (std::size_t i = 0; i < loss.dy().size(); ++i) {
      feeds.emplace_back("dy" + std::to_string(i), loss.dy()[i]);
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      SCOPED_TRACE("input " + std::to_string(i));
      const TensorType& type = graph.type(graph.nodes[0].inputs[i]);
      HostTensor dx(type);  // 0 if there is no gradient
      if (built.dx[i]) {
        ASSERT_EQ(built.graph.type(built.dx[i]), type);
        dx = evaluate(built.graph, feeds, {built.dx[i]})[0];
      }
      EXPECT_EQ(compare(dx, loss.slope(i), c.gradient_tolerance), "") << to_text(built.graph);
    }
  });
}

std::vector<std::string> operators_to_run() {
  std::vector<std::string> names;
  for (const Operator& op : operator_set().all()) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, OperatorTest, ::testing::ValuesIn(operators_to_run()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace tandem::testing
