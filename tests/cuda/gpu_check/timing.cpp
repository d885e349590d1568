#include "tests/cuda/gpu_check/timing.h"

#include <algorithm>
#include <stdexcept>

#include "engine/graph/builder.h"

namespace tandem::gpu_check {

Pinned::Pinned(CheckGpu& gpu, std::size_t bytes) : gpu_(gpu) {
  gpu.check(gpu.runtime().allocate_pinned(memory_, bytes), "an allocation of pinned memory");
  auto* const numbers = static_cast<unsigned char*>(memory_);
  for (std::size_t i = 0; i < bytes; ++i) numbers[i] = static_cast<unsigned char>(i * 37 % 64 + 1);
}
Pinned::~Pinned() { (void)gpu_.runtime().release_pinned(memory_); }

OwnStream::OwnStream(CheckGpu& gpu) : gpu_(gpu) {
  gpu.check(gpu.runtime().make_stream(stream_), "making a stream");
}
OwnStream::~OwnStream() { (void)gpu_.runtime().destroy_stream(stream_); }

Timer::Timer(CheckGpu& gpu) : gpu_(gpu) {
  gpu.check(gpu.runtime().make_timer(event_), "making a timer");
}
Timer::~Timer() { (void)gpu_.runtime().destroy_event(event_); }
void Timer::record(cudaStream_t stream) {
  gpu_.check(gpu_.runtime().record(event_, stream), "recording a timer");
}
double Timer::seconds_since(const Timer& before) const {
  float milliseconds = 0;
  gpu_.check(gpu_.runtime().milliseconds(milliseconds, before.event_, event_), "reading timers");
  return static_cast<double>(milliseconds) * 1e-3;
}

PreparedProduct::PreparedProduct(CheckGpu& gpu, std::int64_t m, std::int64_t k, std::int64_t n,
                                 DType type)
    : gpu_(gpu), operators_(all_operators()) {
  GraphBuilder g(operators_);
  const ValueId a = g.input("a", {type, {m, k}}), b = g.input("b", {type, {k, n}});
  g.output("y", g.add_node("MatMul", {a, b}));
  graph_ = g.finish();
  const KernelRequest request = testing::plain_request(graph_, graph_.nodes[0], gpu.facts());
  std::vector<std::string> refusals;
  const Kernel* const kernel = choose_kernel(gpu.kernels(), request, &refusals);
  if (kernel == nullptr) {
    std::string text = "no kernel takes it";
    for (const std::string& refusal : refusals) text += "; " + refusal;
    throw std::runtime_error(text);
  }
  name_ = kernel->name;
  kernel_ = kernel->prepare(request);
  for (const Operand& operand : request.inputs) {
    HostTensor numbers(TensorType{DType::float32, operand.type.shape});
    std::uint32_t state = 1;
    for (float& x : numbers.as<float>()) {
      state = state * 1664525u + 1013904223u;
      x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    const HostTensor converted = numbers.converted(type);
    inputs_.push_back(gpu.operands().put(converted.data(), converted.bytes()));
  }
  output_ = gpu.operands().room(HostTensor(request.outputs[0].type).bytes());
  workspace_ = gpu.operands().room(kernel_->workspace_bytes);
  const StepContext context;
  context_ = static_cast<const StepContext*>(gpu.operands().put(&context, sizeof context));
}

void PreparedProduct::run(cudaStream_t stream) const {
  kernel_->run({inputs_.data(), &output_, workspace_, context_, stream});
}

void PreparedProduct::poison() const {
  const std::size_t bytes = HostTensor(graph_.type(graph_.nodes[0].outputs[0])).bytes();
  gpu_.check(gpu_.runtime().fill(output_, 0xff, bytes, gpu_.stream()), "filling");
  gpu_.synchronize();
}

HostTensor PreparedProduct::result() const {
  HostTensor y(graph_.type(graph_.nodes[0].outputs[0]));
  gpu_.operands().get(y.data(), output_, y.bytes());
  return y;
}

}  // namespace tandem::gpu_check
