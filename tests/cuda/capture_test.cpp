// Capture and replay on the CUDA device: what a graph may contain, what it orders, what is refused.
#include <gmock/gmock.h>

#include "kernels/cpu/cpu_stream.h"
#include "tests/cuda/support/fake_device.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t captured_elements = 100, captured_bytes = captured_elements * sizeof(float);

// Captures a copy of x to the device on a forked copy_in, and y = 2 x + step on compute.
struct CapturedStep {
  explicit CapturedStep(bool joined = true, bool late = false)
      : fake({.runtime = {.late = late}}), input(fake.pinned(captured_elements, 1)) {
    x = fake.device->allocate(captured_bytes);
    y = fake.device->allocate(captured_bytes);
    begun = fake.device->make_event();
    arrived = fake.device->make_event();
    kernel = affine_kernel(fake.runtime, 2, 0, captured_elements);
    call = std::make_unique<AffineCall>(*kernel, "layer1.add", x->address(), y->address(),
                                        captured_bytes);
    fake.compute->begin_capture();
    fake.compute->record(*begun, 1);
    fake.copy_in->wait(*begun, 1);
    fake.copy_in->copy(x->address(), input, captured_bytes, {"images"});
    fake.copy_in->record(*arrived, 1);
    if (joined) fake.compute->wait(*arrived, 1);
    fake.compute->run(call->call());
  }

  FakeDevice fake;
  float* input;
  std::unique_ptr<Memory> x, y;
  std::unique_ptr<Event> begun, arrived;
  std::unique_ptr<PreparedKernel> kernel;
  std::unique_ptr<AffineCall> call;
};

TEST(CudaCapture, ReplaysOnFixedAddresses) {
  for (const bool late : {false, true}) {
    CapturedStep step(true, late);
    const auto captured = step.fake.compute->end_capture();
    EXPECT_EQ(step.fake.device->counters().copies, 0u);  // nothing has run
    EXPECT_EQ(step.fake.monitor->virtual_time(), 0.0);
    for (int number = 1; number <= 50; ++number) {
      step.call->context.step = static_cast<std::uint64_t>(number);
      std::fill_n(step.input, captured_elements, static_cast<float>(number));
      step.fake.compute->launch(*captured);
      ASSERT_THAT(floats_at(*step.fake.device, step.y->address(), captured_elements),
                  Each(3.0f * static_cast<float>(number)));
    }
    EXPECT_THAT(step.fake.monitor->order_errors(), IsEmpty());
    EXPECT_THAT(step.fake.runtime->problems(), IsEmpty());
    EXPECT_EQ(step.fake.device->counters().copies, 50u);
    EXPECT_EQ(step.fake.device->counters().bytes_to_device, 50 * captured_bytes);
    const double once = 10e-6 + static_cast<double>(captured_bytes) / 50e9 + 0.001;
    EXPECT_NEAR(step.fake.monitor->virtual_time(step.fake.compute->lane()), 50 * once, 1e-9);
  }
}

// A trace needs the times of single operations, and operations in a graph have none.
TEST(CudaCapture, NothingIsOfferedWhileATraceIsKept) {
  FakeDevice fake;
  const auto x = fake.device->allocate(captured_bytes);
  const auto kernel = affine_kernel(fake.runtime, 0, 1, captured_elements);
  AffineCall call(*kernel, "layer1.add", nullptr, x->address(), captured_bytes);
  fake.compute->run(call.call());
  EXPECT_TRUE(fake.compute->can_capture());
  fake.monitor->start_trace(100);
  fake.copy_in->copy(x->address(), fake.pinned(captured_elements), captured_bytes, {"images"});
  EXPECT_FALSE(fake.compute->can_capture());
  fake.monitor->start_trace(0);
  fake.copy_in->copy(x->address(), fake.pinned(captured_elements), captured_bytes, {"images"});
  EXPECT_TRUE(fake.compute->can_capture());
  fake.compute->begin_capture();
  fake.compute->run(call.call());
  const auto captured = fake.compute->end_capture();
  fake.monitor->start_trace(100);
  fake.compute->launch(*captured);
  EXPECT_FALSE(fake.compute->can_capture());
  fake.device->synchronize();
}

