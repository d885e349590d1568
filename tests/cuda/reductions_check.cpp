#include "tests/cuda/reductions_check.h"

#include <cstring>
#include <random>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"

namespace tandem::testing {
namespace {

FakeRuntimeOptions options_of(int multiprocessors) {
  FakeRuntimeOptions options;
  if (multiprocessors == 0) return options;
  options.properties.name = "Small GPU";
  options.properties.major = 9;
  options.properties.multiprocessors = multiprocessors;
  return options;
}

// A tensor without storage is an absent operand.
bool is_absent(const HostTensor& x) { return x.data() == nullptr && x.type().elements() > 0; }

std::vector<HostTensor> in_type(const std::vector<ReducedInput>& inputs, DType dtype) {
  std::vector<HostTensor> tensors;
  for (const ReducedInput& input : inputs) {
    const bool follows = input.numbers.dtype() == DType::float32 && !input.statistic;
    tensors.push_back(input.absent ? HostTensor()
                      : follows    ? input.numbers.converted(dtype)
                                   : input.numbers);
  }
  return tensors;
}

std::vector<HostTensor> in_doubles(const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> tensors;
  for (const HostTensor& x : inputs) {
    const bool wider = !is_absent(x) && is_float(x.dtype());
    tensors.push_back(wider ? x.converted(DType::float64) : x);
  }
  return tensors;
}

std::vector<HostTensor> reference_of(const ReductionCheck& check,
                                     const std::vector<HostTensor>& inputs) {
  const Graph graph = reduction_graph(check.op, inputs, check.attributes);
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  EXPECT_NE(kernel, nullptr) << "no reference for " << check.op;
  return kernel == nullptr ? std::vector<HostTensor>()
                           : run_node(*kernel, graph, graph.nodes[0], inputs);
}

// Allows one rounding of the result.
double tolerance_of(const ReductionCheck& check, DType dtype) {
  if (dtype == DType::float16) return std::max(check.tolerance, 1e-3);
  if (dtype == DType::bfloat16) return std::max(check.tolerance, 8e-3);
  return check.tolerance;
}

bool have_same_bits(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_absent(a[i]) || a[i].bytes() == 0) continue;
    if (std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) != 0) return false;
  }
  return true;
}

void check_on(ReductionGpu& gpu, const ReductionCheck& check, const std::vector<HostTensor>& inputs,
              const std::vector<HostTensor>& expected) {
  const Graph graph = reduction_graph(check.op, inputs, check.attributes);
  const Kernel* kernel = gpu.kernel_for(graph);
  ASSERT_NE(kernel, nullptr) << "all kernels refuse";
  RunOptions options = gpu.run_options();
  for (const ReducedInput& input : check.inputs)
    options.input_layouts.push_back(input.layout ? *input.layout
                                                 : row_major(input.numbers.shape()));
  options.output_layouts = check.output_layouts;
  if (check.only_first_output) options.only_output = 0;
  const auto run = [&] { return run_node(*kernel, graph, graph.nodes[0], inputs, options); };
  const std::vector<HostTensor> results = run();
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_absent(results[i])) continue;  // not asked for
    EXPECT_EQ(compare(results[i], expected[i], tolerance_of(check, results[i].dtype())), "")
        << "output " << i;
  }
  EXPECT_TRUE(have_same_bits(results, run())) << "results vary";
  EXPECT_EQ(gpu.problem(), "");
}

}  // namespace

ReductionGpu::ReductionGpu(int multiprocessors) : FakeGpu(options_of(multiprocessors)) {
  cuda::add_reduction_kernels(kernels, gpu);
}

const Kernel* ReductionGpu::kernel_for(const Graph& graph) const {
  return choose_kernel(kernels, plain_request(graph, graph.nodes[0], facts));
}

HostTensor some_numbers(Shape shape, unsigned start, double low, double high) {
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  std::mt19937 random(start);
  for (float& x : tensor.as<float>())
    x = static_cast<float>(low + (high - low) * static_cast<double>(random()) * 0x1p-32);
  return tensor;
}

HostTensor some_integers(Shape shape, DType dtype, std::int64_t low, std::int64_t high,
                         unsigned start) {
  HostTensor tensor(TensorType{DType::int64, std::move(shape)});
  std::mt19937_64 random(start);
  for (std::int64_t& x : tensor.as<std::int64_t>())
    x = low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low));
  return tensor.converted(dtype);
}

ReducedInput no_input() {
  ReducedInput input;
  input.absent = true;
  return input;
}

Graph reduction_graph(const std::string& op, const std::vector<HostTensor>& inputs,
                      const Attributes& attributes) {
  static const OperatorSet operators = all_operators();
  GraphBuilder builder(operators);
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ids.push_back(is_absent(inputs[i]) ? ValueId{}
                                       : builder.input("x" + std::to_string(i), inputs[i].type()));
  }
  builder.set_scope({"reduced"});
  const std::vector<ValueId> outputs = builder.node(op, ids, attributes);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    builder.output("y" + std::to_string(i), outputs[i]);
  return builder.finish();
}

void check_reduction(const ReductionCheck& check) {
  for (const DType dtype : check.types) {
    const std::vector<HostTensor> inputs = in_type(check.inputs, dtype);
    const std::vector<HostTensor> expected = reference_of(check, in_doubles(inputs));
    for (const int multiprocessors : {0, 1}) {
      SCOPED_TRACE(check.op + " " + std::string(name_of(dtype)) + " of " +
                   to_string(check.inputs[0].numbers.shape()) +
                   (multiprocessors == 0 ? "" : " on a small GPU"));
      ReductionGpu gpu(multiprocessors);
      check_on(gpu, check, inputs, expected);
    }
  }
}

}  // namespace tandem::testing
