// Missing events are found whatever the timing was, existing ones are enough, and virtual times are
// exact.
#include <gmock/gmock.h>

#include <thread>

#include "kernels/cpu/cpu_device.h"
#include "tests/kernels/emulated_support.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t ordered_floats = 1000;
constexpr std::size_t ordered_bytes = ordered_floats * sizeof(float);

// Steps of: copy x in, y = 2 x + 1, copy y out. There are no double buffers, so each step waits for
// the one before. Instead of the wait that is left out the host waits, unseen by the monitor.
struct Pipeline {
  enum Wait { none, x_arrived, y_ready, x_read, y_sent };

  explicit Pipeline(Wait left_out) : left_out_(left_out) {
    kernel_ = affine(2, 1, ordered_floats);
    x_ = emulated.device->allocate(ordered_bytes);
    y_ = emulated.device->allocate(ordered_bytes);
    for (auto& event : events_) event = emulated.device->make_event();
  }
  void wait(Stream& stream, Wait what, std::uint64_t count) {
    if (what != left_out_) stream.wait(*events_[what], count);
  }
  void settle(Stream& stream) {
    if (left_out_ != none) emulated.settle(stream);
  }
  void step(std::uint64_t number) {
    const UnaryCall call(*kernel_, "layer1.matmul", x_->address(), y_->address(), ordered_bytes,
                         0.005);
    wait(*emulated.copy_in, x_read, number - 1);
    emulated.copy_in->copy(x_->address(), input.data(), ordered_bytes, {"images"});
    settle(*emulated.copy_in);
    emulated.copy_in->record(*events_[x_arrived], number);
    wait(*emulated.compute, x_arrived, number);
    wait(*emulated.compute, y_sent, number - 1);
    emulated.compute->run(call.call());
    settle(*emulated.compute);
    emulated.compute->record(*events_[y_ready], number);
    emulated.compute->record(*events_[x_read], number);
    wait(*emulated.copy_out, y_ready, number);
    emulated.copy_out->copy(output.data(), y_->address(), ordered_bytes, {"logits"});
    settle(*emulated.copy_out);
    emulated.copy_out->record(*events_[y_sent], number);
  }

  Emulated emulated;
  std::vector<float> input = std::vector<float>(ordered_floats, 1.0f),
                     output = std::vector<float>(ordered_floats);

 private:
  Wait left_out_;
  std::unique_ptr<PreparedKernel> kernel_;
  std::unique_ptr<Memory> x_, y_;
  std::unique_ptr<Event> events_[5];
};

std::vector<std::string> errors_of(Pipeline::Wait left_out, int steps) {
  Pipeline pipeline(left_out);
  for (int step = 1; step <= steps; ++step) pipeline.step(step);
  pipeline.emulated.device->synchronize();
  return pipeline.emulated.monitor->order_errors();
}

std::string error_without(Pipeline::Wait left_out, int steps) {
  const std::vector<std::string> errors = errors_of(left_out, steps);
  return errors.empty() ? "no error" : errors[0];
}

TEST(EmulatedOrder, RightEventsGiveNoError) {
  Pipeline pipeline(Pipeline::none);
  for (int step = 1; step <= 500; ++step) pipeline.step(step);
  pipeline.emulated.device->synchronize();
  EXPECT_THAT(pipeline.emulated.monitor->order_errors(), IsEmpty());
  EXPECT_THAT(pipeline.output, ::testing::Each(3.0f));
}

TEST(EmulatedOrder, EachMissingWaitIsReportedWithBothNamesEveryTime) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    const auto before = errors_of(Pipeline::x_arrived, 1);
    ASSERT_THAT(before, SizeIs(1));
    ASSERT_EQ(before[0],
              "'layer1.matmul' (emulated:0.compute, reads) and 'images' (emulated:0.copy_in, "
              "writes) touch the same bytes, and no event orders them");
    ASSERT_THAT(error_without(Pipeline::y_ready, 1),
                AllOf(HasSubstr("layer1.matmul"), HasSubstr("logits")));
    // The missing wait is for the next step.
    ASSERT_THAT(error_without(Pipeline::x_read, 2),
                AllOf(HasSubstr("layer1.matmul"), HasSubstr("images")));
    ASSERT_THAT(error_without(Pipeline::y_sent, 2),
                AllOf(HasSubstr("layer1.matmul"), HasSubstr("logits")));
  }
}

