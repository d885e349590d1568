// Tensors of the public library: what they hold, whom it belongs to, and DLPack.
#include "tandem/tensor.h"

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/api/error_of.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(TensorTest, HoldsValuesOfATypeAndShape) {
  const Tensor floats = Tensor::copy_of({2, 1}, std::vector<float>{1, 2});
  EXPECT_EQ(floats.dtype(), DType::float32);
  EXPECT_EQ(floats.elements(), 2);
  EXPECT_EQ(floats.bytes().size(), 8u);
  EXPECT_THAT(floats.values<float>(), ElementsAre(1, 2));
  const Tensor whole = Tensor::copy_of({2}, std::array<std::int64_t, 2>{3, 4});
  EXPECT_EQ(whole.dtype(), DType::int64);
  EXPECT_THAT(whole.floats(), ElementsAre(3, 4));
  EXPECT_EQ(Tensor::copy_of({1}, std::vector<std::uint8_t>{200}).dtype(), DType::uint8);
  EXPECT_EQ(Tensor::copy_of({}, std::vector<short>{-3}).dtype(), DType::int16);
  EXPECT_EQ(Tensor().shape(), (std::vector<std::int64_t>{0}));
}

TEST(TensorTest, ValuesAreOnlyReadInTheirType) {
  const Tensor whole = Tensor::copy_of({2}, std::vector<std::int64_t>{3, 4});
  EXPECT_THAT(error_of([&] { (void)whole.values<float>(); }),
              HasSubstr("expected int64, got float32"));
}

TEST(TensorTest, CopiesShareAndViewsBorrow) {
  std::vector<float> values{1, 2};
  const Tensor view = Tensor::view({2}, values), copy = Tensor::copy_of({2}, values);
  EXPECT_EQ(view, copy);
  values[0] = 5;
  EXPECT_THAT(view.floats(), ElementsAre(5, 2));
  EXPECT_THAT(copy.floats(), ElementsAre(1, 2));
  EXPECT_NE(view, copy);
  const Tensor other = copy;
  EXPECT_EQ(other.bytes().data(), copy.bytes().data());
  EXPECT_NE(copy, Tensor::copy_of({1, 2}, std::vector<float>{1, 2}));
}

TEST(TensorTest, AnOwnerLivesAsLongAsTheLastCopy) {
  auto owner = std::make_shared<std::vector<std::byte>>(4);
  Tensor tensor = Tensor::view_bytes(DType::uint8, {4}, *owner, owner);
  const Tensor copy = tensor;
  tensor = Tensor();
  EXPECT_EQ(owner.use_count(), 2);
}

TEST(TensorTest, BytesMustFitTheType) {
  const std::vector<std::byte> bytes(15);
  EXPECT_THAT(error_of([&] { Tensor::copy_of_bytes(DType::float64, {2}, bytes); }),
              HasSubstr("expected 16 bytes of float64[2], got 15 bytes"));
  const Tensor flags =
      Tensor::copy_of_bytes(DType::boolean, {1}, std::vector<std::byte>{std::byte{2}});
  EXPECT_THAT(error_of([&] { (void)flags.floats(); }), HasSubstr("neither 0 nor 1"));
}

TEST(TensorTest, ValuesMustFillTheShape) {
  const auto refusal = [](const std::vector<std::int64_t>& shape, std::size_t count) {
    return error_of([&] { Tensor::copy_of(shape, std::vector<float>(count)); });
  };
  EXPECT_THAT(refusal({2, 3}, 5), HasSubstr("expected 6 values for [2, 3], got 5"));
  EXPECT_THAT(refusal({2, 3}, 7), HasSubstr("expected 6 values for [2, 3], got 7"));
  EXPECT_THAT(refusal({}, 0), HasSubstr("expected 1 values for [], got 0"));
  EXPECT_THAT(refusal({0, 3}, 1), HasSubstr("expected 0 values for [0, 3], got 1"));
  EXPECT_THAT(refusal({-1, -6}, 6), HasSubstr("got [-1, -6]"));
  constexpr std::int64_t half = std::int64_t{1} << 32;
  EXPECT_THAT(refusal({half, half}, 0), HasSubstr("cannot have this shape"));  // 2^64 wraps to 0
  EXPECT_THAT(refusal({half, half, 0}, 0), HasSubstr("cannot have this shape"));
  EXPECT_THAT(error_of([] {
                Tensor::copy_of({3}, std::vector<std::int64_t>{1, 2});
              }),
              HasSubstr("expected 3 values for [3], got 2"));
  EXPECT_TRUE(Tensor::copy_of({0, 3}, std::vector<float>()).bytes().empty());
}

