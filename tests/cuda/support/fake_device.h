// A CUDA device over the fake runtime with its streams, and a kernel that does one simple thing.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "kernels/cuda/device/cuda_device.h"
#include "kernels/shared/block/step_context.h"
#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

struct FakeDeviceOptions {
  FakeRuntimeOptions runtime = {};
  std::size_t memory_bytes = std::size_t{1} << 20;
  bool monitored = true;
};

/// Order is checked twice: by the monitor, which sees what streams were asked for, and by the fake
/// runtime, which sees what they asked CUDA for.
struct FakeDevice {
  explicit FakeDevice(const FakeDeviceOptions& options = {})
      : runtime(std::make_shared<FakeRuntime>(options.runtime)) {
    CudaOptions device_options;
    device_options.memory_bytes = options.memory_bytes;
    if (options.monitored) {
      monitor = std::make_shared<OrderChecker>();
      device_options.monitor = runtime->watch(monitor);
    }
    device = cuda::make_device(device_options, runtime, std::make_shared<GivenLibraries>());
    compute = device->make_stream(StreamKind::compute);
    copy_in = device->make_stream(StreamKind::copy_in);
    copy_out = device->make_stream(StreamKind::copy_out);
    settled = device->make_event();
    runtime->clear_calls();
  }

  /// Pinned memory of the host, which GPUs copy at full speed.
  float* pinned(std::size_t count, float value = 0) {
    void* memory = nullptr;
    EXPECT_EQ(runtime->allocate_pinned(memory, count * sizeof(float)), cudaSuccess);
    std::fill_n(static_cast<float*>(memory), count, value);
    return static_cast<float*>(memory);
  }
  /// Waits for the stream without reporting to the monitor: nothing races, but nothing is ordered
  /// for it.
  void settle(Stream& stream) {
    stream.record(*settled, ++settled_count);
    settled->synchronize(settled_count);
  }
  std::string first_error() const {
    const std::vector<std::string> errors = monitor->order_errors();
    return errors.empty() ? "" : errors[0];
  }

  std::shared_ptr<FakeRuntime> runtime;
  std::shared_ptr<OrderChecker> monitor;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> compute, copy_in, copy_out;
  std::unique_ptr<Event> settled;
  std::uint64_t settled_count = 0;
};

/// y = a x + b + step over n floats; without an input a x is left out, without a context the step.
struct AffineBody {
  const float* x;
  float* y;
  float a, b;
  long long n;
  const cuda::DeviceStepContext* context;

  template <class Block>
  void operator()(Block& block) const {
    const float step = context == nullptr ? 0 : static_cast<float>(context->step);
    block.each([&](int thread) {
      for (long long i = thread; i < n; i += block.threads())
        y[i] = (x == nullptr ? 0 : a * x[i]) + b + step;
    });
  }
};

inline std::unique_ptr<PreparedKernel> affine_kernel(std::shared_ptr<FakeRuntime> runtime, float a,
                                                     float b, std::size_t n,
                                                     const char* name = "affine") {
  return prepared([=](const KernelArguments& arguments) {
    const AffineBody body{static_cast<const float*>(arguments.inputs[0]),
                          static_cast<float*>(arguments.outputs[0]),
                          a,
                          b,
                          static_cast<long long>(n),
                          reinterpret_cast<const cuda::DeviceStepContext*>(arguments.context)};
    runtime->launch(host_launch(name, {1, 1, 64, 0}, body),
                    static_cast<cudaStream_t>(arguments.queue));
  });
}

/// A call of a kernel with one input (may be null) and one output of `bytes` bytes each.
struct AffineCall {
  AffineCall(PreparedKernel& kernel, std::string name, const void* x, void* y, std::size_t bytes)
      : input(x), output(y), name(std::move(name)), kernel(kernel) {
    if (x != nullptr) accesses.push_back({x, bytes, false});
    accesses.push_back({y, bytes, true});
  }
  KernelCall call() const {
    KernelCall result;
    result.kernel = &kernel;
    result.arguments = {&input, &output, nullptr, has_context ? &context : nullptr};
    result.inputs = result.outputs = 1;
    result.operation = {name, 0.001, accesses};
    return result;
  }
  const void* input;
  void* output;
  std::string name;
  PreparedKernel& kernel;
  StepContext context;
  bool has_context = true;
  std::vector<ByteAccess> accesses;
};

inline std::vector<float> floats_at(Device& device, const void* address, std::size_t n) {
  std::vector<float> result(n);
  device.to_host(result.data(), address, n * sizeof(float));
  return result;
}

/// The text of the Error that f throws; "" if it throws none.
template <class F>
std::string error_text_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tandem::testing
