// A card whose products are computed by the fake cuBLASLt.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/cuda/support/fake_card.h"
#include "tests/cuda/support/fake_cublas_lt.h"

namespace tandem::testing {

/// cuBLASLt alone.
class LtLibraries final : public cuda::Libraries {
 public:
  explicit LtLibraries(const cuda::CublasLt* table) : table_(table) {}
  const cuda::CublasLt* cublas_lt() override { return table_; }
  const cuda::Cudnn* cudnn() override { return nullptr; }
  const cuda::Nvrtc* nvrtc() override { return nullptr; }
  const cuda::Nccl* nccl() override { return nullptr; }
  std::vector<CudaLibraryReport> report() override { return {}; }

 private:
  const cuda::CublasLt* table_;
};

struct ProductCard : FakeCard {
  explicit ProductCard(FakeRuntimeOptions options = {})
      : FakeCard(std::move(options)), lt(runtime) {
    card->libraries = std::make_shared<LtLibraries>(lt.table());
    cuda::add_product_kernels(kernels, card);
  }

  void expect_clean() {
    EXPECT_EQ(problem(), "");
    for (const std::string& text : lt.problems()) ADD_FAILURE() << text;
  }

  FakeCublasLt lt;
  KernelList kernels;
};

}  // namespace tandem::testing
