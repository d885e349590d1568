// The fake CUDA runtime itself: which calls it accepts and which errors it reports.
#include "tests/cuda/support/fake_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/shared/block/numbers.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y = x + add
struct Add {
  const float* x;
  float* y;
  float add;
  int count;
  template <class Block>
  void operator()(Block& block) const {
    block.each([&](int thread) {
      for (int i = thread; i < count; i += block.threads()) y[i] = x[i] + add;
    });
  }
};

struct Fixture : ::testing::Test {
  void make(FakeRuntimeOptions options = {}) {
    runtime = std::make_unique<FakeRuntime>(options);
    for (cudaStream_t* stream : {&a, &b}) ASSERT_EQ(runtime->make_stream(*stream), cudaSuccess);
    for (cudaEvent_t* event : {&first, &second})
      ASSERT_EQ(runtime->make_event(*event), cudaSuccess);
    x = on_gpu();
    y = on_gpu();
    pinned = static_cast<float*>(on_host());
    runtime->clear_calls();
  }
  float* on_gpu() {
    void* to = nullptr;
    EXPECT_EQ(runtime->allocate(to, 4 * sizeof(float)), cudaSuccess);
    return static_cast<float*>(to);
  }
  void* on_host() {
    void* to = nullptr;
    EXPECT_EQ(runtime->allocate_pinned(to, 4 * sizeof(float)), cudaSuccess);
    return to;
  }
  cudaError_t add(const float* from, float* to, float number, cudaStream_t stream, int count = 4) {
    const Add body{from, to, number, count};
    return runtime->launch(host_launch("add", {1, 1, 32, 0}, body), stream);
  }
  void declare(const float* from, const float* to) {
    const ByteAccess accesses[] = {{from, 16, false}, {to, 16, true}};
    runtime->declare({"add", 0, accesses});
  }
  std::vector<float> read(const float* from) {
    const auto* bytes = reinterpret_cast<const float*>(runtime->host_view(from));
    return {bytes, bytes + 4};
  }

  std::unique_ptr<FakeRuntime> runtime;
  cudaStream_t a = nullptr, b = nullptr;
  cudaEvent_t first = nullptr, second = nullptr;
  float *x = nullptr, *y = nullptr, *pinned = nullptr;
};
using FakeRuntimeTest = Fixture;

