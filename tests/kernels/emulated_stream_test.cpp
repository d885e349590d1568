// Streams of the emulated device: real kernels, step contexts, ring buffers that allocate nothing.
#include <gmock/gmock.h>
#include <omp.h>

#include <atomic>

#include "engine/graph/builder.h"
#include "engine/lower/kernel_choice.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/threads/onednn_regions.h"
#include "tests/harness/allocation_count.h"
#include "tests/kernels/emulated_support.h"

namespace tandem::testing {
namespace {

using ::testing::Each;

TEST(EmulatedStream, RunsTheCpusKernelsOnOneThread) {
  Emulated emulated;
  Device& device = *emulated.device;
  EXPECT_EQ(device.facts().kind, "emulated");
  EXPECT_EQ(device.facts().threads, 1);
  const OperatorSet operators = all_operators();
  GraphBuilder builder(operators);
  const TensorType square{DType::float32, {8, 8}};
  builder.add_node("MatMul", {builder.input("a", square), builder.input("b", square)});
  const Graph graph = builder.finish();
  const KernelRequest request = plain_request(graph, NodeId{0}, device, true);
  const Kernel* kernel = choose_kernel(device.kernels(), request);
  ASSERT_NE(kernel, nullptr);
  EXPECT_FALSE(kernel->reference);
  const auto prepared = kernel->prepare(request);

  const std::size_t bytes = 64 * sizeof(float);
  const std::vector<float> a(64, 2.0f), b(64, 0.5f);
  const auto memory_a = device.allocate(bytes), memory_b = device.allocate(bytes),
             memory_y = device.allocate(bytes),
             workspace = device.allocate(prepared->workspace_bytes + 64);
  device.to_device(memory_a->address(), a.data(), bytes);
  device.to_device(memory_b->address(), b.data(), bytes);
  const StepContext context;
  const void* inputs[2] = {memory_a->address(), memory_b->address()};
  void* outputs[1] = {memory_y->address()};
  emulated.compute->run({.kernel = prepared.get(),
                         .arguments = {inputs, outputs, workspace->address(), &context},
                         .inputs = 2,
                         .outputs = 1,
                         .operation = {.name = "layer1.matmul"}});
  EXPECT_THAT(read_floats(device, memory_y->address(), 64), Each(8.0f));
}

TEST(EmulatedStream, LeavesTheOpenMpThreadsOfTheCaller) {
  Emulated emulated;
  omp_set_num_threads(3);
  emulated.device->on_lane([] { OneDnnTeam{1}; });
  EXPECT_EQ(omp_get_max_threads(), 3);
}

// Arguments and the step's context may change as soon as the call is enqueued.
TEST(EmulatedStream, TakesArgumentsAndContextWhenEnqueued) {
  Emulated emulated;
  const auto memory = emulated.device->allocate(100 * sizeof(float));
  const auto kernel = prepared([](const KernelArguments& arguments) {
    *static_cast<float*>(arguments.outputs[0]) = static_cast<float>(arguments.context->step);
  });
  UnaryCall call(*kernel, "step", nullptr, memory->address(), sizeof(float));
  for (std::size_t i = 0; i < 100; ++i) {
    call.output = static_cast<float*>(memory->address()) + i;
    call.context.step = i;
    emulated.compute->run(call.call());
  }
  const std::vector<float> result = read_floats(*emulated.device, memory->address(), 100);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(result[i], static_cast<float>(i));
}

TEST(EmulatedStream, KeepsOrderWhenTheRingIsFull) {
  Emulated emulated;
  const std::size_t count = 5000, many = 20000;  // more calls and pointers than the ring has
  const auto memory = emulated.device->allocate(64);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> ordered{true};
  const auto small = prepared([&](const KernelArguments& arguments) {
    if (next++ != arguments.context->step) ordered = false;
  });
  const auto large = prepared([&](const KernelArguments& arguments) {
    if (arguments.inputs[0] != arguments.inputs[many - 1]) ordered = false;
  });
  UnaryCall call(*small, "small", nullptr, memory->address(), 4);
  std::vector<const void*> inputs(many, memory->address());
  for (std::size_t i = 0; i < count; ++i) {
    call.context.step = i;
    emulated.compute->run(call.call());
    if (i % 1000 != 0) continue;
    KernelCall all = call.call();
    all.kernel = large.get();
    all.arguments.inputs = inputs.data();
    all.inputs = static_cast<int>(many);
    emulated.compute->run(all);
  }
  emulated.compute->synchronize();
  EXPECT_EQ(next, count);
  EXPECT_TRUE(ordered);
}

TEST(EmulatedStream, EnqueueingAllocatesNothing) {
  Emulated emulated({.memory_bytes = 1 << 20, .check_order = false});
  const auto memory = emulated.device->allocate(64);
  const auto kernel = affine(1, 0, 4);
  const auto event = emulated.device->make_event(), sent = emulated.device->make_event();
  const UnaryCall call(*kernel, "copy", memory->address(), memory->address(), 16);
  std::vector<std::byte> host(16);
  std::uint64_t number = 0;
  auto step = [&] {
    ++number;
    emulated.compute->run(call.call());
    emulated.compute->record(*event, number);
    emulated.copy_out->wait(*event, number);
    emulated.copy_out->copy(host.data(), memory->address(), 16, {"y"});
    emulated.copy_out->record(*sent, number);
    emulated.compute->wait(*sent, number);
  };
  step();
  const AllocationCount allocations;
  for (int i = 0; i < 100; ++i) step();
  emulated.device->synchronize();
  EXPECT_EQ(allocations.calls(), 0);
}

TEST(EmulatedStream, EventsCountSteps) {
  Emulated emulated;
  const auto event = emulated.device->make_event();
  EXPECT_TRUE(event->reached(0));
  EXPECT_FALSE(event->reached(1));
  emulated.compute->record(*event, 3);
  event->synchronize(2);
  EXPECT_TRUE(event->reached(3));
  EXPECT_FALSE(event->reached(4));
}

}  // namespace
}  // namespace tandem::testing
