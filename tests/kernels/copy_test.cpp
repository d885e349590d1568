// Copy, Concat, Pad, SliceGrad, Gather and its gradient against the reference.
#include <gtest/gtest.h>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

TEST(Copy, AnyOrderOfAxes) {
  const Shape shape{3, 70, 9, 65};
  std::vector<int> order{0, 1, 2, 3};
  do {
    check({.op = "Copy", .inputs = {{random_tensor(shape), permuted(shape, order)}}});
    check({.op = "Copy",
           .inputs = {{random_tensor(shape)}},
           .output_layouts = {permuted(shape, order)}});
  } while (std::next_permutation(order.begin(), order.end()));
  check({.op = "Copy",
         .inputs = {{random_tensor(shape), with_gaps(shape, 5)}},
         .output_layouts = {channels_last(shape)}});
  check({.op = "Copy", .inputs = {{random_tensor({})}}});
}

// The value has another order of axes; the state keeps its own.
TEST(Copy, AssignsInAnyOrder) {
  const Shape shape{3, 70, 9, 65};
  const NodeInput state{random_tensor(shape, 1)};
  check({.op = "Assign", .inputs = {state, {random_tensor(shape, 2), channels_last(shape)}}});
  check({.op = "Assign", .inputs = {state, {random_tensor(shape, 2), with_gaps(shape, 5)}}});
  for (DType dtype : {DType::int64, DType::boolean})
    check({.op = "Assign",
           .inputs = {{random_integers({33}, dtype, 0, 2)}, {random_integers({33}, dtype, 0, 2)}}});
}

TEST(Copy, AnyElementType) {
  for (DType dtype : {DType::uint8, DType::int64, DType::float64, DType::boolean, DType::int16}) {
    const Shape shape{33, 130};
    check(
        {.op = "Copy", .inputs = {{random_integers(shape, dtype, 0, 2), permuted(shape, {1, 0})}}});
  }
}

TEST(Copy, Broadcast) {
  HostTensor x = random_tensor({4, 300});
  for (std::int64_t i = 1; i < 4; ++i) std::copy_n(&x.as<float>()[0], 300, &x.as<float>()[i * 300]);
  check({.op = "Copy", .inputs = {{x, Layout{0, {0, 1}}}}});
}

TEST(Concat, AllAxes) {
  for (std::int64_t axis : {0, 1, 2}) {
    std::vector<NodeInput> inputs;
    for (std::int64_t k : {3, 1, 6}) {
      Shape shape{5, 4, 7};
      shape[axis] = k;
      inputs.push_back({random_tensor(shape, static_cast<unsigned>(k))});
    }
    check({"Concat", inputs, {{"axis", axis}}});
  }
}

TEST(Pad, Constant) {
  check({"Pad",
         {{random_tensor({3, 5, 7})}},
         {{"pads", Ints{1, 0, 2, 0, 3, 1}}, {"mode", std::string("constant")}, {"value", 2.5}}});
  check({"Pad",
         {{random_tensor({3, 5})}},
         {{"pads", Ints{0, 0, 0, 0}}, {"mode", std::string("constant")}, {"value", 0.0}}});
}

TEST(SliceGrad, WithSteps) {
  check({"SliceGrad",
         {{random_tensor({3, 4, 2})}},
         {{"starts", Ints{1, 6, 0}},
          {"sizes", Ints{3, 4, 2}},
          {"steps", Ints{2, -2, 1}},
          {"shape", Ints{9, 8, 5}}}});
}

TEST(Gather, RowsAndColumns) {
  for (DType dtype : {DType::int32, DType::int64}) {
    for (std::int64_t axis : {0, 1, 2}) {
      const NodeInput indices{random_integers({6, 5}, dtype, -7, 7, 3)};
      check({"Gather", {{random_tensor({7, 7, 7})}, indices}, {{"axis", axis}}});
      Shape dy{7, 7, 7};
      dy.erase(dy.begin() + axis);
      dy.insert(dy.begin() + axis, {6, 5});
      check({"GatherGrad",
             {{random_tensor(dy)}, indices},
             {{"axis", axis}, {"shape", Ints{7, 7, 7}}}});
    }
  }
  check({"Gather",
         {{random_tensor({65, 256})}, {random_integers({2048}, DType::int64, 0, 65)}},
         {{"axis", std::int64_t{0}}}});
  check({"GatherGrad",
         {{random_tensor({2048, 256})}, {random_integers({2048}, DType::int64, 0, 65)}},
         {{"axis", std::int64_t{0}}, {"shape", Ints{65, 256}}}});
}

}  // namespace
}  // namespace tandem::testing
