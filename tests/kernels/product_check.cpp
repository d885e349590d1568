#include "tests/kernels/product_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"
#include "tests/harness/operator_case.h"

namespace tandem::testing {
namespace {

HostTensor next_random_tensor(const Shape& shape, std::mt19937& random) {
  HostTensor tensor(TensorType{DType::float32, shape});
  // Few distinct values: maxima have ties, and small errors stay small.
  for (float& x : tensor.as<float>()) {
    x = static_cast<float>(static_cast<int>(random() % 65) - 32) / 32.0f;
  }
  return tensor;
}

void walk(const Shape& shape, const Layout& layout, const auto& f) {
  const std::int64_t count = element_count(shape);
  Shape index(shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = 0;
    for (std::size_t k = 0; k < index.size(); ++k) place += index[k] * layout.strides[k];
    f(i, place);
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
}

HostTensor laid_out(const HostTensor& tensor, const Layout& layout) {
  HostTensor result(TensorType{DType::float32, {span_elements(layout, tensor.shape()) + 16}});
  const auto from = tensor.as<float>();
  const auto to = result.as<float>();
  std::memset(result.data(), 0xff, result.bytes());
  walk(tensor.shape(), layout, [&](std::int64_t i, std::int64_t place) { to[place] = from[i]; });
  return result;
}

Layout granted(const std::vector<LayoutConstraint>& constraints, std::size_t i,
               const Shape& shape) {
  if (i >= constraints.size()) return row_major(shape);
  if (constraints[i].kind == LayoutConstraint::Kind::channels_last) return channels_last(shape);
  if (constraints[i].kind == LayoutConstraint::Kind::exact) return constraints[i].layout;
  return row_major(shape);
}

struct Setting {
  std::string name;
  DeviceFacts facts;
};

std::vector<Setting> settings_of_products() {
  std::vector<Setting> result;
  const std::vector<std::string> all = processor_features();
  for (const int threads : {1, 2, 3}) {
    for (const bool narrow : {true, false}) {
      DeviceFacts facts;
      facts.threads = threads;
      facts.features = all;
      if (narrow) facts.features = {"avx2"};
      if (narrow && all.size() < 2) continue;  // equal to the wide setting
      result.push_back(
          {(narrow ? "avx2, " : "all, ") + std::to_string(threads) + " threads", facts});
    }
  }
  return result;
}

void run_once(const Kernel& kernel, const Proposal& proposal, KernelRequest request,
              const ProductCase& product, const std::vector<HostTensor>& inputs,
              const HostTensor& expected, const std::string& where) {
  SCOPED_TRACE(where);
  std::vector<HostTensor> held;
  std::vector<const void*> in;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    Operand& operand = request.inputs[i];
    in.push_back(nullptr);
    if (!operand.present) continue;
    operand.layout = i < product.orders.size() && !product.orders[i].empty()
                         ? permuted(operand.type.shape, product.orders[i])
                         : granted(proposal.inputs, i, operand.type.shape);
    held.push_back(laid_out(inputs[i], operand.layout));
    in.back() = held.back().data();
  }
  Operand& result = request.outputs[0];
  result.layout = granted(proposal.outputs, 0, result.type.shape);
  HostTensor y(TensorType{DType::float32, {span_elements(result.layout, result.type.shape) + 16}});
  std::memset(y.data(), 0xff, y.bytes());
  std::vector<void*> out(request.outputs.size(), nullptr);
  out[0] = y.data();
  if (kernel.op == "GemmSgd") {  // in place
    result.layout = request.inputs[0].layout;
    y = held[0];
    out[0] = y.data();
  }
  const auto prepared = kernel.prepare(request);
  HostTensor workspace(
      TensorType{DType::uint8, {static_cast<std::int64_t>(prepared->workspace_bytes) + 64}});
  std::memset(workspace.data(), 0xff, workspace.bytes());
  const StepContext context;
  for (int repeat = 0; repeat < (kernel.op == "GemmSgd" ? 1 : 2); ++repeat) {
    prepared->run({in.data(), out.data(), workspace.data(), &context});
  }
  const auto bytes = workspace.as<std::uint8_t>();
  for (std::size_t i = prepared->workspace_bytes; i < bytes.size(); ++i) {
    ASSERT_EQ(bytes[i], 0xff) << "writes past its workspace";
  }
  const auto got = std::as_const(y).as<float>(), wanted = expected.as<float>();
  double largest = 1e-30, worst = 0;
  for (const float x : wanted) largest = std::max(largest, std::fabs(static_cast<double>(x)));
  std::vector<bool> element(got.size(), false);
  walk(expected.shape(), result.layout, [&](std::int64_t i, std::int64_t place) {
    element[static_cast<std::size_t>(place)] = true;
    const double difference = std::fabs(static_cast<double>(got[place]) - wanted[i]);
    if (!(difference <= worst)) worst = std::isnan(difference) ? 1e30 : difference;
  });
  EXPECT_LE(worst, product.tolerance * largest) << "largest magnitude " << largest;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!element[i]) {
      ASSERT_TRUE(std::isnan(got[i])) << "writes outside of its result";
    }
  }
}

}  // namespace

