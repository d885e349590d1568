// Streams and events of the CUDA device: which calls of CUDA they make, in which order, and how
// failures are reported.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "kernels/cpu/cpu_stream.h"
#include "tests/cuda/support/fake_device.h"
#include "tests/harness/allocation_count.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t stream_elements = 100, stream_bytes = stream_elements * sizeof(float);

// Steps of: copy x in, y = 2 x + 1, copy y out. There are no double buffers, so each step waits for
// the one before. Instead of the wait that is left out the host waits, unseen by the monitor.
struct Pipeline {
  enum Wait { none, x_arrived, y_ready, x_read, y_sent };

  explicit Pipeline(Wait left_out, bool late = false, bool settled = true)
      : fake({.runtime = {.late = late}}), left_out_(left_out), settled_(settled) {
    kernel_ = affine_kernel(fake.runtime, 2, 1, stream_elements);
    x_ = fake.device->allocate(stream_bytes);
    y_ = fake.device->allocate(stream_bytes);
    input = fake.pinned(stream_elements, 1);
    output = fake.pinned(stream_elements);
    for (auto& event : events_) event = fake.device->make_event();
  }
  void wait(Stream& stream, Wait what, std::uint64_t count) {
    if (what != left_out_) stream.wait(*events_[what], count);
  }
  void settle(Stream& stream) {
    if (left_out_ != none && settled_) fake.settle(stream);
  }
  void step(std::uint64_t number) {
    AffineCall call(*kernel_, "layer1.matmul", x_->address(), y_->address(), stream_bytes);
    call.has_context = false;
    wait(*fake.copy_in, x_read, number - 1);
    fake.copy_in->copy(x_->address(), input, stream_bytes, {"images"});
    settle(*fake.copy_in);
    fake.copy_in->record(*events_[x_arrived], number);
    wait(*fake.compute, x_arrived, number);
    wait(*fake.compute, y_sent, number - 1);
    fake.compute->run(call.call());
    settle(*fake.compute);
    fake.compute->record(*events_[y_ready], number);
    fake.compute->record(*events_[x_read], number);
    wait(*fake.copy_out, y_ready, number);
    fake.copy_out->copy(output, y_->address(), stream_bytes, {"logits"});
    settle(*fake.copy_out);
    fake.copy_out->record(*events_[y_sent], number);
  }
  std::vector<float> result() const { return {output, output + stream_elements}; }

  FakeDevice fake;
  float *input = nullptr, *output = nullptr;

 private:
  Wait left_out_;
  bool settled_;
  std::unique_ptr<PreparedKernel> kernel_;
  std::unique_ptr<Memory> x_, y_;
  std::unique_ptr<Event> events_[5];
};

TEST(CudaStream, RightEventsGiveNoError) {
  for (const bool late : {false, true}) {
    Pipeline pipeline(Pipeline::none, late);
    for (int step = 1; step <= 100; ++step) pipeline.step(step);
    pipeline.fake.device->synchronize();
    EXPECT_THAT(pipeline.fake.monitor->order_errors(), IsEmpty());
    EXPECT_THAT(pipeline.fake.runtime->problems(), IsEmpty());
    EXPECT_THAT(pipeline.result(), Each(3.0f));
    EXPECT_EQ(pipeline.fake.device->counters().copies, 200u);
    EXPECT_EQ(pipeline.fake.device->counters().bytes_to_device, 100 * stream_bytes);
    EXPECT_EQ(pipeline.fake.device->counters().bytes_to_host, 100 * stream_bytes);
    EXPECT_EQ(pipeline.fake.runtime->pageable_copies(), 0);
  }
}

TEST(CudaStream, EachMissingWaitIsReportedByTheMonitor) {
  const auto error_without = [](Pipeline::Wait left_out, int steps) {
    Pipeline pipeline(left_out);
    for (int step = 1; step <= steps; ++step) pipeline.step(step);
    pipeline.fake.device->synchronize();
    return pipeline.fake.first_error();
  };
  EXPECT_EQ(error_without(Pipeline::x_arrived, 1),
            "'layer1.matmul' (cuda:0.compute, reads) and 'images' (cuda:0.copy_in, writes) touch "
            "the same bytes, and no event orders them");
  EXPECT_THAT(error_without(Pipeline::y_ready, 1),
              AllOf(HasSubstr("layer1.matmul"), HasSubstr("logits")));
  // The missing wait is for the next step.
  EXPECT_THAT(error_without(Pipeline::x_read, 2),
              AllOf(HasSubstr("layer1.matmul"), HasSubstr("images")));
  EXPECT_THAT(error_without(Pipeline::y_sent, 2),
              AllOf(HasSubstr("layer1.matmul"), HasSubstr("logits")));
}

