// Rows of operators that move, view, join or convert elements; expected elements are written out.
#include <cmath>
#include <numeric>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// 0, 1, 2, … in the shape.
HostTensor counted(const Shape& shape, DType dtype = f32) {
  Numbers values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0);
  return typed(dtype, shape, values);
}

void add_views(Rows& rows) {
  for (DType dtype : {f32, f64, bf16, i32, i64, DType::boolean}) {
    const HostTensor x = counted({2, 3}, dtype);
    rows.push_back({.op = "Identity", .inputs = {x}, .outputs = {x}});
    rows.push_back({.op = "Transpose",
                    .inputs = {x},
                    .outputs = {typed(dtype, {3, 2}, {0, 3, 1, 4, 2, 5})},
                    .note = "reversed axes"});
  }
  const HostTensor x = counted({2, 3, 4});
  rows.push_back({.op = "Transpose",
                  .inputs = {counted({1, 2, 3})},
                  .attributes = {{"perm", Axes{1, 0, 2}}},
                  .outputs = {counted({2, 1, 3})},
                  .note = "perm"});
  rows.push_back({.op = "Reshape",
                  .inputs = {x, integers({0, -1})},
                  .outputs = {counted({2, 12})},
                  .note = "0 copies, -1 is what is left"});
  rows.push_back({.op = "Reshape",
                  .first = 14,
                  .inputs = {counted({2, 0, 3}), integers({0, 3, 2})},
                  .attributes = {{"allowzero", 1}},
                  .outputs = {counted({0, 3, 2})},
                  .note = "0 is an extent"});
  rows.push_back({.op = "Reshape",
                  .last = 13,
                  .inputs = {x, integers({0, -1})},
                  .attributes = {{"allowzero", 1}},
                  .note = "allowzero",
                  .refused = "allowzero"});
  rows.push_back({.op = "Flatten", .inputs = {x}, .outputs = {counted({2, 12})}, .note = "axis 1"});
  rows.push_back({.op = "Flatten",
                  .inputs = {x},
                  .attributes = {{"axis", 0}},
                  .outputs = {counted({1, 24})},
                  .note = "axis 0"});
  rows.push_back({.op = "Flatten",
                  .first = 11,
                  .inputs = {x},
                  .attributes = {{"axis", -1}},
                  .outputs = {counted({6, 4})},
                  .note = "from the end"});
  rows.push_back({.op = "Flatten",
                  .first = 9,
                  .inputs = {counted({2, 3}, i64)},
                  .outputs = {counted({2, 3}, i64)},
                  .note = "integers"});
}

// Axes: an attribute to 11, negative from 11, an input from 13.
void add_squeezes(Rows& rows) {
  const HostTensor wide = counted({1, 3, 1, 2});
  struct Form {
    int first, last;
    Axes squeezed, unsqueezed;
  };
  for (const Form& form : {Form{1, 11, {0, 2}, {0, 3}}, {11, 11, {0, -2}, {0, -1}}}) {
    rows.push_back({.op = "Squeeze",
                    .first = form.first,
                    .last = form.last,
                    .inputs = {wide},
                    .attributes = {{"axes", form.squeezed}},
                    .outputs = {counted({3, 2})},
                    .note = "axes as attribute"});
    rows.push_back({.op = "Unsqueeze",
                    .first = form.first,
                    .last = form.last,
                    .inputs = {counted({2, 3})},
                    .attributes = {{"axes", form.unsqueezed}},
                    .outputs = {counted({1, 2, 3, 1})},
                    .note = "axes as attribute"});
  }
  rows.push_back({.op = "Squeeze", .inputs = {wide}, .outputs = {counted({3, 2})}, .note = "all"});
  rows.push_back({.op = "Squeeze",
                  .first = 13,
                  .inputs = {wide, integers({0, -2})},
                  .outputs = {counted({3, 2})},
                  .note = "axes as input"});
  rows.push_back({.op = "Unsqueeze",
                  .first = 13,
                  .inputs = {counted({2, 3}), integers({0, -1})},
                  .outputs = {counted({1, 2, 3, 1})},
                  .note = "axes as input"});
  for (const char* op : {"Squeeze", "Unsqueeze"}) {
    rows.push_back({.op = op,
                    .first = 13,
                    .inputs = {wide},
                    .attributes = {{"axes", Axes{0}}},
                    .note = "axes as attribute",
                    .refused = op});
  }
}

