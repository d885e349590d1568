// Cases of operators over all ranks: the reference stands for ranks that all have the same
// operands, so that sums are multiples. Numbers of different ranks are in tests/end_to_end.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

constexpr const char* equal_ranks =
    "differences see one rank's operand alone, and here it is that of all ranks";

Attributes over(std::int64_t ranks, const char* reduction = nullptr) {
  Attributes attributes{{"ranks", ranks}};
  if (reduction != nullptr) attributes.set("reduction", std::string(reduction));
  return attributes;
}

}  // namespace

void add_collective_cases(std::vector<OperatorCase>& cases) {
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{2, 0}, Shape{2, 3, 4}}) {
    cases.push_back(make_case("AllReduce", to_string(shape), {uniform(shape)}, over(1)));
    cases.push_back(make_case("AllReduce", to_string(shape) + " three", {uniform(shape)}, over(3)));
  }
  cases.push_back(
      make_case("AllReduce", "several", {uniform({3}), uniform({2, 2}), uniform({})}, over(2)));
  cases.push_back(expecting(
      make_case("AllReduce", "sum of two", {values({3}, {1, -2, 0.5})}, over(2)), {2, -4, 1}));
  for (const char* reduction : {"mean", "maximum", "minimum"}) {
    cases.push_back(expecting(
        without_gradient(
            make_case("AllReduce", reduction, {values({3}, {1, -2, 0.5})}, over(4, reduction)),
            "only a sum has one"),
        {1, -2, 0.5}));
  }
  for (DType dtype : {DType::int64, DType::float16}) {
    cases.push_back(
        make_case("AllReduce", std::string(name_of(dtype)), {typed(dtype, {3, 5})}, over(2)));
  }
  cases.push_back(make_case("AllReduce", "any", {typed(DType::boolean, {7})}, over(2, "maximum")));

  for (const Shape& shape : {Shape{3, 5}, Shape{4}, Shape{2, 0}, Shape{2, 3, 4}}) {
    cases.push_back(make_case("AllGather", to_string(shape), {uniform(shape)}, over(1)));
    cases.push_back(without_gradient(
        make_case("AllGather", to_string(shape) + " two", {uniform(shape)}, over(2)), equal_ranks));
    cases.push_back(make_case("ReduceScatter", to_string(shape), {uniform(shape)}, over(1)));
  }
  cases.push_back(
      expecting(without_gradient(make_case("AllGather", "thrice", {values({2}, {1, 2})}, over(3)),
                                 equal_ranks),
                {1, 2, 1, 2, 1, 2}));
  cases.push_back(make_case("AllGather", "int64", {typed(DType::int64, {3, 5})}, over(2)));
  cases.push_back(expecting(
      without_gradient(make_case("ReduceScatter", "two", {values({4}, {1, 2, 3, 4})}, over(2)),
                       equal_ranks),
      {2, 4}));
  cases.push_back(expecting(
      without_gradient(
          make_case("ReduceScatter", "maximum", {values({4}, {1, 2, 3, 4})}, over(2, "maximum")),
          equal_ranks),
      {1, 2}));
}

}  // namespace tandem::testing