// As above, by the calls of CUDA: this finds a stream that does not pass a wait on.
TEST(CudaStream, EachMissingWaitIsReportedByTheRuntime) {
  for (const Pipeline::Wait left_out :
       {Pipeline::x_arrived, Pipeline::y_ready, Pipeline::x_read, Pipeline::y_sent}) {
    Pipeline pipeline(left_out, false, false);
    for (int step = 1; step <= 2; ++step) pipeline.step(step);
    pipeline.fake.device->synchronize();
    EXPECT_THAT(pipeline.fake.runtime->problems(), Contains(HasSubstr("touch the same bytes")))
        << left_out;
  }
}

TEST(CudaStream, AsksCudaForNoMore) {
  Pipeline pipeline(Pipeline::none);
  pipeline.step(1);
  pipeline.fake.runtime->clear_calls();
  pipeline.step(2);
  const auto calls = pipeline.fake.runtime->calls();
  ASSERT_THAT(calls, SizeIs(11));
  EXPECT_THAT(calls[0], HasSubstr("wait event"));
  EXPECT_EQ(calls[1], "copy 400 bytes host to GPU stream 2");
  EXPECT_THAT(calls[2], HasSubstr("record event"));
  EXPECT_THAT(calls[3], HasSubstr("wait event"));
  EXPECT_THAT(calls[4], HasSubstr("wait event"));
  EXPECT_EQ(calls[5], "launch affine stream 1");
  EXPECT_THAT(calls[8], AllOf(HasSubstr("wait event"), HasSubstr("stream 3")));
  EXPECT_EQ(calls[9], "copy 400 bytes GPU to host stream 3");
}

// Arguments may change as soon as the call is enqueued.
TEST(CudaStream, TakesArgumentsWhenEnqueued) {
  FakeDevice fake({.runtime = {.late = true}});
  const auto memory = fake.device->allocate(stream_bytes);
  const auto one = affine_kernel(fake.runtime, 0, 1, 1);
  AffineCall call(*one, "one", nullptr, memory->address(), sizeof(float));
  call.has_context = false;
  for (std::size_t i = 0; i < stream_elements; ++i) {
    call.output = static_cast<float*>(memory->address()) + i;
    fake.compute->run(call.call());
  }
  call.output = nullptr;
  EXPECT_THAT(floats_at(*fake.device, memory->address(), stream_elements), Each(1.0f));
}

TEST(CudaStream, EventsCountSteps) {
  FakeDevice fake;
  const auto event = fake.device->make_event();
  event->synchronize(0);
  EXPECT_TRUE(event->reached(0));
  EXPECT_FALSE(event->reached(1));
  fake.compute->record(*event, 3);
  event->synchronize(2);
  EXPECT_TRUE(event->reached(3));
  EXPECT_FALSE(event->reached(4));
}

// y = number; the event is recorded with that number.
struct Numbers {
  explicit Numbers(FakeDevice& fake) : fake(fake) {
    memory = fake.device->allocate(sizeof(float));
    event = fake.device->make_event();
  }
  void write(std::uint64_t number) {
    kernels.push_back(affine_kernel(fake.runtime, 0, static_cast<float>(number), 1));
    AffineCall call(*kernels.back(), "write", nullptr, memory->address(), sizeof(float));
    call.has_context = false;
    fake.compute->run(call.call());
    fake.compute->record(*event, number);
  }
  float now() const {
    return *reinterpret_cast<float*>(fake.runtime->host_view(memory->address()));
  }

  FakeDevice& fake;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Event> event;
  std::vector<std::unique_ptr<PreparedKernel>> kernels;
};

TEST(CudaStream, WaitingForAnEarlierCountDoesNotWaitForALaterRecord) {
  FakeDevice fake({.runtime = {.late = true}});
  Numbers numbers(fake);
  for (std::uint64_t i = 1; i <= 3; ++i) numbers.write(i);
  numbers.event->synchronize(1);
  EXPECT_EQ(numbers.now(), 1);
  numbers.event->synchronize(2);
  EXPECT_EQ(numbers.now(), 2);
  EXPECT_FALSE(numbers.event->reached(3));
  EXPECT_TRUE([&] {
    for (int i = 0; i < 10; ++i) {
      if (numbers.event->reached(3)) return true;
    }
    return false;
  }());
  EXPECT_EQ(numbers.now(), 3);
  // If an event is far behind, a later record replaces an earlier one.
  for (std::uint64_t i = 4; i <= 20; ++i) numbers.write(i);
  numbers.event->synchronize(5);
  EXPECT_GE(numbers.now(), 5);
  EXPECT_LE(numbers.now(), 17);
  fake.device->synchronize();
  EXPECT_EQ(numbers.now(), 20);
}