void add_joins(Rows& rows) {
  for (DType dtype : {f32, bf16, i64, DType::boolean}) {
    const HostTensor a = typed(dtype, {2, 1}, {0, 1}), b = typed(dtype, {2, 2}, {1, 0, 1, 1});
    const HostTensor ab = typed(dtype, {2, 3}, {0, 1, 0, 1, 1, 1});
    rows.push_back(
        {.op = "Concat", .inputs = {a, b}, .attributes = {{"axis", 1}}, .outputs = {ab}});
    rows.push_back({.op = "Concat",
                    .first = 11,
                    .inputs = {a, b},
                    .attributes = {{"axis", -1}},
                    .outputs = {ab},
                    .note = "axis from the end"});
    const HostTensor row = typed(dtype, {1, 2}, {0, 1});
    rows.push_back({.op = "Expand",
                    .inputs = {row, integers({3, 1})},
                    .outputs = {typed(dtype, {3, 2}, {0, 1, 0, 1, 0, 1})},
                    .note = "the shape broadcasts with the input's"});
    rows.push_back({.op = "Tile",
                    .inputs = {row, integers({2, 2})},
                    .outputs = {typed(dtype, {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1})}});
    const HostTensor x = typed(dtype, {3, 2}, {0, 1, 1, 1, 1, 0});
    for (DType index : {i32, i64}) {
      rows.push_back({.op = "Gather",
                      .inputs = {x, typed(index, {1, 2}, {2, 0})},
                      .outputs = {typed(dtype, {1, 2, 2}, {1, 0, 0, 1})}});
    }
    rows.push_back({.op = "Gather",
                    .first = 11,
                    .inputs = {x, integers({-1, -2})},
                    .attributes = {{"axis", -1}},
                    .outputs = {typed(dtype, {3, 2}, {1, 0, 1, 1, 0, 1})},
                    .note = "indices and axis from the end"});
  }
  const HostTensor x = floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  rows.push_back({.op = "Trilu",
                  .inputs = {x},
                  .outputs = {floats({3, 3}, {1, 2, 3, 0, 5, 6, 0, 0, 9})},
                  .note = "upper"});
  rows.push_back({.op = "Trilu",
                  .inputs = {x, integers({}, {-1})},
                  .attributes = {{"upper", 0}},
                  .outputs = {floats({3, 3}, {0, 0, 0, 4, 0, 0, 7, 8, 0})},
                  .note = "lower, k = -1"});
}

// To integers: towards 0. To bool: other than 0.
void add_casts(Rows& rows) {
  struct Target {
    DType dtype;
    std::int64_t onnx;  // TensorProto.DataType
    int first = 1;
    Numbers values;
  };
  const HostTensor x = floats({4}, {-2.75, 0, 0.5, 3});
  for (const Target& to : {Target{f64, 11, 1, {-2.75, 0, 0.5, 3}},
                           {DType::float16, 10, 1, {-2.75, 0, 0.5, 3}},
                           {bf16, 16, 13, {-2.75, 0, 0.5, 3}},
                           {DType::int8, 3, 1, {-2, 0, 0, 3}},
                           {i32, 6, 1, {-2, 0, 0, 3}},
                           {i64, 7, 1, {-2, 0, 0, 3}},
                           {DType::boolean, 9, 1, {1, 0, 1, 1}}}) {
    const HostTensor y = typed(to.dtype, {4}, to.values);
    rows.push_back({.op = "Cast",
                    .first = to.first,
                    .inputs = {x},
                    .attributes = {{"to", to.onnx}},
                    .outputs = {y}});
    rows.push_back({.op = "CastLike", .inputs = {x, typed(to.dtype, {1}, {0})}, .outputs = {y}});
  }
  rows.push_back({.op = "Cast",
                  .inputs = {integers({-3, 0, 70000})},
                  .attributes = {{"to", 1}},
                  .outputs = {floats({3}, {-3, 0, 70000})},
                  .note = "from integers"});
  for (const char* op : {"Cast", "CastLike"}) {
    const bool like = std::string(op) == "CastLike";
    VersionRow row{.op = op, .first = 19, .inputs = {x}, .attributes = {{"saturate", 0}}};
    if (like) {
      row.inputs.push_back(floats({1}, {0}));
    } else {
      row.attributes.emplace_back("to", 1);
    }
    row.outputs = {x};
    row.note = "saturate, which only 8-bit types read";
    rows.push_back(row);
    row.first = 24;
    row.attributes.emplace_back("round_mode", "down");
    row.note = "round_mode, which only one 8-bit type reads";
    rows.push_back(std::move(row));
  }
}

// Ranges: attributes in version 1; inputs with steps from 10; negative axes from 11 on.
void add_slices(Rows& rows) {
  const HostTensor x = counted({3, 4});
  rows.push_back({.op = "Slice",
                  .last = 1,
                  .inputs = {x},
                  .attributes = {{"starts", Axes{0, -3}}, {"ends", Axes{2, 100}}},
                  .outputs = {floats({2, 3}, {1, 2, 3, 5, 6, 7})},
                  .note = "attributes"});
  rows.push_back({.op = "Slice",
                  .last = 1,
                  .inputs = {x},
                  .attributes = {{"axes", Axes{1}}, {"starts", Axes{1}}, {"ends", Axes{-1}}},
                  .outputs = {floats({3, 2}, {1, 2, 5, 6, 9, 10})},
                  .note = "one axis as attribute"});
  const Numbers backwards{11, 9, 7, 5, 3, 1};
  rows.push_back({.op = "Slice",
                  .first = 10,
                  .inputs = {x, integers({-1, -1}), integers({-100, -100}), integers({0, 1}),
                             integers({-1, -2})},
                  .outputs = {floats({3, 2}, backwards)},
                  .note = "inputs, negative steps"});
  rows.push_back({.op = "Slice",
                  .first = 10,
                  .inputs = {x, typed(i32, {2}, {1, 1}), typed(i32, {2}, {3, 100})},
                  .outputs = {floats({2, 3}, {5, 6, 7, 9, 10, 11})},
                  .note = "axes and steps absent"});
  rows.push_back({.op = "Slice",
                  .first = 11,
                  .inputs = {x, integers({2}), integers({4}), integers({-1})},
                  .outputs = {floats({3, 2}, {2, 3, 6, 7, 10, 11})},
                  .note = "axis from the end"});
  rows.push_back({.op = "Slice",
                  .first = 10,
                  .inputs = {x},
                  .attributes = {{"starts", Axes{0}}, {"ends", Axes{2}}},
                  .note = "attributes no more",
                  .refused = "Slice"});
}

