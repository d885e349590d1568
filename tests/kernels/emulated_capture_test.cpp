// Capture and replay follow CUDA's rules: what a capture may contain, what it orders, what it
// refuses.
#include <gmock/gmock.h>

#include "kernels/cpu/cpu_device.h"
#include "tests/kernels/emulated_support.h"

namespace tandem::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t captured_floats = 100;
constexpr std::size_t captured_bytes = captured_floats * sizeof(float);

// Captures a copy of x to the device on a forked copy_in, and y = 2 x + step on compute.
struct CapturedStep {
  explicit CapturedStep(bool joined = true) {
    x = emulated.device->allocate(captured_bytes);
    y = emulated.device->allocate(captured_bytes);
    begun = emulated.device->make_event();
    arrived = emulated.device->make_event();
    kernel = prepared([joined](const KernelArguments& arguments) {
      if (!joined) return;  // it would really race
      const auto* from = static_cast<const float*>(arguments.inputs[0]);
      auto* to = static_cast<float*>(arguments.outputs[0]);
      for (std::size_t i = 0; i < captured_floats; ++i)
        to[i] = 2 * from[i] + static_cast<float>(arguments.context->step);
    });
    call = std::make_unique<UnaryCall>(*kernel, "layer1.add", x->address(), y->address(),
                                       captured_bytes, 0.004);
    emulated.compute->begin_capture();
    emulated.compute->record(*begun, 1);
    emulated.copy_in->wait(*begun, 1);
    emulated.copy_in->copy(x->address(), input.data(), captured_bytes, {"images"});
    emulated.copy_in->record(*arrived, 1);
    if (joined) emulated.compute->wait(*arrived, 1);
    emulated.compute->run(call->call());
  }

  Emulated emulated;
  std::vector<float> input = std::vector<float>(captured_floats, 1.0f);
  std::unique_ptr<Memory> x, y;
  std::unique_ptr<Event> begun, arrived;
  std::unique_ptr<PreparedKernel> kernel;
  std::unique_ptr<UnaryCall> call;
};

TEST(EmulatedCapture, ReplaysOnFixedAddresses) {
  CapturedStep step;
  const auto captured = step.emulated.compute->end_capture();
  EXPECT_EQ(step.emulated.device->counters().copies, 0u);  // nothing has run
  EXPECT_EQ(step.emulated.monitor->virtual_time(), 0.0);
  for (int number = 1; number <= 50; ++number) {
    step.call->context.step = static_cast<std::uint64_t>(number);
    std::fill(step.input.begin(), step.input.end(), static_cast<float>(number));
    step.emulated.compute->launch(*captured);
    ASSERT_THAT(read_floats(*step.emulated.device, step.y->address(), captured_floats),
                Each(3.0f * static_cast<float>(number)));
  }
  EXPECT_THAT(step.emulated.monitor->order_errors(), IsEmpty());
  EXPECT_EQ(step.emulated.device->counters().copies, 50u);
  const double once = 1e-3 + captured_bytes / 1e9 + 0.004;
  EXPECT_NEAR(step.emulated.monitor->virtual_time(step.emulated.compute->lane()), 50 * once, 1e-9);
}

TEST(EmulatedCapture, MissingJoinIsRefused) {
  CapturedStep step(false);
  EXPECT_THAT(error_of([&] { step.emulated.compute->end_capture(); }),
              HasSubstr("emulated:0.copy_in is joined"));
  const auto memory = step.emulated.device->allocate(64);  // the capture has ended
  EXPECT_THAT(error_of([&] { step.emulated.compute->synchronize(); }), "");
}

TEST(EmulatedCapture, MissingEdgeInsideIsReportedAtLaunch) {
  CapturedStep step(false);
  const auto late = step.emulated.device->make_event();
  step.emulated.copy_in->record(*late, 1);
  step.emulated.compute->wait(*late, 1);  // joined, but after the kernel
  const auto captured = step.emulated.compute->end_capture();
  EXPECT_EQ(step.emulated.first_error(), "");
  step.emulated.compute->launch(*captured);
  EXPECT_THAT(step.emulated.first_error(),
              ::testing::AllOf(HasSubstr("'layer1.add'"), HasSubstr("'images'")));
  step.emulated.device->synchronize();
}

