// A GPU on the fake runtime with one stream, for tests of kernels.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/context.h"
#include "tests/cuda/support/fake_runtime.h"
#include "tests/cuda/support/given_libraries.h"
#include "tests/harness/operator_case.h"

namespace tandem::testing {

struct FakeGpu {
  explicit FakeGpu(FakeRuntimeOptions options = {},
                   std::shared_ptr<cuda::Libraries> libraries = nullptr)
      : runtime(std::make_shared<FakeRuntime>(std::move(options))),
        gpu(std::make_shared<cuda::GpuContext>()) {
    gpu->runtime = runtime;
    gpu->libraries = libraries ? std::move(libraries) : std::make_shared<GivenLibraries>();
    runtime->properties(0, gpu->properties);
    runtime->make_stream(stream);
    facts.kind = "cuda";
    facts.features = {"bfloat16", "float16", "tf32", "sm_90"};
  }

  /// Options for `run_node`: operands stay in memory of the host, which the fake's kernels may
  /// touch.
  RunOptions run_options() {
    RunOptions options;
    options.queue = stream;
    options.facts = &facts;
    options.finish = [this] { runtime->synchronize(stream); };
    return options;
  }

  /// The first failed call of a kernel or the first broken rule; "" if there is none.
  std::string problem() {
    std::string text = gpu->take_failure();
    const std::vector<std::string> problems = runtime->problems();
    if (text.empty() && !problems.empty()) text = problems.front();
    return text;
  }

  std::shared_ptr<FakeRuntime> runtime;
  cuda::Gpu gpu;
  cudaStream_t stream = nullptr;
  DeviceFacts facts;
};

}  // namespace tandem::testing
