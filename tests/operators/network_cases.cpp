// Helpers of the case tables of the network operators.
#include "tests/operators/network_cases.h"

#include "engine/graph/builder.h"

namespace tandem::testing {

std::vector<double> pattern(std::int64_t count, int k) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>((37 * i + 11 * k) % 101 - 50) / 64.0);
  }
  return values;
}

CaseInput patterned(Shape shape, int k) {
  const std::int64_t count = element_count(shape);
  return valued(std::move(shape), pattern(count, k));
}

CaseInput random_input(Shape shape) { return {.shape = std::move(shape)}; }

CaseInput valued(Shape shape, std::vector<double> values, DType dtype) {
  return {
      .shape = std::move(shape), .dtype = dtype, .fill = Fill::values, .values = std::move(values)};
}

CaseInput ints(std::vector<double> values, DType dtype) {
  const auto count = static_cast<std::int64_t>(values.size());
  return valued({count}, std::move(values), dtype);
}

CaseInput count_of(double rows) { return valued({}, {rows}, DType::int32); }

CaseInput indices(Shape shape, double classes, DType dtype) {
  return {
      .shape = std::move(shape), .dtype = dtype, .fill = Fill::integers, .low = 0, .high = classes};
}

CaseInput absent() { return {.absent = true}; }

CaseInput fixed(CaseInput input) {
  input.differentiable = false;
  return input;
}

OperatorCase& add_case(Cases& cases, std::string op, std::string name,
                       std::vector<CaseInput> inputs, Attributes attributes) {
  OperatorCase c;
  if (name.starts_with("torch_")) c.expected = expectation(op + "/" + name.substr(6));
  c.name = std::move(name);
  c.op = std::move(op);
  c.inputs = std::move(inputs);
  c.attributes = std::move(attributes);
  cases.push_back(std::move(c));
  return cases.back();
}

std::vector<CaseInput> outputs_of(const std::string& op, const std::vector<CaseInput>& inputs,
                                  const Attributes& attributes) {
  static const OperatorSet operators = all_operators();
  OperatorCase c;
  c.name = op;
  c.op = op;
  c.inputs = inputs;
  c.attributes = attributes;
  const Graph graph = case_graph(c, operators, DType::float64);
  const std::vector<HostTensor> tensors = case_inputs(c, DType::float64);
  std::vector<std::pair<std::string, HostTensor>> feeds;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!inputs[i].absent) feeds.emplace_back("x" + std::to_string(i), tensors[i]);
  }
  std::vector<CaseInput> outputs;
  for (const HostTensor& y : evaluate(graph, feeds, graph.nodes[0].outputs)) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < y.type().elements(); ++i) values.push_back(y.number(i));
    const DType dtype = y.dtype() == DType::float64 ? DType::float32 : y.dtype();
    outputs.push_back(valued(y.shape(), std::move(values), dtype));
  }
  return outputs;
}

}  // namespace tandem::testing
