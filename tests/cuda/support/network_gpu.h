// A GPU whose convolutions and attention are computed by the fake cuDNN.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/cuda/support/fake_cudnn.h"
#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

struct NetworkGpu : FakeGpu {
  explicit NetworkGpu(FakeRuntimeOptions options = {})
      : FakeGpu(std::move(options)), cudnn(runtime) {
    gpu->libraries = std::make_shared<GivenLibraries>(LibraryTables{.cudnn = cudnn.table()});
    list_kernels();
  }

  /// Lists the kernels again, without any known plans.
  void list_kernels() {
    kernels.clear();
    cuda::add_network_kernels(kernels, gpu);
  }

  const Kernel& kernel(const std::string& name, const std::string& op) const {
    for (const Kernel& kernel : kernels) {
      if (kernel.name == name && kernel.op == op) return kernel;
    }
    throw std::runtime_error("no kernel " + name + " of " + op);
  }

  void expect_clean() {
    EXPECT_EQ(problem(), "");
    for (const std::string& text : cudnn.problems()) ADD_FAILURE() << text;
  }

  FakeCudnn cudnn;
  KernelList kernels;
};

}  // namespace tandem::testing