TEST_F(FakeRuntimeTest, RunsKernelsAndCopiesInOrder) {
  make();
  for (int i = 0; i < 4; ++i) pinned[i] = static_cast<float>(i);
  EXPECT_EQ(runtime->copy(x, pinned, 16, a), cudaSuccess);
  EXPECT_EQ(add(x, y, 10, a), cudaSuccess);
  EXPECT_EQ(runtime->record(first, a), cudaSuccess);
  EXPECT_EQ(runtime->wait(b, first), cudaSuccess);
  EXPECT_EQ(runtime->copy(pinned, y, 16, b), cudaSuccess);
  EXPECT_EQ(runtime->synchronize(b), cudaSuccess);
  EXPECT_THAT(std::vector<float>(pinned, pinned + 4), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(runtime->calls(),
              ElementsAre("copy 16 bytes host to GPU stream 1", "launch add stream 1",
                          "record event 1 stream 1", "wait event 1 stream 2",
                          "copy 16 bytes GPU to host stream 2", "synchronize stream 2"));
  EXPECT_THAT(runtime->problems(), IsEmpty());
  EXPECT_EQ(runtime->leaks().size(), 7u);
}

TEST_F(FakeRuntimeTest, FreshMemoryIsNaNAndTheHostCannotTouchIt) {
  make();
  for (const float value : read(x)) EXPECT_NE(value, value);
  EXPECT_DEATH(*const_cast<volatile float*>(x) = 1, "");
}

/// Copies numbers to shared memory and back; with `global` it stores them with global writes.
struct ThroughShared {
  const float* x;
  float* y;
  bool global;
  template <class Block>
  void operator()(Block& block) const {
    auto* const kept = block.template shared<float>();
    block.each([&](int thread) {
      float four[4];
      cuda::load(four, x + 4 * thread);
      if (global) cuda::store(kept + 4 * thread, four);
      if (!global) std::copy_n(four, 4, kept + 4 * thread);
      std::copy_n(kept + 4 * thread, 4, four);
      cuda::store(y + 4 * thread, four);
    });
  }
};

TEST_F(FakeRuntimeTest, GlobalAccessesOfSharedMemoryEndAKernel) {
  for (const bool global : {false, true}) {
    make();
    const ThroughShared body{x, y, global};
    runtime->copy_now(x, std::vector<float>{1, 2, 3, 4}.data(), 16);
    EXPECT_EQ(runtime->launch(host_launch("through", {1, 1, 1, 16}, body), a), cudaSuccess);
    if (!global) {
      EXPECT_THAT(read(y), ElementsAre(1, 2, 3, 4));
      EXPECT_THAT(runtime->problems(), IsEmpty());
      continue;
    }
    EXPECT_THAT(runtime->problems(),
                ElementsAre("kernel through: an access of global memory at an address of shared "
                            "memory"));
    EXPECT_EQ(add(x, y, 1, a), cudaSuccess) << "the others go on";
    EXPECT_THAT(read(y), ElementsAre(2, 3, 4, 5));
  }
}

TEST_F(FakeRuntimeTest, MisalignedAccessesEndAKernel) {
  make();
  const ThroughShared body{x + 1, y, false};
  runtime->launch(host_launch("through", {1, 1, 1, 16}, body), a);
  EXPECT_THAT(runtime->problems(), ElementsAre("kernel through: an access of 16 bytes at an "
                                               "address that is no multiple of them"));
}

TEST_F(FakeRuntimeTest, LateStreamsRunWhenSomebodyWaits) {
  make({.late = true});
  pinned[0] = pinned[1] = pinned[2] = pinned[3] = 1;
  runtime->copy(x, pinned, 16, a);
  add(x, y, 1, a);
  runtime->record(first, a);
  pinned[0] = 5;  // before the copy has read it
  EXPECT_EQ(runtime->query(first), cudaErrorNotReady);
  runtime->wait(b, first);
  runtime->copy(pinned, y, 16, b);
  EXPECT_EQ(pinned[1], 1);
  EXPECT_EQ(runtime->synchronize(b), cudaSuccess);
  EXPECT_THAT(std::vector<float>(pinned, pinned + 4), ElementsAre(6, 2, 2, 2));
  EXPECT_EQ(runtime->query(first), cudaSuccess);
}

TEST_F(FakeRuntimeTest, AMissingWaitIsReported) {
  make();
  declare(x, y);
  add(x, y, 1, a);
  declare(y, x);
  add(y, x, 1, b);
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("touch the same bytes")));
}

TEST_F(FakeRuntimeTest, AMissingWaitOfTheHostIsReported) {
  make();
  runtime->copy(pinned, x, 16, a);
  float host[4];
  runtime->copy_now(host, pinned, 16);
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("touch the same bytes")));
}

TEST_F(FakeRuntimeTest, EventsOrder) {
  make();
  declare(x, y);
  add(x, y, 1, a);
  runtime->record(first, a);
  runtime->wait(b, first);
  declare(y, x);
  add(y, x, 1, b);
  runtime->record(second, b);
  runtime->synchronize(second);
  float host[4];
  runtime->copy_now(host, x, 16);
  EXPECT_THAT(runtime->problems(), IsEmpty());
}

TEST_F(FakeRuntimeTest, MemoryThatIsMisusedIsReported) {
  make();
  runtime->fill(x, 0, 16, a);
  add(x, y, 1, a, 5);  // one past the ends of both
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("guard behind a GPU 0's block")));
  EXPECT_EQ(runtime->copy(x + 1, pinned, 16, a), cudaErrorInvalidValue);
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("past the end")));
  float* const gone = x;
  EXPECT_EQ(runtime->release(gone), cudaSuccess);
  EXPECT_EQ(runtime->release(gone), cudaErrorInvalidValue);
  EXPECT_EQ(runtime->copy(pinned, gone, 16, a), cudaErrorInvalidValue);
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("that was released")));
  add(y, gone, 1, a);
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("a released GPU 0's block")));
  void* none = nullptr;
  EXPECT_EQ(runtime->allocate(none, std::size_t{2} << 30), cudaErrorMemoryAllocation);
}