void check_product(const ProductCase& product) {
  static const OperatorSet operators = all_operators();
  static const KernelList list = [] {
    KernelList kernels;
    add_product_kernels(kernels);
    return kernels;
  }();
  std::mt19937 random(1);
  GraphBuilder builder(operators);
  std::vector<ValueId> ids;
  std::vector<HostTensor> inputs;
  std::string shapes = product.op;
  for (std::size_t i = 0; i < product.inputs.size(); ++i) {
    shapes += " " + to_string(product.inputs[i]);
    const bool absent = std::find(product.absent.begin(), product.absent.end(),
                                  static_cast<int>(i)) != product.absent.end();
    inputs.push_back(absent ? HostTensor() : next_random_tensor(product.inputs[i], random));
    ids.push_back(
        absent ? ValueId{}
               : builder.input("x" + std::to_string(i), {DType::float32, product.inputs[i]}));
  }
  if (product.op == "MaxPoolGrad") {  // y must be the result of MaxPool
    Attributes attributes = product.attributes;
    Graph pool = [&] {
      GraphBuilder forward(operators);
      forward.add_node("MaxPool", {forward.input("x", {DType::float32, product.inputs[0]})},
                       attributes);
      return forward.finish();
    }();
    const auto* kernel = choose_kernel(reference_list(), plain_request(pool, pool.nodes[0]));
    inputs[1] = run_node(*kernel, pool, pool.nodes[0], {inputs[0]})[0];
  }
  builder.node(product.op, ids, product.attributes);
  const Graph graph = builder.finish();
  const Node& node = graph.nodes[0];
  const KernelRequest plain = plain_request(graph, node);
  const Kernel* reference = choose_kernel(reference_list(), plain);
  ASSERT_NE(reference, nullptr);
  const HostTensor expected = run_node(*reference, graph, node, inputs)[0];

  std::vector<std::string> ran;
  for (const Setting& setting : settings_of_products()) {
    KernelRequest request = plain;
    request.facts = &setting.facts;
    for (std::size_t i = 1; i < request.outputs.size(); ++i) request.outputs[i].present = false;
    for (const Kernel& kernel : list) {
      if (kernel.op != product.op || kernel.refuse(request)) continue;
      ran.push_back(kernel.name);
      const auto proposals = kernel.propose(request);
      for (std::size_t i = 0; i < proposals.size(); ++i) {
        run_once(
            kernel, proposals[i], request, product, inputs, expected,
            shapes + ": " + kernel.name + ", proposal " + std::to_string(i) + ", " + setting.name);
      }
    }
  }
  for (const std::string& name : product.kernels) {
    EXPECT_NE(std::find(ran.begin(), ran.end(), name), ran.end())
        << shapes << ": " << name << " refused";
  }
}

Attributes conv_attributes(Ints strides, Ints pads, Ints dilations, std::int64_t group) {
  return {{"strides", std::move(strides)},
          {"pads", std::move(pads)},
          {"dilations", std::move(dilations)},
          {"group", group}};
}

}  // namespace tandem::testing
