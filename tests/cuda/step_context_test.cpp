// Step contexts of the CUDA device: when they are copied, that data is not overwritten while a copy
// still reads it, and how the error word reaches the host.
#include <gmock/gmock.h>

#include "kernels/cuda/device/step_contexts.h"
#include "tests/cuda/support/fake_device.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t context_steps = 40, context_bytes = context_steps * sizeof(float);

// y = step, and an error if the step equals `bad_step`.
struct StepBody {
  float* y;
  const cuda::DeviceStepContext* context;
  std::uint64_t bad_step;

  template <class Block>
  void operator()(Block& block) const {
    block.one([&] {
      *y = static_cast<float>(context->step * 100 + context->micro_batch);
      if (context->step == bad_step)
        cuda::report_error(context->error, ErrorWord::index_out_of_range, 17, -5);
    });
  }
};

struct StepContextTest : ::testing::Test {
  void make(bool late = false) {
    fake = std::make_unique<FakeDevice>(FakeDeviceOptions{.runtime = {.late = late}});
    memory = fake->device->allocate(context_bytes);
    kernel = prepared([runtime = fake->runtime, this](const KernelArguments& arguments) {
      const StepBody body{static_cast<float*>(arguments.outputs[0]),
                          reinterpret_cast<const cuda::DeviceStepContext*>(arguments.context),
                          bad_step};
      runtime->launch(host_launch("step", {1, 1, 1, 0}, body),
                      static_cast<cudaStream_t>(arguments.queue));
    });
  }
  AffineCall call(std::size_t place) {
    AffineCall result(*kernel, "step", nullptr, static_cast<float*>(memory->address()) + place,
                      sizeof(float));
    result.context.error = &error;
    return result;
  }
  int copies() const {
    int count = 0;
    for (const std::string& text : fake->runtime->calls()) count += text.starts_with("copy ");
    return count;
  }

  std::unique_ptr<FakeDevice> fake;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<PreparedKernel> kernel;
  ErrorWord error;
  std::uint64_t bad_step = 1'000'000;
};

TEST_F(StepContextTest, IsCopiedOnlyWhenItsContentHasChanged) {
  make();
  AffineCall first = call(0), second = call(1);
  fake->compute->run(first.call());
  fake->compute->run(second.call());  // another object with the same content
  EXPECT_EQ(copies(), 1);
  first.context.step = 2;
  fake->compute->run(first.call());
  EXPECT_EQ(copies(), 2);
  first.context.micro_batch = 3;
  fake->compute->run(first.call());
  fake->compute->run(first.call());
  EXPECT_EQ(copies(), 3);
  AffineCall third = call(2);
  third.context = first.context;
  fake->copy_in->run(third.call());  // another stream has its own block
  EXPECT_EQ(copies(), 4);
  EXPECT_THAT(fake->runtime->problems(), IsEmpty());
}

// More steps than slots, all enqueued before the first one runs.
TEST_F(StepContextTest, NothingOverwritesASlotThatACopyReads) {
  make(true);
  static_assert(context_steps > 2 * cuda::StepContexts::slots);
  AffineCall each = call(0);
  for (std::size_t i = 0; i < context_steps; ++i) {
    each.output = static_cast<float*>(memory->address()) + i;
    each.accesses[0].address = each.output;
    each.context.step = i;
    fake->compute->run(each.call());
  }
  const std::vector<float> steps = floats_at(*fake->device, memory->address(), context_steps);
  for (std::size_t i = 0; i < context_steps; ++i)
    EXPECT_EQ(steps[i], 100.0f * static_cast<float>(i));
  EXPECT_THAT(fake->runtime->problems(), IsEmpty());
}

TEST_F(StepContextTest, GraphsSeeTheContentAtTheirLaunch) {
  make(true);
  AffineCall first = call(0), second = call(1);
  second.context.micro_batch = 7;
  fake->compute->begin_capture();
  fake->compute->run(first.call());
  fake->compute->run(second.call());
  const auto captured = fake->compute->end_capture();
  fake->runtime->clear_calls();
  AffineCall plain = call(2);
  for (std::uint64_t step = 1; step <= 50; ++step) {
    first.context.step = second.context.step = step;
    plain.context.step = 1000 + step;
    fake->compute->launch(*captured);
    fake->compute->run(plain.call());
  }
  first.context.step = 99;  // after its launch
  EXPECT_THAT(floats_at(*fake->device, memory->address(), 3), ElementsAre(5000, 5007, 105000));
  EXPECT_EQ(copies(), 150);
  fake->compute->launch(*captured);
  fake->runtime->clear_calls();
  fake->compute->launch(*captured);
  EXPECT_EQ(copies(), 0);  // the content has not changed
  EXPECT_THAT(fake->runtime->problems(), IsEmpty());
}

TEST_F(StepContextTest, TooManyInOneGraphAreRefused) {
  make();
  std::vector<AffineCall> calls;
  for (int i = 0; i < 17; ++i) calls.push_back(call(0));
  fake->compute->begin_capture();
  for (int i = 0; i < 16; ++i) fake->compute->run(calls[i].call());
  EXPECT_THAT(error_text_of([&] { fake->compute->run(calls[16].call()); }),
              HasSubstr("too many step contexts"));
  EXPECT_THAT(error_text_of([&] { fake->compute->end_capture(); }), HasSubstr("broken"));
}

TEST_F(StepContextTest, ErrorsReachTheHostWhenItHasWaited) {
  make();
  bad_step = 5;
  AffineCall each = call(0);
  const auto event = fake->device->make_event();
  for (std::uint64_t step = 1; step <= 6; ++step) {
    each.context.step = step;
    fake->compute->run(each.call());
    fake->compute->record(*event, step);
  }
  EXPECT_EQ(error.packed.load(), 0);
  event->synchronize(6);
  EXPECT_EQ(error.packed.load() >> 32, ErrorWord::index_out_of_range);
  EXPECT_EQ(error.packed.load() & 0xffffffff, 17);
  EXPECT_EQ(error.value.load(), -5);

  ErrorWord next;  // for the next program
  each.context.error = &next;
  fake->compute->run(each.call());
  fake->compute->synchronize();
  EXPECT_EQ(next.packed.load(), 0);  // the GPU's word was cleared
  bad_step = 8;
  each.context.step = 8;
  fake->compute->run(each.call());
  fake->device->synchronize();
  EXPECT_EQ(next.value.load(), -5);
}

TEST_F(StepContextTest, ErrorsInGraphsReachTheHost) {
  make();
  bad_step = 2;
  AffineCall each = call(0);
  fake->compute->begin_capture();
  fake->compute->run(each.call());
  const auto captured = fake->compute->end_capture();
  each.context.step = 2;
  fake->compute->launch(*captured);
  fake->compute->synchronize();
  EXPECT_EQ(error.value.load(), -5);
}

TEST_F(StepContextTest, TheFirstErrorWins) {
  make(true);
  AffineCall each = call(0);
  error.report(ErrorWord::bad_label, 3, 12);
  bad_step = 1;
  each.context.step = 1;
  fake->compute->run(each.call());
  fake->compute->synchronize();
  EXPECT_EQ(error.packed.load() >> 32, ErrorWord::bad_label);
  each.context.error = nullptr;  // no error word
  fake->compute->run(each.call());
  fake->compute->synchronize();
  EXPECT_THAT(fake->runtime->problems(), IsEmpty());
}

}  // namespace
}  // namespace tandem::testing
