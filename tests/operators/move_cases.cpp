// Cases of views and of operators that move elements.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

void add_views(std::vector<OperatorCase>& cases) {
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{2, 0}, Shape{2, 3, 4, 5}}) {
    cases.push_back(make_case("Identity", to_string(shape), {uniform(shape)}));
    cases.push_back(make_case("Copy", to_string(shape), {uniform(shape)}));
    cases.push_back(make_case("Transfer", to_string(shape), {uniform(shape)}));
    cases.push_back(
        make_case("Transfer", to_string(shape) + " into", {uniform(shape), uniform(shape)}));
    if (!shape.empty()) {  // with a count of all rows
      const double rows = static_cast<double>(shape[0]);
      cases.push_back(make_case("Transfer", to_string(shape) + " counted",
                                {uniform(shape), left_out(), values({}, {rows}, DType::int32)}));
    }
    cases.push_back(make_case("Transfer", to_string(shape) + " ahead", {uniform(shape)},
                              {{"lookahead", std::int64_t{2}}}));
  }
  for (DType dtype : {DType::int64, DType::boolean, DType::float16, DType::float8_e4m3fn}) {
    cases.push_back(make_case("Copy", std::string(name_of(dtype)), {typed(dtype, {3, 5})}));
    cases.push_back(make_case("Transpose", std::string(name_of(dtype)), {typed(dtype, {3, 5})},
                              {{"perm", Ints{1, 0}}}));
  }

  const auto reshape = [&](Shape from, Shape to) {
    cases.push_back(make_case("Reshape", to_string(from) + " to " + to_string(to), {uniform(from)},
                              {{"shape", to}}));
  };
  reshape({3, 4}, {12});
  reshape({2, 3, 4}, {6, 4});
  reshape({2, 3, 4}, {4, 6});
  reshape({2, 6}, {2, 1, 3, 2});
  reshape({1, 6, 1}, {3, 2});
  reshape({}, {1, 1});
  reshape({1}, {});
  reshape({0, 3}, {3, 0, 7});

  const auto transpose = [&](Shape from, Ints perm) {
    cases.push_back(make_case("Transpose", to_string(from) + " by " + to_string(perm),
                              {uniform(from)}, {{"perm", perm}}));
  };
  transpose({3, 4}, {1, 0});
  transpose({3, 4}, {0, 1});
  transpose({2, 3, 4}, {2, 0, 1});
  transpose({2, 3, 4, 5}, {0, 2, 1, 3});
  transpose({2, 3, 4, 5}, {0, 2, 3, 1});
  transpose({2, 0, 4}, {2, 1, 0});
  transpose({}, {});
  transpose({65, 33}, {1, 0});

  const auto expand = [&](Shape from, Shape to) {
    cases.push_back(make_case("Expand", to_string(from) + " to " + to_string(to), {uniform(from)},
                              {{"shape", to}}));
  };
  expand({3, 1}, {3, 4});
  expand({4}, {2, 3, 4});
  expand({}, {2, 3});
  expand({3, 4}, {1, 4});
  expand({1, 3, 1}, {2, 3, 5});
  expand({1}, {0});
}

void add_slices(std::vector<OperatorCase>& cases) {
  struct SliceCase {
    Shape shape;
    Ints starts, sizes, steps;
  };
  const std::vector<SliceCase> slices = {{{5, 6}, {1, 2}, {3, 4}, {1, 1}},
                                         {{5, 6}, {0, 1}, {3, 2}, {2, 3}},
                                         {{5, 6}, {4, 5}, {5, 3}, {-1, -2}},
                                         {{5, 6}, {0, 0}, {5, 6}, {1, 1}},
                                         {{5, 6}, {5, 0}, {0, 6}, {1, 1}},
                                         {{2, 3, 4, 5}, {0, 1, 0, 4}, {2, 1, 4, 5}, {1, 1, 1, -1}},
                                         {{9}, {7}, {1}, {4}},
                                         {{}, {}, {}, {}}};
  for (const SliceCase& s : slices) {
    const std::string name = to_string(s.shape) + " from " + to_string(s.starts) + " sizes " +
                             to_string(s.sizes) + " steps " + to_string(s.steps);
    Attributes attributes{{"starts", s.starts}, {"sizes", s.sizes}, {"steps", s.steps}};
    cases.push_back(make_case("Slice", name, {uniform(s.shape)}, attributes));
    attributes.set("shape", s.shape);
    cases.push_back(make_case("SliceGrad", name, {uniform(s.sizes)}, attributes));
  }
  cases.push_back(make_case("Slice", "int64", {typed(DType::int64, {7})},
                            {{"starts", Ints{6}}, {"sizes", Ints{3}}, {"steps", Ints{-2}}}));
}

