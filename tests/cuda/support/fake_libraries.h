// All fakes of libraries together.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "kernels/cuda/libraries/libraries.h"
#include "tests/cuda/support/fake_cublas_lt.h"
#include "tests/cuda/support/fake_cudnn.h"

namespace tandem::testing {

/// Only one can exist.
class FakeLibraries final : public cuda::Libraries {
 public:
  explicit FakeLibraries(std::shared_ptr<FakeRuntime> runtime) : lt(runtime), dnn(runtime) {}

  const cuda::CublasLt* cublas_lt() override { return lt.table(); }
  const cuda::Cudnn* cudnn() override { return dnn.table(); }
  const cuda::Nvrtc* nvrtc() override { return compiler; }
  const cuda::Nccl* nccl() override { return nullptr; }
  std::vector<FoundLibrary> report() override { return {}; }

  void expect_no_problem() const {
    for (const std::string& text : lt.problems()) ADD_FAILURE() << text;
    for (const std::string& text : dnn.problems()) ADD_FAILURE() << text;
  }

  FakeCublasLt lt;
  FakeCudnn dnn;
  const cuda::Nvrtc* compiler = nullptr;  // none, unless a test sets one
};

}  // namespace tandem::testing