TEST(EmulatedOrder, OverlapOfSomeBytesIsEnough) {
  Emulated emulated;
  const auto memory = emulated.device->allocate(4096);
  auto* base = static_cast<std::byte*>(memory->address());
  const std::vector<std::byte> host(4096);
  emulated.copy_in->copy(base, host.data(), 1024, {"low"});
  emulated.settle(*emulated.copy_in);
  emulated.copy_out->copy(base + 1024, base + 2048, 1024, {"beside"});
  EXPECT_EQ(emulated.first_error(), "");
  emulated.copy_out->copy(base + 2048, base + 1023, 1, {"last byte"});
  EXPECT_THAT(emulated.first_error(), AllOf(HasSubstr("'low'"), HasSubstr("'last byte'")));
  emulated.device->synchronize();
}

TEST(EmulatedOrder, WaitForWhatNobodyEnqueuedIsReported) {
  Emulated emulated;
  const auto event = emulated.device->make_event();
  emulated.compute->wait(*event, 0);  // nothing to wait for, as in a first step
  EXPECT_EQ(emulated.first_error(), "");
  emulated.compute->wait(*event, 1);
  EXPECT_THAT(emulated.first_error(), HasSubstr("emulated:0.compute waits for record 1"));
  emulated.compute->synchronize();
}

TEST(EmulatedOrder, MemoryThatIsFreedOwesNothing) {
  Emulated emulated;
  const std::vector<float> host(ordered_floats);
  void* address = nullptr;
  for (Stream* stream : {emulated.copy_in.get(), emulated.compute.get()}) {
    const auto memory = emulated.device->allocate(ordered_bytes);
    if (address != nullptr) {
      EXPECT_EQ(memory->address(), address);
    }
    address = memory->address();
    stream->copy(address, host.data(), ordered_bytes, {"fill"});
    emulated.settle(*stream);
  }
  EXPECT_EQ(emulated.first_error(), "");
}

// The host's lane writes a slot, the device reads it, and the lane reads the result.
std::string host_lane_error(bool with_events) {
  Emulated emulated;
  const auto cpu = make_cpu_device(1, emulated.monitor);
  const auto lane = cpu->make_stream(StreamKind::compute, "cpu");
  const auto filled = cpu->make_event(), done = emulated.device->make_event();
  const auto slot = cpu->allocate(ordered_bytes), memory = emulated.device->allocate(ordered_bytes);
  const auto kernel = affine(0, 7, ordered_floats);
  const UnaryCall fill(*kernel, "preprocess", nullptr, slot->address(), ordered_bytes, 0.25);
  std::thread other([&] {  // the cpu's lane; the main thread launches meanwhile
    lane->run(fill.call());
    lane->record(*filled, 1);
    if (with_events) lane->wait(*done, 1);
    const ByteAccess read{slot->address(), ordered_bytes, true};
    lane->note({"reader", 0, std::span(&read, 1)});
  });
  filled->synchronize(1);
  if (with_events) emulated.copy_in->wait(*filled, 1);
  emulated.copy_in->copy(memory->address(), slot->address(), ordered_bytes, {"slot"});
  emulated.copy_in->record(*done, 1);
  other.join();
  emulated.device->synchronize();
  if (with_events) {
    EXPECT_NEAR(emulated.monitor->virtual_time(emulated.copy_in->lane()),
                0.25 + 1e-3 + ordered_bytes / 1e9, 1e-12);
    EXPECT_EQ(emulated.monitor->virtual_time(lane->lane()),
              emulated.monitor->virtual_time(emulated.copy_in->lane()));
  }
  return emulated.first_error();
}

TEST(EmulatedOrder, HostLanesAreWatchedAsWell) {
  EXPECT_EQ(host_lane_error(true), "");
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_THAT(host_lane_error(false), HasSubstr("'slot' (emulated:0.copy_in, reads)"));
  }
}