/// Counts operations and ignores what they touch.
class Counting final : public LaneMonitor {
 public:
  bool checks_order() const override { return false; }
  bool keeps_trace() const override { return traced; }
  int add_lane(std::string_view, int) override { return lanes++; }
  void remove_lane(int) override {}
  int add_event() override { return events++; }
  void remove_event(int) override {}
  TraceSpan* operation(int, const Operation&, std::size_t) override {
    ++operations;
    return nullptr;
  }
  void record(int, int, std::uint64_t) override {}
  void wait(int, int, std::uint64_t) override {}
  void join(int, int) override {}
  void forget(const void*, std::size_t) override {}
  void report(std::string_view) override {}
  double virtual_time(int) const override { return 0; }
  double real_time() const override { return 0; }

  bool traced = false;
  int lanes = 1, events = 0, operations = 0;
};

// The monitor's work for a graph's operations would leave the GPU without work.
TEST(CudaCapture, WhereNoOrderIsCheckedNothingIsToldOfAGraph) {
  const auto runtime = std::make_shared<FakeRuntime>();
  const auto monitor = std::make_shared<Counting>();
  CudaOptions options;
  options.monitor = monitor;
  const auto device = cuda::make_device(options, runtime, std::make_shared<GivenLibraries>());
  const auto compute = device->make_stream();
  const auto x = device->allocate(captured_bytes);
  const auto kernel = affine_kernel(runtime, 0, 1, captured_elements);
  AffineCall call(*kernel, "layer1.add", nullptr, x->address(), captured_bytes);
  compute->run(call.call());
  EXPECT_EQ(monitor->operations, 1);
  compute->begin_capture();
  for (int i = 0; i < 5; ++i) compute->run(call.call());
  const auto captured = compute->end_capture();
  for (int i = 0; i < 3; ++i) compute->launch(*captured);
  EXPECT_EQ(monitor->operations, 1);
  EXPECT_EQ(monitor->lanes, 2);
  EXPECT_TRUE(compute->can_capture());
  monitor->traced = true;
  EXPECT_FALSE(compute->can_capture());
  EXPECT_THAT(runtime->problems(), IsEmpty());
}

TEST(CudaCapture, WithoutACaptureNothingIsOffered) {
  const auto runtime = std::make_shared<FakeRuntime>();
  const auto device =
      cuda::make_device({.capture = false}, runtime, std::make_shared<GivenLibraries>());
  EXPECT_FALSE(device->make_stream()->can_capture());
  FakeDevice fake;
  EXPECT_TRUE(fake.compute->can_capture());
}

TEST(CudaCapture, MissingJoinIsRefused) {
  CapturedStep step(false);
  EXPECT_THAT(error_text_of([&] { step.fake.compute->end_capture(); }),
              HasSubstr("cuda:0.copy_in is joined"));
  const auto memory = step.fake.device->allocate(64);  // the capture has ended
  EXPECT_EQ(error_text_of([&] { step.fake.compute->synchronize(); }), "");
  EXPECT_THAT(step.fake.runtime->problems(), Contains(HasSubstr("is joined to it")));
}

TEST(CudaCapture, MissingEdgeInsideIsReportedAtLaunch) {
  CapturedStep step(false);
  const auto late = step.fake.device->make_event();
  step.fake.copy_in->record(*late, 1);
  step.fake.compute->wait(*late, 1);  // joined, but after the kernel
  const auto captured = step.fake.compute->end_capture();
  EXPECT_EQ(step.fake.first_error(), "");
  step.fake.compute->launch(*captured);
  EXPECT_THAT(step.fake.first_error(), AllOf(HasSubstr("'layer1.add'"), HasSubstr("'images'")));
}

// The fork belongs to the graph: the stream that it was captured from does not wait for the graph.
TEST(CudaCapture, OrdersItsOwnStreamOnly) {
  for (const bool with_event : {true, false}) {
    CapturedStep step;
    const auto captured = step.fake.compute->end_capture();
    step.fake.compute->launch(*captured);
    if (with_event) {
      const auto done = step.fake.device->make_event();
      step.fake.compute->record(*done, 1);
      step.fake.copy_in->wait(*done, 1);
      done->synchronize(1);
    }
    step.fake.copy_in->copy(step.x->address(), step.input, captured_bytes, {"next"});
    step.fake.device->synchronize();
    EXPECT_EQ(step.fake.first_error().empty(), with_event);
    EXPECT_EQ(step.fake.runtime->problems().empty(), with_event);
    if (!with_event) {
      EXPECT_THAT(step.fake.first_error(), HasSubstr("'next'"));
    }
  }
}