void add_split_and_concat(std::vector<OperatorCase>& cases) {
  const auto split = [&](Shape shape, std::int64_t axis, Ints sizes) {
    cases.push_back(make_case("Split", to_string(shape) + " into " + to_string(sizes),
                              {uniform(shape)}, {{"axis", axis}, {"sizes", sizes}}));
  };
  split({6, 4}, 0, {1, 2, 3});
  split({2, 6}, 1, {3, 3});
  split({2, 3, 9}, 2, {3, 3, 3});
  split({4, 2}, 0, {4});
  split({4, 2}, 0, {0, 4});
  split({2, 4, 3, 5}, 1, {1, 3});
  split({1, 3, 1}, 1, {2, 1});

  cases.push_back(make_case("Concat", "rows", {uniform({2, 3}), uniform({1, 3}), uniform({3, 3})},
                            {{"axis", std::int64_t{0}}}));
  cases.push_back(make_case("Concat", "columns", {uniform({2, 3}), uniform({2, 1})},
                            {{"axis", std::int64_t{1}}}));
  cases.push_back(make_case("Concat", "channels", {uniform({2, 3, 4, 5}), uniform({2, 2, 4, 5})},
                            {{"axis", std::int64_t{1}}}));
  cases.push_back(make_case("Concat", "one", {uniform({2, 3})}, {{"axis", std::int64_t{0}}}));
  cases.push_back(make_case("Concat", "with an empty one", {uniform({2, 0}), uniform({2, 3})},
                            {{"axis", std::int64_t{1}}}));
  cases.push_back(make_case("Concat", "int64", {typed(DType::int64, {2}), typed(DType::int64, {3})},
                            {{"axis", std::int64_t{0}}}));
}

void add_pads(std::vector<OperatorCase>& cases) {
  const std::vector<std::pair<Shape, Ints>> pads = {{{3, 4}, {1, 2, 0, 3}},
                                                    {{3, 4}, {0, 0, 0, 0}},
                                                    {{2, 3, 4, 5}, {0, 0, 1, 2, 0, 0, 2, 1}},
                                                    {{4}, {3, 3}},
                                                    {{}, {}}};
  for (const auto& [shape, pad] : pads) {
    for (const std::string mode : {"constant", "reflect", "edge", "wrap"}) {
      const std::string name = mode + " " + to_string(shape) + " by " + to_string(pad);
      cases.push_back(make_case("Pad", name, {uniform(shape)}, {{"pads", pad}, {"mode", mode}}));
      Shape padded = shape;
      for (std::size_t i = 0; i < shape.size(); ++i) padded[i] += pad[i] + pad[shape.size() + i];
      cases.push_back(make_case("PadGrad", name, {uniform(padded)},
                                {{"pads", pad}, {"mode", mode}, {"shape", shape}}));
    }
  }
  cases.push_back(
      make_case("Pad", "value", {uniform({3, 4})}, {{"pads", Ints{1, 0, 0, 2}}, {"value", -1.5}}));
  cases.push_back(
      make_case("Pad", "empty", {uniform({0, 2})}, {{"pads", Ints{1, 0, 1, 1}}, {"value", 2.0}}));
  cases.push_back(make_case("Pad", "int64", {typed(DType::int64, {3})},
                            {{"pads", Ints{1, 2}}, {"value", 7.0}}));
  const auto known = [&](std::string mode, Ints pad, std::vector<double> y) {
    cases.push_back(expecting(make_case("Pad", "known " + mode, {values({3}, {1, 2, 3})},
                                        {{"pads", std::move(pad)}, {"mode", mode}}),
                              std::move(y)));
  };
  known("constant", {1, 2}, {0, 1, 2, 3, 0, 0});
  known("reflect", {3, 2}, {2, 3, 2, 1, 2, 3, 2, 1});
  known("edge", {1, 2}, {1, 1, 2, 3, 3, 3});
  known("wrap", {4, 2}, {3, 1, 2, 3, 1, 2, 3, 1, 2});
}

