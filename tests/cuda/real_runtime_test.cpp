// The CUDA runtime that is linked in: without a driver its calls fail and nothing else happens; on
// a GPU they behave like the fake's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/runtime/runtime.h"

namespace tandem::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

bool has_gpu(cuda::Runtime& runtime) {
  int count = 0;
  return runtime.gpu_count(count) == cudaSuccess && count > 0;
}

TEST(RealRuntime, WithoutADriverEveryCallFails) {
  const auto runtime = cuda::make_real_runtime();
  if (has_gpu(*runtime)) GTEST_SKIP() << "this machine has a GPU";
  int number = -1;
  EXPECT_NE(runtime->gpu_count(number), cudaSuccess);
  EXPECT_EQ(number, 0);
  runtime->driver_version(number);
  EXPECT_GE(number, 0);
  cuda::GpuProperties properties;
  EXPECT_NE(runtime->properties(0, properties), cudaSuccess);
  EXPECT_EQ(properties.name, "");
  EXPECT_NE(runtime->set_gpu(0), cudaSuccess);
  std::size_t free = 1, total = 1;
  EXPECT_NE(runtime->free_bytes(free, total), cudaSuccess);
  EXPECT_EQ(free + total, 0u);

  void* memory = &number;
  EXPECT_NE(runtime->allocate(memory, 16), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  memory = &number;
  EXPECT_NE(runtime->allocate_pinned(memory, 16), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  cudaStream_t stream = nullptr;
  EXPECT_NE(runtime->make_stream(stream), cudaSuccess);
  EXPECT_EQ(stream, nullptr);
  cudaEvent_t event = nullptr;
  EXPECT_NE(runtime->make_event(event), cudaSuccess);
  EXPECT_EQ(event, nullptr);
  EXPECT_NE(runtime->synchronize_gpu(), cudaSuccess);
  char from = 0, to = 0;
  EXPECT_NE(runtime->copy(&to, &from, 1, stream), cudaSuccess);
  EXPECT_NE(runtime->copy_now(&to, &from, 1), cudaSuccess);
  EXPECT_NE(runtime->fill(&to, 0, 1, stream), cudaSuccess);
  EXPECT_NE(runtime->begin_capture(stream), cudaSuccess);
  cudaGraphExec_t graph = nullptr;
  EXPECT_NE(runtime->end_capture(stream, graph), cudaSuccess);
  EXPECT_EQ(graph, nullptr);
  cudaLibrary_t library = nullptr;
  EXPECT_NE(runtime->load_library(library, "no code"), cudaSuccess);
  EXPECT_EQ(library, nullptr);
}

TEST(RealRuntime, SaysWhatAnErrorMeans) {
  const auto runtime = cuda::make_real_runtime();
  EXPECT_EQ(runtime->error_text(cudaErrorMemoryAllocation),
            "out of memory (cudaErrorMemoryAllocation)");
  EXPECT_THAT(runtime->error_text(cudaErrorInsufficientDriver), HasSubstr("driver version"));
}

TEST(RealRuntime, CopiesRecordsAndReplaysOnAGpu) {
  const auto runtime = cuda::make_real_runtime();
  if (!has_gpu(*runtime)) GTEST_SKIP() << "this machine has no GPU";
  constexpr std::size_t bytes = 4096;
  ASSERT_EQ(runtime->set_gpu(0), cudaSuccess);
  void *gpu = nullptr, *host = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(runtime->allocate(gpu, bytes), cudaSuccess);
  ASSERT_EQ(runtime->allocate_pinned(host, bytes), cudaSuccess);
  ASSERT_EQ(runtime->make_stream(stream), cudaSuccess);
  ASSERT_EQ(runtime->make_event(event), cudaSuccess);
  EXPECT_EQ(runtime->begin_capture(stream), cudaSuccess);
  EXPECT_EQ(runtime->fill(gpu, 7, bytes, stream), cudaSuccess);
  EXPECT_EQ(runtime->copy(host, gpu, bytes, stream), cudaSuccess);
  EXPECT_NE(runtime->synchronize(stream), cudaSuccess);  // breaks the capture
  cudaGraphExec_t graph = nullptr;
  EXPECT_NE(runtime->end_capture(stream, graph), cudaSuccess);
  EXPECT_EQ(runtime->begin_capture(stream), cudaSuccess);
  EXPECT_EQ(runtime->fill(gpu, 7, bytes, stream), cudaSuccess);
  EXPECT_EQ(runtime->copy(host, gpu, bytes, stream), cudaSuccess);
  ASSERT_EQ(runtime->end_capture(stream, graph), cudaSuccess);
  EXPECT_EQ(runtime->launch_graph(graph, stream), cudaSuccess);
  EXPECT_EQ(runtime->record(event, stream), cudaSuccess);
  EXPECT_EQ(runtime->synchronize(event), cudaSuccess);
  EXPECT_EQ(runtime->query(event), cudaSuccess);
  const auto* filled = static_cast<const unsigned char*>(host);
  EXPECT_THAT(std::vector<unsigned char>(filled, filled + bytes), Each(7));
  std::vector<unsigned char> now(bytes, 1), back(bytes);
  EXPECT_EQ(runtime->copy_now(gpu, now.data(), bytes), cudaSuccess);
  EXPECT_EQ(runtime->copy_now(back.data(), gpu, bytes), cudaSuccess);
  EXPECT_EQ(back, now);
  EXPECT_EQ(runtime->destroy_graph(graph), cudaSuccess);
  EXPECT_EQ(runtime->destroy_event(event), cudaSuccess);
  EXPECT_EQ(runtime->destroy_stream(stream), cudaSuccess);
  EXPECT_EQ(runtime->release(gpu), cudaSuccess);
  EXPECT_EQ(runtime->release_pinned(host), cudaSuccess);
}

}  // namespace
}  // namespace tandem::testing
