// Every case of every operator on the devices of each family that this machine has: operands in
// the device's memory, kernels enqueued on its stream.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "kernels/device_backend.h"
#include "tests/harness/typed_case.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

class DeviceMemory final : public OperandMemory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  void* put(const void* bytes, std::size_t count) override {
    constexpr std::size_t aligned = 256;
    kept_.push_back(device_.allocate(count + aligned));
    const auto start = reinterpret_cast<std::uintptr_t>(kept_.back()->address());
    void* const to = reinterpret_cast<void*>((start + aligned - 1) / aligned * aligned);
    device_.to_device(to, bytes, count);
    return to;
  }
  void get(void* to, const void* from, std::size_t count) override {
    device_.to_host(to, from, count);
  }
  void clear() override { kept_.clear(); }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Memory>> kept_;
};

/// A kernel of the device whose `run` enqueues it on the stream and waits for it.
Kernel enqueued(const Kernel& kernel, Device& device, Stream& stream) {
  struct OnStream final : PreparedKernel {
    void run(const KernelArguments& given) noexcept override {
      StepContext context;  // streams take the host's
      device->to_host(&context, given.context, sizeof context);
      ErrorWord error;
      context.error = &error;
      KernelCall call{.kernel = kernel.get(), .arguments = given};
      call.arguments.context = &context;
      call.inputs = inputs;
      call.outputs = outputs;
      call.operation.name = "case";
      stream->run(call);
      stream->synchronize();
      EXPECT_EQ(error.packed.load(), 0);
    }
    std::unique_ptr<PreparedKernel> kernel;
    Device* device = nullptr;
    Stream* stream = nullptr;
    int inputs = 0, outputs = 0;
  };
  Kernel result = kernel;
  result.prepare = [&kernel, &device, &stream](const KernelRequest& request) {
    auto on_stream = std::make_unique<OnStream>();
    on_stream->kernel = kernel.prepare(request);
    on_stream->workspace_bytes = on_stream->kernel->workspace_bytes;
    on_stream->device = &device;
    on_stream->stream = &stream;
    on_stream->inputs = static_cast<int>(request.inputs.size());
    on_stream->outputs = static_cast<int>(request.outputs.size());
    return on_stream;
  };
  return result;
}

class OperatorsOnDevices : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorsOnDevices, Forward) {
  const DeviceFamily& family = *family_of_use(GetParam() + ":0");
  for (const DeviceBackend& backend : device_backends()) {
    if (backend.family != &family) continue;
    if (backend.look) {
      const DeviceReport found = backend.look();
      if (!found.problem.empty()) GTEST_SKIP() << found.problem;
    }
    const std::unique_ptr<Device> device =
        backend.open({.name = GetParam(), .memory_bytes = std::size_t{1} << 30});
    const std::unique_ptr<Stream> stream = device->make_stream();
    DeviceMemory memory(*device);
    for (const OperatorCase& c : all_cases()) {
      SCOPED_TRACE(c.op + ", case " + c.name);
      const TypedCase typed(c, operator_set(), DType::float32);
      int ran = 0;
      for (const Kernel& kernel : device->kernels()) {
        const KernelRequest request = plain_request(typed.graph, typed.node(), device->facts());
        if (kernel.op != c.op || (kernel.refuse && kernel.refuse(request))) continue;
        SCOPED_TRACE(kernel.name);
        RunOptions options;
        options.facts = &device->facts();
        options.memory = &memory;
        expect_equal(run_node(enqueued(kernel, *device, *stream), typed.graph, typed.node(),
                              typed.inputs, options),
                     typed.expected, c.tolerance);
        ++ran;
      }
      // Hardware may leave operators to the host: tests/cuda/operators_without_kernel.txt.
      EXPECT_TRUE(ran > 0 || family.is_hardware) << "every kernel refuses";
    }
    memory.clear();
  }
}

std::vector<std::string> families_to_run() {
  std::vector<std::string> kinds;
  for (const DeviceFamily& family : device_families()) kinds.emplace_back(family.kind);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Families, OperatorsOnDevices, ::testing::ValuesIn(families_to_run()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace tandem::testing
