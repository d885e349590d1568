// Cases of determinants, of bits read as another type, and of StopGradient.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

CaseInput of_type(CaseInput input, DType dtype) {
  input.dtype = dtype;
  input.fixed = true;
  return input;
}

}  // namespace

void add_det_cases(std::vector<OperatorCase>& cases) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 2, 2}, Shape{2, 1, 4, 4}, Shape{3, 1, 1},
                             Shape{2, 0, 0}, Shape{0, 3, 3}}) {
    cases.push_back(make_case("Det", to_string(shape), {uniform(shape)}));
    cases.push_back(make_case("DetGrad", to_string(shape),
                              {uniform(Shape(shape.begin(), shape.end() - 2)), uniform(shape)}));
  }
  // Matrices of rank 2 and rank 1; the first one's cofactors are multiples of [-3, 6, -3].
  const CaseInput x = values({2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 2, 4, 6, -1, -2, -3});
  cases.push_back(expecting(make_case("Det", "without inverse", {x}), {0, 0}));
  cases.push_back(expecting(make_case("DetGrad", "without inverse", {values({2}, {1, 1}), x}),
                            {-3, 6, -3, 6, -12, 6, -3, 6, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  cases.push_back(expecting(
      make_case("Det", "rows change places", {values({3, 3}, {0, 2, 0, 0, 0, 3, 4, 0, 0})}), {24}));

  cases.push_back(make_case("BitCast", "float32 as int32",
                            {of_type(uniform({3, 4}), DType::float32)},
                            {{"to", std::string("int32")}}));
  cases.push_back(expecting(
      make_case("BitCast", "int8 as uint8", {of_type(values({3}, {-1, 5, -128}), DType::int8)},
                {{"to", std::string("uint8")}}),
      {255, 5, 128}));
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{2, 0}}) {
    cases.push_back(without_gradient(make_case("StopGradient", to_string(shape), {uniform(shape)}),
                                     "it is what the operator withholds"));
  }
}

}  // namespace tandem::testing