// The fork belongs to the graph: the stream that it was captured from does not wait for the graph.
TEST(EmulatedCapture, OrdersItsOwnStreamOnly) {
  for (const bool with_event : {true, false}) {
    CapturedStep step;
    const auto captured = step.emulated.compute->end_capture();
    step.emulated.compute->launch(*captured);
    if (with_event) {
      const auto done = step.emulated.device->make_event();
      step.emulated.compute->record(*done, 1);
      step.emulated.copy_in->wait(*done, 1);
      done->synchronize(1);
      step.emulated.copy_in->copy(step.x->address(), step.input.data(), captured_bytes, {"next"});
      step.emulated.device->synchronize();
      EXPECT_EQ(step.emulated.first_error(), "");
    } else {
      step.emulated.settle(*step.emulated.compute);
      step.emulated.copy_in->copy(step.x->address(), step.input.data(), captured_bytes, {"next"});
      step.emulated.device->synchronize();
      EXPECT_THAT(step.emulated.first_error(), HasSubstr("'next'"));
    }
  }
}

TEST(EmulatedCapture, RefusesWhatCudaRefuses) {
  Emulated emulated;
  Device& device = *emulated.device;
  const auto cpu = make_cpu_device(1, emulated.monitor);
  const auto outside = device.make_event(), inside = device.make_event(), host = cpu->make_event();
  const auto memory = device.allocate(64);
  emulated.copy_in->record(*outside, 1);
  char byte = 0;

  auto refused = [&](const char* why, auto&& f) {
    emulated.compute->begin_capture();
    emulated.compute->record(*inside, 1);
    EXPECT_THAT(error_of(f), HasSubstr(why));
    error_of([&] { emulated.compute->end_capture(); });
  };
  refused("recorded outside", [&] { emulated.compute->wait(*outside, 1); });
  refused("recorded outside", [&] { emulated.compute->wait(*host, 1); });
  refused("host allocates while capturing", [&] { device.allocate(64); });
  refused("host allocates while capturing", [&] { device.reserve(64); });
  refused("host waits", [&] { emulated.compute->synchronize(); });
  refused("host waits while capturing", [&] { emulated.copy_in->synchronize(); });
  refused("host waits while capturing", [&] { outside->synchronize(1); });
  refused("host waits for an event that belongs to a capture", [&] { inside->synchronize(1); });
  refused("host copies while capturing", [&] { device.to_host(&byte, memory->address(), 1); });
  refused("begins within", [&] { emulated.compute->begin_capture(); });
  refused("another one is under way", [&] { emulated.copy_in->begin_capture(); });

  EXPECT_THAT(error_of([&] { emulated.copy_out->wait(*inside, 1); }), HasSubstr("has ended"));
  EXPECT_THAT(error_of([&] { emulated.compute->end_capture(); }), HasSubstr("never began"));
  emulated.compute->begin_capture();
  emulated.compute->record(*inside, 1);
  const auto empty = emulated.compute->end_capture();
  EXPECT_THAT(error_of([&] { emulated.copy_in->launch(*empty); }), HasSubstr("another"));
  emulated.compute->launch(*empty);
  emulated.compute->record(*inside, 1);  // an ordinary event again
  inside->synchronize(1);
  // A capture that broke a rule cannot be launched.
  emulated.compute->begin_capture();
  EXPECT_NE(error_of([&] { emulated.compute->wait(*outside, 1); }), "");
  EXPECT_THAT(error_of([&] { emulated.compute->end_capture(); }), HasSubstr("broken"));
  device.synchronize();
  EXPECT_EQ(emulated.first_error(), "");
}

}  // namespace
}  // namespace tandem::testing