TEST_F(FakeRuntimeTest, GraphsRunAgain) {
  make();
  for (int i = 0; i < 4; ++i) pinned[i] = 0;
  EXPECT_EQ(runtime->begin_capture(a), cudaSuccess);
  runtime->copy(x, pinned, 16, a);
  runtime->record(first, a);
  runtime->wait(b, first);
  add(x, y, 1, b);
  runtime->record(second, b);
  runtime->wait(a, second);
  cudaGraphExec_t graph = nullptr;
  EXPECT_EQ(runtime->end_capture(a, graph), cudaSuccess);
  EXPECT_NE(read(y)[0], 1);  // the graph has not run
  EXPECT_EQ(runtime->launch_graph(graph, a), cudaSuccess);
  EXPECT_THAT(read(y), ElementsAre(1, 1, 1, 1));
  pinned[2] = 7;
  EXPECT_EQ(runtime->launch_graph(graph, a), cudaSuccess);
  EXPECT_THAT(read(y), ElementsAre(1, 1, 8, 1));
  EXPECT_EQ(runtime->query(first), cudaErrorCapturedEvent);
  EXPECT_EQ(runtime->destroy_graph(graph), cudaSuccess);
  EXPECT_EQ(runtime->problems().size(), 1u);  // from the query
}

TEST_F(FakeRuntimeTest, RulesOfCapture) {
  make();
  cudaGraphExec_t graph = nullptr;
  void* memory = nullptr;
  const auto broken = [&](auto&& call, cudaError_t expected) {
    ASSERT_EQ(runtime->begin_capture(a), cudaSuccess);
    EXPECT_EQ(call(), expected);
    EXPECT_NE(runtime->end_capture(a, graph), cudaSuccess);
    EXPECT_EQ(graph, nullptr);
  };
  float host[4];
  broken([&] { return runtime->allocate(memory, 16); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return runtime->release(x); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return runtime->synchronize(b); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return runtime->synchronize_gpu(); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return runtime->query(first); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return runtime->copy_now(host, x, 16); }, cudaErrorStreamCaptureUnsupported);
  broken([&] { return runtime->copy(x, host, 16, a); }, cudaErrorStreamCaptureUnsupported);
  runtime->record(second, b);
  broken([&] { return runtime->wait(a, second); }, cudaErrorStreamCaptureIsolation);
  broken(
      [&] {
        runtime->record(first, a);
        runtime->wait(b, first);
        return add(x, y, 1, b);  // never joined
      },
      cudaSuccess);
  EXPECT_THAT(runtime->problems(), Contains(HasSubstr("before stream 2 is joined")));
  EXPECT_EQ(runtime->end_capture(a, graph), cudaErrorIllegalState);
}

TEST_F(FakeRuntimeTest, FailuresOnOrder) {
  make();
  runtime->fail("launch", 2, cudaErrorLaunchOutOfResources);
  EXPECT_EQ(add(x, y, 1, a), cudaSuccess);
  EXPECT_EQ(add(x, y, 1, a), cudaErrorLaunchOutOfResources);
  EXPECT_EQ(add(x, y, 1, a), cudaSuccess);
  runtime->fail_kernel("add");
  EXPECT_EQ(add(x, y, 1, a), cudaSuccess);
  EXPECT_EQ(runtime->synchronize(a), cudaErrorIllegalAddress);
  EXPECT_EQ(add(x, y, 1, a), cudaErrorIllegalAddress);
  EXPECT_THAT(runtime->problems(), IsEmpty());
}

TEST_F(FakeRuntimeTest, HandlesAndGpus) {
  make({.gpus = 2});
  EXPECT_EQ(add(x, y, 1, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(runtime->set_gpu(1), cudaSuccess);
  EXPECT_EQ(add(x, y, 1, a), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(runtime->set_gpu(2), cudaErrorInvalidDevice);
  EXPECT_EQ(runtime->problems().size(), 3u);
}

TEST(FakeRuntimeWithoutDriver, SaysSo) {
  FakeRuntime runtime({.driver_version = 0});
  int count = -1;
  EXPECT_EQ(runtime.gpu_count(count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace tandem::testing