/// A tensor of another library, which counts how often it was released.
struct Foreign {
  std::vector<float> values;
  std::vector<std::int64_t> shape, strides;
  int released = 0;
  DLManagedTensor managed{};

  Foreign(std::vector<float> v, std::vector<std::int64_t> s, std::vector<std::int64_t> steps = {})
      : values(std::move(v)), shape(std::move(s)), strides(std::move(steps)) {
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = values.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->released;
    };
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
};

TEST(TensorTest, TakesARowMajorTensorOverWithoutACopy) {
  Foreign foreign({1, 2, 3, 4, 5, 6}, {2, 3});
  {
    const Tensor tensor = Tensor::from_dlpack(&foreign.managed);
    EXPECT_EQ(tensor.shape(), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(tensor.values<float>().data(), foreign.values.data());
    const Tensor copy = tensor;
    EXPECT_EQ(foreign.released, 0);
  }
  EXPECT_EQ(foreign.released, 1);
}

TEST(TensorTest, CopiesOtherStrides) {
  Foreign columns({1, 2, 3, 4, 5, 6}, {3, 2}, {1, 3});  // the transpose of [2, 3]
  const Tensor tensor = Tensor::from_dlpack(&columns.managed);
  EXPECT_EQ(columns.released, 1);
  EXPECT_THAT(tensor.values<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  Foreign part({1, 2, 3, 4}, {2}, {1});
  part.managed.dl_tensor.byte_offset = 8;
  EXPECT_THAT(Tensor::from_dlpack(&part.managed).floats(), ElementsAre(3, 4));
}

TEST(TensorTest, RefusesOtherDevicesAndTypesAndLeavesThemToTheCaller) {
  Foreign foreign({1}, {1});
  foreign.managed.dl_tensor.device = {kDLCUDA, 0};
  EXPECT_THAT(error_of([&] { Tensor::from_dlpack(&foreign.managed); }),
              AllOf(HasSubstr("on another device"), HasSubstr("copy it to the host first")));
  foreign.managed.dl_tensor.device = {kDLCPU, 0};
  foreign.managed.dl_tensor.dtype = {kDLComplex, 64, 1};
  EXPECT_THAT(error_of([&] { Tensor::from_dlpack(&foreign.managed); }),
              HasSubstr("element type of DLPack is not taken"));
  foreign.managed.dl_tensor.dtype = {kDLFloat, 32, 1};
  foreign.shape[0] = -1;
  EXPECT_THAT(error_of([&] { Tensor::from_dlpack(&foreign.managed); }), HasSubstr("got [-1]"));
  EXPECT_EQ(foreign.released, 0);
}

TEST(TensorTest, GivesItsElementsAwayWithoutACopy) {
  const Tensor tensor = Tensor::copy_of({2, 2}, std::vector<std::int32_t>{1, 2, 3, 4});
  DLManagedTensor* const given = tensor.to_dlpack();
  const DLTensor& shown = given->dl_tensor;
  EXPECT_EQ(shown.data, tensor.bytes().data());
  EXPECT_EQ(shown.ndim, 2);
  EXPECT_EQ(shown.shape[1], 2);
  EXPECT_EQ(shown.dtype.code, kDLInt);
  EXPECT_EQ(shown.dtype.bits, 32);
  EXPECT_EQ(Tensor::from_dlpack(given), tensor);  // calls the deleter
  const Tensor scales = Tensor::copy_of_bytes(DType::float8_e5m2, {1}, std::vector<std::byte>(1));
  EXPECT_THAT(error_of([&] { scales.to_dlpack(); }), HasSubstr("DLPack has no such element type"));
}

}  // namespace
}  // namespace tandem::api