TEST(CudaStream, StreamsWaitForTheirCountAlone) {
  FakeDevice fake({.runtime = {.late = true}});
  Numbers numbers(fake);
  float* const host = fake.pinned(1);
  numbers.write(1);
  numbers.write(2);
  fake.copy_out->wait(*numbers.event, 1);
  fake.copy_out->copy(host, numbers.memory->address(), sizeof(float), {"out"});
  fake.copy_out->synchronize();
  EXPECT_EQ(*host, 1);
}

TEST(CudaStream, WaitForWhatNobodyEnqueuedIsReported) {
  FakeDevice fake;
  const auto event = fake.device->make_event();
  fake.compute->wait(*event, 0);  // nothing to wait for, as in a first step
  EXPECT_EQ(fake.first_error(), "");
  fake.compute->wait(*event, 1);
  EXPECT_THAT(fake.first_error(), HasSubstr("cuda:0.compute waits for record 1"));
}

TEST(CudaStream, TheHostWaitsForARecordThatIsYetToCome) {
  FakeDevice fake;
  Numbers numbers(fake);
  std::atomic<bool> waited{false};
  std::thread waiter([&] {
    numbers.event->synchronize(2);
    waited = true;
  });
  numbers.write(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(waited);
  numbers.write(2);
  waiter.join();
  EXPECT_TRUE(waited);
}

TEST(CudaStream, WaitsForTheHostsEventsOnTheCallingThread) {
  FakeDevice fake;
  const auto host = make_cpu_stream(fake.monitor, "cpu");
  const auto filled = make_cpu_event(fake.monitor);
  const auto memory = fake.device->allocate(stream_bytes);
  float* const slot = fake.pinned(stream_elements);
  std::thread filler([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const ByteAccess access{slot, stream_bytes, true};
    std::fill_n(slot, stream_elements, 4.0f);
    host->note({"feed", 0, {&access, 1}});
    host->record(*filled, 1);
  });
  fake.copy_in->wait(*filled, 1);
  fake.copy_in->copy(memory->address(), slot, stream_bytes, {"images"});
  filler.join();
  EXPECT_THAT(floats_at(*fake.device, memory->address(), stream_elements), Each(4.0f));
  EXPECT_EQ(fake.first_error(), "");
}

TEST(CudaStream, TheHostsLaneWaitsForTheDevice) {
  for (const bool with_event : {true, false}) {
    FakeDevice fake;
    const auto host = make_cpu_stream(fake.monitor, "cpu");
    const auto sent = fake.device->make_event();
    const auto memory = fake.device->allocate(stream_bytes);
    const std::vector<float> ones(stream_elements, 1);
    fake.device->to_device(memory->address(), ones.data(), stream_bytes);
    float* const slot = fake.pinned(stream_elements);
    fake.copy_out->copy(slot, memory->address(), stream_bytes, {"logits"});
    fake.copy_out->record(*sent, 1);
    if (with_event) host->wait(*sent, 1);
    const ByteAccess access{slot, stream_bytes, false};
    host->note({"read", 0, {&access, 1}});
    EXPECT_EQ(fake.first_error().empty(), with_event);
  }
}

TEST(CudaStream, ForeignAddressesAreReported) {
  FakeDevice fake;
  const auto memory = fake.device->allocate(stream_bytes);
  const auto kernel = affine_kernel(fake.runtime, 1, 0, stream_elements);
  std::vector<float> host(stream_elements);
  AffineCall call(*kernel, "layer1.add", host.data(), memory->address(), stream_bytes);
  fake.compute->run(call.call());
  EXPECT_EQ(fake.first_error(),
            "cuda:0.compute: 'layer1.add': an input is not in the memory of this device");
}

TEST(CudaStream, EnqueueingAllocatesNothing) {
  FakeDeviceOptions options;
  options.monitored = false;
  options.runtime.log = options.runtime.check_order = options.runtime.protect = false;
  FakeDevice fake(options);
  // The kernel does nothing: an emulated one would allocate shared memory.
  struct Nothing final : PreparedKernel {
    void run(const KernelArguments& arguments) noexcept override { context = arguments.context; }
    const StepContext* context = nullptr;
  } kernel;
  const auto memory = fake.device->allocate(64);
  const auto event = fake.device->make_event(), sent = fake.device->make_event();
  AffineCall call(kernel, "layer1.copy", memory->address(), memory->address(), 16);
  float* const host = fake.pinned(4);
  auto step = [&] {
    ++call.context.step;
    fake.compute->run(call.call());
    fake.compute->record(*event, call.context.step);
    fake.copy_out->wait(*event, call.context.step);
    fake.copy_out->copy(host, memory->address(), 16, {"y"});
    fake.copy_out->record(*sent, call.context.step);
    fake.compute->wait(*sent, call.context.step);
    sent->synchronize(call.context.step);
  };
  step();
  const AllocationCount allocations;
  for (int i = 0; i < 100; ++i) step();
  fake.device->synchronize();
  EXPECT_EQ(allocations.calls(), 0);
  EXPECT_EQ(kernel.context->step, 101u);  // the GPU's copy: memory is not protected here
}

TEST(CudaStream, TracesHaveRealTimes) {
  FakeDevice fake;
  const auto memory = fake.device->allocate(stream_bytes);
  const auto kernel = affine_kernel(fake.runtime, 0, 1, stream_elements);
  AffineCall call(*kernel, "layer1.add", nullptr, memory->address(), stream_bytes);
  float* const host = fake.pinned(stream_elements);
  const auto step = [&] {
    fake.compute->run(call.call());
    fake.compute->copy(host, memory->address(), stream_bytes, {"logits"});
  };
  step();
  fake.monitor->start_trace(5);
  const double before = fake.monitor->real_time();
  for (int i = 0; i < 3; ++i) step();
  fake.device->synchronize();
  const double after = fake.monitor->real_time();
  const std::vector<TraceSpan> trace = fake.monitor->trace();
  ASSERT_THAT(trace, SizeIs(5));
  double earlier = before - 1e-4;  // milliseconds are floats
  for (const TraceSpan& span : trace) {
    EXPECT_GE(span.real_start, earlier) << span.name;
    EXPECT_GE(span.real_end, span.real_start) << span.name;
    earlier = span.real_end - 1e-6;
  }
  EXPECT_LE(earlier, after + 1e-4);
  EXPECT_EQ(trace[1].name, "logits");
  EXPECT_EQ(trace[1].bytes, stream_bytes);
}

// A kernel breaks the GPU: its launch succeeds, and a later call fails.
TEST(CudaStream, FailuresStay) {
  FakeDevice fake;
  const auto memory = fake.device->allocate(stream_bytes);
  const auto kernel = affine_kernel(fake.runtime, 0, 1, stream_elements);
  AffineCall call(*kernel, "encoder.layer1.add", nullptr, memory->address(), stream_bytes);
  fake.runtime->fail_kernel("affine");
  fake.compute->run(call.call());
  const std::string first = error_text_of([&] { fake.compute->synchronize(); });
  EXPECT_THAT(first, AllOf(HasSubstr("cuda:0"), HasSubstr("encoder.layer1.add"),
                           HasSubstr("an illegal memory access was encountered"),
                           HasSubstr("CUDA_LAUNCH_BLOCKING")));
  const auto event = [&] { return fake.device->make_event(); };
  EXPECT_EQ(error_text_of([&] { fake.compute->run(call.call()); }), first);
  EXPECT_EQ(error_text_of([&] { fake.copy_in->synchronize(); }), first);
  EXPECT_EQ(error_text_of([&] { fake.settle(*fake.copy_in); }), first);
  EXPECT_EQ(error_text_of([&] { event(); }), first);
  EXPECT_EQ(error_text_of([&] { fake.device->allocate(1); }), first);
  EXPECT_EQ(error_text_of([&] { fake.device->synchronize(); }), first);
  EXPECT_EQ(error_text_of([&] { fake.compute->begin_capture(); }), first);
  EXPECT_THAT(fake.runtime->problems(), IsEmpty());
}

TEST(CudaStream, AFailedCopyNamesItsValue) {
  FakeDevice fake;
  const auto memory = fake.device->allocate(stream_bytes);
  fake.runtime->fail("copy", 1, cudaErrorUnknown);
  EXPECT_THAT(error_text_of([&] {
                fake.copy_in->copy(memory->address(), fake.pinned(stream_elements), stream_bytes,
                                   {"images"});
              }),
              AllOf(HasSubstr("images: cuda:0: a copy failed"), HasSubstr("CUDA error 999")));
}

// A thread that waits for a record that can no longer be enqueued gets an error.
TEST(CudaStream, AFailedDeviceIsNoHang) {
  FakeDevice fake;
  const auto event = fake.device->make_event();
  std::string text;
  std::thread waiter([&] { text = error_text_of([&] { event->synchronize(1); }); });
  fake.runtime->fail("record", 1, cudaErrorIllegalAddress, true);
  EXPECT_NE(error_text_of([&] { fake.compute->record(*event, 1); }), "");
  waiter.join();
  EXPECT_THAT(text, HasSubstr("an illegal memory access"));
  const auto other = [&] { event->reached(1); };
  EXPECT_EQ(error_text_of(other), "");  // no call is made
}

TEST(CudaStream, AFailureWhileTheHostWaitsIsNoHang) {
  FakeDevice fake({.runtime = {.late = true}});
  Numbers numbers(fake);
  numbers.write(1);
  fake.runtime->fail_kernel("affine");
  EXPECT_THAT(error_text_of([&] { numbers.event->synchronize(1); }),
              HasSubstr("an illegal memory access"));
}

}  // namespace
}  // namespace tandem::testing
