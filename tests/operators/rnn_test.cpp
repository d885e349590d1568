// Recurrent layers that case tables do not cover: work split between threads, and lengths of 0.
#include "tests/operators/network_cases.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t time_steps = 3, batch = 16, hidden = 72;

HostTensor patterned_tensor(const Shape& shape, int k, DType dtype) {
  return HostTensor::from<double>(shape, pattern(element_count(shape), k)).converted(dtype);
}

struct WideLayer {
  const char* kind;
  std::int64_t gates;
  std::int64_t directions = 1;
  bool linear_before_reset = false;

  bool is_lstm() const { return gates == 4; }

  Attributes attributes() const {
    const std::string one = gates == 1 ? "Tanh" : gates == 3 ? "Sigmoid,Tanh" : "Sigmoid,Tanh,Tanh";
    const std::size_t count = (gates == 1   ? 1u
                               : gates == 3 ? 2u
                                            : 3u) *
                              static_cast<std::size_t>(directions);
    return {{"kind", std::string(kind)},
            {"direction", std::string(directions == 2 ? "bidirectional" : "forward")},
            {"activations", directions == 2 ? one + "," + one : one},
            {"alphas", Floats(count)},
            {"betas", Floats(count)},
            {"linear_before_reset", std::int64_t{linear_before_reset}}};
  }

  // Weights are small, so that sums do not grow with the number of units.
  std::vector<HostTensor> inputs(DType dtype) const {
    const Shape state{directions, batch, hidden};
    const Shape r_shape{directions, gates * hidden, hidden};
    std::vector<double> r = pattern(element_count(r_shape), 1);
    for (double& x : r) x /= 8;
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < batch; ++b) lengths.push_back(b % (time_steps + 1));
    return {patterned_tensor({time_steps, batch, directions, gates * hidden}, 0, dtype),
            HostTensor::from<double>(r_shape, r).converted(dtype),
            linear_before_reset ? patterned_tensor({directions, hidden}, 2, dtype) : HostTensor(),
            HostTensor::from<std::int64_t>({batch}, lengths),
            patterned_tensor(state, 3, dtype),
            is_lstm() ? patterned_tensor(state, 4, dtype) : HostTensor(),
            HostTensor()};
  }

  std::vector<HostTensor> gradient_inputs(const std::vector<HostTensor>& x,
                                          const std::vector<HostTensor>& y, DType dtype) const {
    return {patterned_tensor(y[0].shape(), 5, dtype),
            patterned_tensor(y[1].shape(), 6, dtype),
            HostTensor(),
            x[1],
            x[3],
            x[4],
            x[5],
            x[6],
            y[0],
            y[2],
            is_lstm() ? y[3] : HostTensor()};
  }
};

const Kernel& kernel_named(const std::string& name) {
  for (const Kernel& kernel : cpu_list()) {
    if (kernel.name == name) return kernel;
  }
  throw std::runtime_error("no kernel " + name);
}

// The work is split into as many parts as threads: 2 T B G H^2 operations are several grains.
TEST(Rnn, IsCutBetweenThreads) {
  for (const WideLayer& layer : {WideLayer{"rnn", 1, 2}, WideLayer{"gru", 3, 2},
                                 WideLayer{"gru", 3, 1, true}, WideLayer{"lstm", 4, 2}}) {
    SCOPED_TRACE(std::string(layer.kind) + (layer.linear_before_reset ? ", linear" : ""));
    const Attributes attributes = layer.attributes();
    const std::vector<HostTensor> wide_x = layer.inputs(DType::float64);
    const Graph wide = single_node("RnnScan", wide_x, attributes);
    const std::vector<HostTensor> y =
        run_node(kernel_named("reference.rnn_scan"), wide, wide.nodes[0], wide_x);
    const std::vector<HostTensor> wide_dy = layer.gradient_inputs(wide_x, y, DType::float64);
    const Graph wide_grad = single_node("RnnScanGrad", wide_dy, attributes);
    const std::vector<HostTensor> dx =
        run_node(kernel_named("reference.rnn_scan_grad"), wide_grad, wide_grad.nodes[0], wide_dy);

    std::vector<HostTensor> x = wide_x, dy = wide_dy;
    for (std::vector<HostTensor>* all : {&x, &dy}) {
      for (HostTensor& one : *all) {
        if (one.dtype() == DType::float64) one = one.converted(DType::float32);
      }
    }
    const Graph graph = single_node("RnnScan", x, attributes);
    const Graph grad = single_node("RnnScanGrad", dy, attributes);
    std::vector<HostTensor> first;
    for (const int threads : {1, 2, 3, 5}) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      DeviceFacts facts = host_facts();
      facts.threads = threads;
      RunOptions options;
      options.facts = &facts;
      const Kernel& kernel = kernel_named("cpu.rnn_scan");
      KernelRequest request = plain_request(graph, graph.nodes[0], facts);
      if (kernel.refuse(request)) GTEST_SKIP() << *kernel.refuse(request);
      std::vector<HostTensor> got = run_node(kernel, graph, graph.nodes[0], x, options);
      expect_equal(got, y, 1e-5);
      expect_equal(run_node(kernel_named("cpu.rnn_scan_grad"), grad, grad.nodes[0], dy, options),
                   dx, 1e-5);
      if (first.empty()) first = got;
      expect_equal(got, first, 0);  // one thread computes each sum
    }
  }
}

TEST(Rnn, LengthsOutOfRangeAreReportedAndClamped) {
  const WideLayer layer{"lstm", 4};
  for (const std::int64_t wrong : {std::int64_t{-2}, time_steps + 1}) {
    std::vector<HostTensor> x = layer.inputs(DType::float32), clamped = x;
    std::vector<std::int64_t> lengths(batch, time_steps);
    lengths[5] = wrong;
    x[3] = HostTensor::from<std::int64_t>({batch}, lengths);
    lengths[5] = wrong < 0 ? 0 : time_steps;
    clamped[3] = HostTensor::from<std::int64_t>({batch}, lengths);
    const Graph graph = single_node("RnnScan", x, layer.attributes());
    each_kernel(graph, [&](const Kernel& kernel) {
      ErrorWord error;
      StepContext context;
      context.error = &error;
      const std::vector<HostTensor> y = run_in_context(kernel, graph, clamped, context);
      EXPECT_EQ(error.packed.load(), 0);
      expect_equal(run_in_context(kernel, graph, x, context), y, 0);
      EXPECT_EQ(error.packed.load() >> 32, ErrorWord::index_out_of_range);
      EXPECT_EQ(error.value.load(), wrong);
    });
  }
}

}  // namespace
}  // namespace tandem::testing
