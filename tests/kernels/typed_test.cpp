// Element-wise kernels over integers, bool and float64 against the reference: exactly equal.
#include <gtest/gtest.h>

#include <string>

#include "tests/harness/scalar_examples.h"
#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

constexpr DType integers[] = {DType::int8,  DType::int16,  DType::int32,  DType::int64,
                              DType::uint8, DType::uint16, DType::uint32, DType::uint64};

/// Small numbers, from below 0 if the type has a sign.
NodeInput numbers(DType dtype, Shape shape, unsigned seed = 1, std::int64_t lowest = -9) {
  if (dtype == DType::float64)
    return {random_tensor(std::move(shape), seed, -3, 3).converted(dtype)};
  const bool is_signed = dtype < DType::uint8;
  const std::int64_t low =
      dtype == DType::boolean || !is_signed ? std::max<std::int64_t>(lowest, 0) : lowest;
  return {random_integers(std::move(shape), dtype, low, dtype == DType::boolean ? 2 : 10, seed)};
}

void check_exactly(NodeCheck node) {
  node.tolerance = 0;
  node.features = {"baseline"};
  check(node);
}

TEST(Typed, EveryFunctionOverOddLengths) {
  for (const ScalarRow& row : scalar_rows()) {
    SCOPED_TRACE(row.name);
    for (const DType dtype : integers) {
      if (!takes(row.kind().types, dtype)) continue;
      for (const Attributes& attributes : example_attributes(row)) {
        for (std::int64_t n : {1, 7, 513}) {
          NodeCheck node{.op = row.name, .inputs = {numbers(dtype, {n})}, .attributes = attributes};
          if (row.kind().operands == 2) node.inputs.push_back(numbers(dtype, {n}, 2, 0));
          check_exactly(node);
        }
      }
    }
  }
}

TEST(Typed, FunctionsOfFloat64) {
  const NodeInput a = numbers(DType::float64, {1025}), b = numbers(DType::float64, {1025}, 2);
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Equal", "Less"}) {
    check_exactly({.op = op, .inputs = {a, b}});
  }
  for (const char* op : {"Neg", "Abs", "Sign", "Relu", "IsNaN", "IsInf"}) {
    check_exactly({.op = op, .inputs = {a}});
  }
  check_exactly({.op = "Clip", .inputs = {a}, .attributes = {{"min", -0.25}, {"max", 0.5}}});
}

TEST(Typed, Broadcast) {
  for (const DType dtype : {DType::int32, DType::int64, DType::float64}) {
    const auto with = [&](Shape a, Shape b) {
      check_exactly({.op = "Sub", .inputs = {numbers(dtype, a), numbers(dtype, b, 2)}});
      check_exactly({.op = "LessOrEqual", .inputs = {numbers(dtype, b, 2), numbers(dtype, a)}});
    };
    with({3, 1500}, {});
    with({3, 1500}, {1500});
    with({3, 1500}, {3, 1});
    with({40, 1, 70}, {30, 1});
    with({2, 3, 17, 9}, {3, 1, 1});
    with({50000}, {50000});  // split between threads
    with({4000, 13}, {4000, 1});
  }
}

TEST(Typed, OtherOrders) {
  const Shape maps{3, 5, 9, 11};
  for (const DType dtype : {DType::int8, DType::int32, DType::int64}) {
    NodeInput last = numbers(dtype, maps), gaps = numbers(dtype, maps, 2);
    last.layout = channels_last(maps);
    const NodeInput plain = numbers(dtype, maps, 3);
    check_exactly({.op = "Add", .inputs = {last, last}, .output_layouts = {channels_last(maps)}});
    check_exactly({.op = "Add", .inputs = {last, plain}, .output_layouts = {channels_last(maps)}});
    gaps.layout = with_gaps(maps, 3);
    check_exactly({.op = "Mul", .inputs = {plain, gaps}});
    check_exactly({.op = "Equal", .inputs = {gaps, gaps}});
  }
}

TEST(Typed, InPlace) {
  for (const Shape& shape : {Shape{3000}, Shape{70, 600}}) {
    const NodeInput a = numbers(DType::int32, shape), b = numbers(DType::int32, shape, 2);
    check_exactly({.op = "Sub", .inputs = {a, b}, .in_place = true});
    check_exactly({.op = "Cast",
                   .inputs = {numbers(DType::int64, shape)},
                   .attributes = {{"to", std::string("float64")}},
                   .in_place = true});
  }
}

TEST(Typed, WhereOfEverySize) {
  for (const DType dtype :
       {DType::boolean, DType::uint8, DType::int16, DType::int32, DType::int64, DType::float64}) {
    const auto condition = [](Shape shape) { return numbers(DType::boolean, std::move(shape), 3); };
    check_exactly(
        {.op = "Where",
         .inputs = {condition({3, 700}), numbers(dtype, {3, 700}), numbers(dtype, {}, 2)}});
    check_exactly(
        {.op = "Where",
         .inputs = {condition({9, 1}), numbers(dtype, {9, 13}), numbers(dtype, {13}, 2)}});
  }
}

TEST(Typed, CastsBetweenAllTypes) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    for (int j = 0; j <= static_cast<int>(DType::boolean); ++j) {
      const auto from = static_cast<DType>(i), to = static_cast<DType>(j);
      SCOPED_TRACE(std::string(name_of(from)) + " to " + std::string(name_of(to)));
      const HostTensor x = is_float(from) ? random_tensor({3, 519}, 1, -300, 300).converted(from)
                                          : numbers(from, {3, 519}).tensor;
      check_exactly(
          {.op = "Cast", .inputs = {{x}}, .attributes = {{"to", std::string(name_of(to))}}});
    }
  }
}

}  // namespace
}  // namespace tandem::testing
