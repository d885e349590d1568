// A GPU whose products are computed by the fake cuBLASLt.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/cuda/support/fake_cublas_lt.h"
#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

struct ProductGpu : FakeGpu {
  explicit ProductGpu(FakeRuntimeOptions options = {}) : FakeGpu(std::move(options)), lt(runtime) {
    gpu->libraries = std::make_shared<GivenLibraries>(LibraryTables{.cublas_lt = lt.table()});
    cuda::add_product_kernels(kernels, gpu);
  }

  void expect_clean() {
    EXPECT_EQ(problem(), "");
    for (const std::string& text : lt.problems()) ADD_FAILURE() << text;
  }

  FakeCublasLt lt;
  KernelList kernels;
};

}  // namespace tandem::testing