TEST(CudaCapture, RefusesWhatCudaRefuses) {
  FakeDevice fake;
  Device& device = *fake.device;
  const auto outside = device.make_event(), inside = device.make_event(),
             host = make_cpu_event(fake.monitor);
  const auto memory = device.allocate(64);
  fake.copy_in->record(*outside, 1);
  char byte = 0;

  auto refused = [&](const char* why, auto&& f) {
    fake.compute->begin_capture();
    fake.compute->record(*inside, 1);
    EXPECT_THAT(error_text_of(f), HasSubstr(why));
    error_text_of([&] { fake.compute->end_capture(); });
  };
  refused("recorded outside", [&] { fake.compute->wait(*outside, 1); });
  refused("recorded outside", [&] { fake.compute->wait(*host, 1); });
  refused("host allocates while capturing", [&] { device.allocate(64); });
  refused("host allocates while capturing", [&] { device.reserve(64); });
  refused("host waits", [&] { fake.compute->synchronize(); });
  refused("host waits while capturing", [&] { fake.copy_in->synchronize(); });
  refused("host waits while capturing", [&] { outside->synchronize(1); });
  refused("host waits for an event that belongs to a capture", [&] { inside->synchronize(1); });
  refused("host copies while capturing", [&] { device.to_host(&byte, memory->address(), 1); });
  refused("host makes a stream while capturing", [&] { device.make_stream(); });
  refused("begins within", [&] { fake.compute->begin_capture(); });
  refused("another one is under way", [&] { fake.copy_in->begin_capture(); });
  // All of this was refused before CUDA was called.
  EXPECT_THAT(fake.runtime->problems(), IsEmpty());

  EXPECT_THAT(error_text_of([&] { fake.copy_out->wait(*inside, 1); }), HasSubstr("has ended"));
  EXPECT_THAT(error_text_of([&] { fake.compute->end_capture(); }), HasSubstr("never began"));
  fake.compute->begin_capture();
  EXPECT_FALSE(inside->reached(1));  // calls no function of CUDA
  fake.compute->record(*inside, 1);
  const auto empty = fake.compute->end_capture();
  EXPECT_THAT(error_text_of([&] { fake.copy_in->launch(*empty); }), HasSubstr("another"));
  fake.compute->launch(*empty);
  fake.compute->record(*inside, 1);  // an ordinary event again
  inside->synchronize(1);
  // A capture that broke a rule cannot be launched.
  fake.compute->begin_capture();
  EXPECT_NE(error_text_of([&] { fake.compute->wait(*outside, 1); }), "");
  EXPECT_THAT(error_text_of([&] { fake.compute->end_capture(); }), HasSubstr("broken"));
  device.synchronize();
  EXPECT_EQ(fake.first_error(), "");
  EXPECT_THAT(fake.runtime->problems(), IsEmpty());
}

TEST(CudaCapture, CopiesOfMemoryThatIsNotPinnedAreRefused) {
  FakeDevice fake;
  const auto memory = fake.device->allocate(captured_bytes);
  std::vector<float> host(captured_elements);
  fake.compute->begin_capture();
  EXPECT_THAT(error_text_of([&] {
                fake.compute->copy(memory->address(), host.data(), captured_bytes, {"images"});
              }),
              HasSubstr("not permitted when stream is capturing"));
  EXPECT_NE(error_text_of([&] { fake.compute->end_capture(); }), "");
  fake.compute->copy(memory->address(), host.data(), captured_bytes,
                     {"images"});  // the device still works
  fake.device->synchronize();
  EXPECT_EQ(fake.runtime->pageable_copies(), 1);
}

TEST(CudaCapture, NothingIsLeft) {
  FakeDevice fake;
  const auto kernel = affine_kernel(fake.runtime, 0, 7, captured_elements);
  {
    const auto memory = fake.device->allocate(captured_bytes);
    AffineCall call(*kernel, "fill", nullptr, memory->address(), captured_bytes);
    fake.compute->begin_capture();
    fake.compute->run(call.call());
    const auto captured = fake.compute->end_capture();
    fake.compute->launch(*captured);
    fake.copy_in->begin_capture();
    fake.copy_in->run(call.call());
    fake.copy_in.reset();  // in the middle of its capture
  }
  fake.settled.reset();
  fake.compute.reset();
  fake.copy_out.reset();
  fake.device.reset();
  EXPECT_THAT(fake.runtime->leaks(), IsEmpty());
}

}  // namespace
}  // namespace tandem::testing