// Sizes: an attribute to 11, an input from 13; from 18 num_outputs, the last part may be smaller.
void add_splits(Rows& rows) {
  const HostTensor x = counted({2, 5});
  const std::vector<HostTensor> parts{floats({2, 2}, {0, 1, 5, 6}),
                                      floats({2, 3}, {2, 3, 4, 7, 8, 9})};
  rows.push_back({.op = "Split",
                  .last = 11,
                  .inputs = {x},
                  .attributes = {{"axis", 1}, {"split", Axes{2, 3}}},
                  .outputs = parts,
                  .note = "sizes as attribute"});
  rows.push_back({.op = "Split",
                  .first = 13,
                  .inputs = {x, integers({2, 3})},
                  .attributes = {{"axis", -1}},
                  .outputs = parts,
                  .note = "sizes as input"});
  rows.push_back({.op = "Split",
                  .last = 13,
                  .inputs = {x},
                  .outputs = {floats({1, 5}, {0, 1, 2, 3, 4}), floats({1, 5}, {5, 6, 7, 8, 9})},
                  .note = "equal parts, as many as outputs"});
  rows.push_back({.op = "Split",
                  .first = 18,
                  .inputs = {x},
                  .attributes = {{"axis", 1}, {"num_outputs", 2}},
                  .outputs = {floats({2, 3}, {0, 1, 2, 5, 6, 7}), floats({2, 2}, {3, 4, 8, 9})},
                  .note = "the last part is smaller"});
  rows.push_back({.op = "Split",
                  .last = 13,
                  .inputs = {x},
                  .attributes = {{"axis", 1}},
                  .outputs = parts,
                  .note = "unequal parts",
                  .refused = "equal parts"});
}

// Pads and value: attributes in version 2, inputs from 11; axes from 18; wrap from 19.
void add_pads(Rows& rows) {
  const HostTensor x = floats({1, 3}, {1, 2, 3});
  struct Mode {
    const char* mode;
    Numbers values;
    int first;
  };
  for (const Mode& mode : std::vector<Mode>{{"constant", {0.5, 0.5, 1, 2, 3, 0.5}, 2},
                                            {"reflect", {3, 2, 1, 2, 3, 2}, 2},
                                            {"edge", {1, 1, 1, 2, 3, 3}, 2},
                                            {"wrap", {2, 3, 1, 2, 3, 1}, 19}}) {
    const HostTensor y = floats({1, 6}, mode.values);
    const std::string name = mode.mode;
    const bool constant = name == "constant";
    if (mode.first == 2) {
      rows.push_back({.op = "Pad",
                      .last = 2,
                      .inputs = {x},
                      .attributes = {{"mode", name}, {"pads", Axes{0, 2, 0, 1}}, {"value", 0.5}},
                      .outputs = {y},
                      .note = name + ", attributes"});
    }
    std::vector<HostTensor> inputs{x, integers({0, 2, 0, 1})};
    if (constant) inputs.push_back(floats({}, {0.5}));
    rows.push_back({.op = "Pad",
                    .first = std::max(mode.first, 11),
                    .inputs = inputs,
                    .attributes = {{"mode", name}},
                    .outputs = {y},
                    .note = name + ", inputs"});
    inputs = {x, integers({2, 1}), constant ? floats({}, {0.5}) : HostTensor(), integers({-1})};
    rows.push_back({.op = "Pad",
                    .first = std::max(mode.first, 18),
                    .inputs = inputs,
                    .attributes = {{"mode", name}},
                    .outputs = {y},
                    .note = name + ", axes"});
  }
  rows.push_back({.op = "Pad",
                  .first = 11,
                  .inputs = {x, integers({0, -1, 1, 0})},
                  .outputs = {floats({2, 2}, {2, 3, 0, 0})},
                  .note = "negative pads cut"});
}

}  // namespace

void add_shapes_rows(std::vector<VersionRow>& rows) {
  add_views(rows);
  add_squeezes(rows);
  add_joins(rows);
  add_casts(rows);
  add_slices(rows);
  add_splits(rows);
  add_pads(rows);
}

}  // namespace tandem::testing