void add_gathers(std::vector<OperatorCase>& cases) {
  const auto add = [&](Shape shape, std::int64_t axis, Shape indices, DType dtype) {
    const std::string name = to_string(shape) + " axis " + std::to_string(axis) + " by " +
                             std::string(name_of(dtype)) + to_string(indices);
    const auto extent = static_cast<double>(shape[axis]);
    const CaseInput ids = typed(dtype, indices, -extent, extent);
    cases.push_back(make_case("Gather", name, {uniform(shape), ids}, {{"axis", axis}}));
    Shape y(shape.begin(), shape.begin() + axis);
    y.insert(y.end(), indices.begin(), indices.end());
    y.insert(y.end(), shape.begin() + axis + 1, shape.end());
    cases.push_back(
        make_case("GatherGrad", name, {uniform(y), ids}, {{"axis", axis}, {"shape", shape}}));
  };
  add({7, 4}, 0, {5}, DType::int64);
  add({7, 4}, 0, {2, 9}, DType::int32);
  add({7, 4}, 1, {6}, DType::int64);
  add({2, 5, 3}, 1, {2, 2}, DType::int64);
  add({7}, 0, {}, DType::int64);
  add({7, 4}, 0, {0}, DType::int64);
  add({50, 16}, 0, {4, 8}, DType::int64);
  cases.push_back(make_case("Gather", "int64 of int64",
                            {typed(DType::int64, {5}), typed(DType::int64, {3}, -5, 5)}));
  for (const Shape& shape : {Shape{7, 4}, Shape{7, 40}}) {
    CaseInput stored = uniform(shape);
    stored.dtype = DType::bfloat16;
    cases.push_back(make_case("Gather", "bfloat16" + to_string(shape) + " as float32",
                              {stored, typed(DType::int32, {2, 5}, -7, 7)},
                              {{"to", std::string("float32")}}));
  }
  cases.push_back(make_case("Gather", "bool",
                            {typed(DType::boolean, {5, 2}), typed(DType::int64, {3}, -5, 5)}));
}

void add_triangles(std::vector<OperatorCase>& cases) {
  for (const Shape& shape : {Shape{4, 4}, Shape{3, 5}, Shape{2, 4, 3}, Shape{0, 3}}) {
    for (std::int64_t upper : {0, 1}) {
      for (std::int64_t k : {-1, 0, 2}) {
        cases.push_back(make_case(
            "Trilu", to_string(shape) + (upper != 0 ? " upper " : " lower ") + std::to_string(k),
            {uniform(shape)}, {{"upper", upper}, {"k", k}}));
      }
    }
  }
  cases.push_back(make_case("Trilu", "int64", {typed(DType::int64, {4, 4})}));
  cases.push_back(make_case("Trilu", "bool", {typed(DType::boolean, {4, 4})}));
}

// Results worked out by hand, since elsewhere kernels are compared only with the reference kernel.
void add_known_moves(std::vector<OperatorCase>& cases) {
  const CaseInput matrix = values({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto known = [&](std::string op, std::vector<CaseInput> inputs, Attributes attributes,
                         std::vector<double> y) {
    cases.push_back(expecting(
        make_case(std::move(op), "known", std::move(inputs), std::move(attributes)), std::move(y)));
  };
  const Attributes piece{{"starts", Ints{1, 2}}, {"sizes", Ints{1, 2}}, {"steps", Ints{1, -2}}};
  known("Reshape", {matrix}, {{"shape", Ints{3, 2}}}, {1, 2, 3, 4, 5, 6});
  known("Transpose", {matrix}, {{"perm", Ints{1, 0}}}, {1, 4, 2, 5, 3, 6});
  known("Expand", {values({2, 1}, {1, 2})}, {{"shape", Ints{2, 2}}}, {1, 1, 2, 2});
  known("Slice", {matrix}, piece, {6, 4});
  Attributes back = piece;
  back.set("shape", Ints{2, 3});
  known("SliceGrad", {values({1, 2}, {7, 8})}, back, {0, 0, 0, 8, 0, 7});
  known("Split", {matrix}, {{"axis", std::int64_t{1}}, {"sizes", Ints{2, 1}}}, {1, 2, 4, 5});
  known("Concat", {matrix, values({2, 1}, {7, 8})}, {{"axis", std::int64_t{1}}},
        {1, 2, 3, 7, 4, 5, 6, 8});
  const CaseInput ids = values({2}, {-1, 0}, DType::int64);
  known("Gather", {matrix, ids}, {{"axis", std::int64_t{1}}}, {3, 1, 6, 4});
  known("GatherGrad", {values({3}, {1, 2, 4}), values({3}, {1, -1, 1}, DType::int64)},
        {{"axis", std::int64_t{0}}, {"shape", Ints{3}}}, {0, 5, 2});
  known("PadGrad", {values({5}, {1, 2, 3, 4, 5})},
        {{"pads", Ints{1, 1}}, {"mode", std::string("reflect")}, {"shape", Ints{3}}}, {2, 9, 4});
  known("Trilu", {matrix}, {{"upper", std::int64_t{1}}, {"k", std::int64_t{1}}},
        {0, 2, 3, 0, 0, 6});
  cases.push_back(expecting(make_case("Trilu", "known lower", {matrix},
                                      {{"upper", std::int64_t{0}}, {"k", std::int64_t{0}}}),
                            {1, 0, 0, 4, 5, 0}));
}

}  // namespace

void add_move_cases(std::vector<OperatorCase>& cases) {
  add_views(cases);
  add_slices(cases);
  add_split_and_concat(cases);
  add_pads(cases);
  add_gathers(cases);
  add_triangles(cases);
  add_known_moves(cases);
}

}  // namespace tandem::testing
