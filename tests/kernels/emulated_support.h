// An emulated device with its streams, and kernels that do one simple thing.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "kernels/emulated/emulated_device.h"

namespace tandem::testing {

/// A link of 1 GB/s with 1 ms latency, 1 MiB of memory.
struct Emulated {
  explicit Emulated(EmulatedOptions options = {.memory_bytes = std::size_t{1} << 20,
                                               .bytes_per_second = 1e9,
                                               .latency_seconds = 1e-3}) {
    options.monitor = monitor = std::make_shared<OrderChecker>(options.check_order);
    device = make_emulated_device(options);
    compute = device->make_stream(StreamKind::compute);
    copy_in = device->make_stream(StreamKind::copy_in);
    copy_out = device->make_stream(StreamKind::copy_out);
    settled = device->make_event();
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

  std::shared_ptr<OrderChecker> monitor;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> compute, copy_in, copy_out;
  std::unique_ptr<Event> settled;
  std::uint64_t settled_count = 0;
};

/// y = a x + b over n floats; just b if there is no input.
inline std::unique_ptr<PreparedKernel> affine(float a, float b, std::size_t n) {
  return prepared([=](const KernelArguments& arguments) {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (std::size_t i = 0; i < n; ++i) y[i] = x == nullptr ? b : a * x[i] + b;
  });
}

/// A call of a kernel with one input (may be null) and one output of `bytes` bytes each.
struct UnaryCall {
  UnaryCall(PreparedKernel& kernel, std::string name, const void* x, void* y, std::size_t bytes,
            double seconds = 0)
      : input(x), output(y), name(std::move(name)), kernel(kernel), seconds(seconds) {
    if (x != nullptr) accesses.push_back({x, bytes, false});
    accesses.push_back({y, bytes, true});
  }
  KernelCall call() const {
    KernelCall result;
    result.kernel = &kernel;
    result.arguments = {&input, &output, nullptr, &context};
    result.inputs = result.outputs = 1;
    result.operation = {name, seconds, accesses};
    return result;
  }
  const void* input;
  void* output;
  std::string name;
  PreparedKernel& kernel;
  double seconds;
  StepContext context;
  std::vector<ByteAccess> accesses;
};

inline std::vector<float> read_floats(Device& device, const void* address, std::size_t n) {
  std::vector<float> result(n);
  device.to_host(result.data(), address, n * sizeof(float));
  return result;
}

/// The text of the Error that f throws; "" if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tandem::testing