// A copy from one device to another through the host's memory.
TEST(EmulatedOrder, DevicesThatShareAMonitor) {
  for (const bool with_event : {true, false}) {
    Emulated first;
    const auto second = make_emulated_device(
        {.name = "emulated:1", .memory_bytes = 1 << 20, .monitor = first.monitor});
    const auto arriving = second->make_stream(StreamKind::copy_in);
    const auto a = first.device->allocate(ordered_bytes), b = second->allocate(ordered_bytes);
    const std::vector<float> ones(ordered_floats, 1.0f);
    std::vector<float> staging(ordered_floats);
    first.device->to_device(a->address(), ones.data(), ordered_bytes);
    const auto left = first.device->make_event();
    first.copy_out->copy(staging.data(), a->address(), ordered_bytes, {"x out"});
    first.copy_out->record(*left, 1);
    if (with_event) {
      arriving->wait(*left, 1);
    } else {
      left->synchronize(1);
    }
    arriving->copy(b->address(), staging.data(), ordered_bytes, {"x in"});
    EXPECT_THAT(read_floats(*second, b->address(), ordered_floats), ::testing::Each(1.0f));
    EXPECT_EQ(first.first_error(),
              with_event ? ""
                         : "'x out' (emulated:0.copy_out, writes) and 'x in' (emulated:1.copy_in, "
                           "reads) touch the same bytes, and no event orders them");
    if (with_event) {
      EXPECT_NEAR(first.monitor->virtual_time(arriving->lane()),
                  1e-3 + ordered_bytes / 1e9 + 1e-5 + ordered_bytes / 25e9, 1e-12);
    }
  }
}

TEST(EmulatedTime, PipelineOfThreeStreamsIsExact) {
  Pipeline pipeline(Pipeline::none);
  pipeline.emulated.monitor->start_trace(100);
  for (int step = 1; step <= 2; ++step) pipeline.step(step);
  pipeline.emulated.device->synchronize();
  const double copy = 1e-3 + ordered_bytes / 1e9, run = 0.005;
  const std::vector<TraceSpan> trace = pipeline.emulated.monitor->trace();
  ASSERT_THAT(trace, SizeIs(6));
  const std::pair<std::string, double> expected[6] = {
      {"images", 0.0},
      {"layer1.matmul", copy},
      {"logits", copy + run},
      {"images", copy + run},  // waits for x to be read
      {"layer1.matmul", run + 2 * copy},
      {"logits", 2 * run + 2 * copy},
  };
  for (std::size_t i = 0; i < trace.size(); ++i) {
    EXPECT_EQ(trace[i].name, expected[i].first);
    EXPECT_NEAR(trace[i].start, expected[i].second, 1e-12) << i;
    EXPECT_NEAR(trace[i].end - trace[i].start, i % 3 == 1 ? run : copy, 1e-12) << i;
    EXPECT_EQ(trace[i].bytes, i % 3 == 1 ? 0 : ordered_bytes);
    EXPECT_GT(trace[i].real_start, 0.0);
    EXPECT_GE(trace[i].real_end, trace[i].real_start);
  }
  EXPECT_EQ(pipeline.emulated.monitor->lane_name(trace[1].lane), "emulated:0.compute");
  const Stream& last = *pipeline.emulated.copy_out;
  EXPECT_NEAR(pipeline.emulated.monitor->virtual_time(last.lane()), 2 * run + 3 * copy, 1e-12);
  EXPECT_EQ(pipeline.emulated.monitor->virtual_time(),
            pipeline.emulated.monitor->virtual_time(last.lane()));
}

TEST(EmulatedTime, RealLinkTakesItsTime) {
  Emulated emulated({.memory_bytes = 1 << 20, .latency_seconds = 0.02, .real_link = true});
  const auto memory = emulated.device->allocate(64);
  const std::vector<std::byte> host(64);
  const double start = emulated.monitor->real_time();
  emulated.copy_in->copy(memory->address(), host.data(), 64, {"x"});
  emulated.copy_in->synchronize();
  EXPECT_GE(emulated.monitor->real_time() - start, 0.02);
}

}  // namespace
}  // namespace tandem::testing
