// Rows of operators whose results are known before the run, and of sequences, which exist during
// import only; expected elements are written out.
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// Numbers as well as tensors from version 12 on.
void add_constants(Rows& rows) {
  for (DType dtype : {f32, f64, f16, i32, i64, DType::boolean}) {
    const HostTensor value = typed(dtype, {2, 2}, {1, 0, 1, 1});
    rows.push_back({.op = "Constant", .attributes = {{"value", value}}, .outputs = {value}});
    const HostTensor one = typed(dtype, {1}, {1});
    rows.push_back({.op = "ConstantOfShape",
                    .inputs = {integers({2, 3})},
                    .attributes = {{"value", one}},
                    .outputs = {typed(dtype, {2, 3}, Numbers(6, 1))}});
  }
  rows.push_back({.op = "ConstantOfShape",
                  .inputs = {integers({3})},
                  .outputs = {floats({3}, {0, 0, 0})},
                  .note = "0 without a value"});
  const HostTensor tensor = typed(bf16, {2}, {0.5, -3});
  rows.push_back({.op = "Constant",
                  .first = 13,
                  .attributes = {{"value", tensor}},
                  .outputs = {tensor},
                  .note = "bfloat16"});
  struct Form {
    const char* name;
    NodeAttribute value;
    HostTensor result;
  };
  for (const Form& form : {Form{"value_float", 1.5, floats({}, {1.5})},
                           {"value_floats", std::vector<float>{1.5f, 2}, floats({2}, {1.5, 2})},
                           {"value_int", 7, integers({}, {7})},
                           {"value_ints", Axes{7, -8}, integers({7, -8})}}) {
    rows.push_back({.op = "Constant",
                    .first = 12,
                    .attributes = {{form.name, form.value}},
                    .outputs = {form.result},
                    .note = form.name});
  }
  rows.push_back({.op = "Constant",
                  .last = 11,
                  .attributes = {{"value_int", 7}},
                  .note = "value_int",
                  .refused = "value_int"});
}

void add_shapes(Rows& rows) {
  for (DType dtype : {f32, bf16, i64, DType::boolean}) {
    const HostTensor x = typed(dtype, {1, 3, 2}, {0, 1, 0, 1, 0, 1});
    rows.push_back({.op = "Shape", .inputs = {x}, .outputs = {integers({1, 3, 2})}});
    rows.push_back({.op = "Size", .inputs = {x}, .outputs = {integers({}, {6})}});
  }
  const HostTensor x = floats({1, 3, 2}, {0, 1, 0, 1, 0, 1});
  rows.push_back({.op = "Shape",
                  .first = 15,
                  .inputs = {x},
                  .attributes = {{"start", -2}, {"end", 2}},
                  .outputs = {integers({3})},
                  .note = "start and end"});
  rows.push_back({.op = "Shape",
                  .last = 13,
                  .inputs = {x},
                  .attributes = {{"start", 1}},
                  .note = "start",
                  .refused = "start"});
}

// start + i delta; the 16-bit types from version 27 on, counted in float32.
void add_ranges(Rows& rows) {
  for (DType dtype : {f32, f64, f16, bf16, DType::int16, i32, i64}) {
    rows.push_back(
        {.op = "Range",
         .inputs = {typed(dtype, {}, {3}), typed(dtype, {}, {10}), typed(dtype, {}, {3})},
         .outputs = {typed(dtype, {3}, {3, 6, 9})}});
    rows.push_back(
        {.op = "Range",
         .inputs = {typed(dtype, {}, {4}), typed(dtype, {}, {0}), typed(dtype, {}, {-2})},
         .outputs = {typed(dtype, {2}, {4, 2})},
         .note = "downwards"});
  }
  for (DType dtype : {f16, bf16}) {
    rows.push_back(
        {.op = "Range",
         .first = 27,
         .inputs = {typed(dtype, {}, {0}), typed(dtype, {}, {1}), typed(dtype, {}, {0.25})},
         .attributes = {{"stash_type", 1}},
         .outputs = {typed(dtype, {4}, {0, 0.25, 0.5, 0.75})},
         .note = "stash_type"});
  }
}

// a - floor(a / b) b; fmod = 1: a - trunc(a / b) b. Real numbers need fmod = 1 before version 28.
void add_remainders(Rows& rows) {
  const Numbers a{-7, 7, -7, 7, 6}, b{3, -3, -3, 3, 3};
  const auto floored = [](double x, double y) { return x - std::floor(x / y) * y; };
  const auto truncated = [](double x, double y) { return x - std::trunc(x / y) * y; };
  for (DType dtype : {f32, f64, f16, bf16, DType::int8, i32, i64}) {
    const HostTensor x = typed(dtype, {5}, a), y = typed(dtype, {5}, b);
    rows.push_back({.op = "Mod",
                    .first = is_float(dtype) ? 28 : 1,
                    .inputs = {x, y},
                    .outputs = {map(x, y, dtype, floored)},
                    .note = "the divisor's sign",
                    .known = true});
    rows.push_back({.op = "Mod",
                    .inputs = {x, y},
                    .attributes = {{"fmod", 1}},
                    .outputs = {map(x, y, dtype, truncated)},
                    .note = "fmod",
                    .known = true});
  }
  for (const bool is_known : {false, true}) {
    const HostTensor whole = integers({2, 3}, {-7, -1, 0, 1, 7, 8});
    rows.push_back({.op = "Mod",
                    .inputs = {whole, integers({3}, {3, -3, 5})},
                    .outputs = {integers({2, 3}, {2, -1, 0, 1, -2, 3})},
                    .note = "broadcast",
                    .known = is_known});
  }
  const HostTensor x = floats({2}, {-5.5, 5.5}), y = floats({}, {2});
  rows.push_back({.op = "Mod",
                  .first = 28,
                  .inputs = {x, y},
                  .outputs = {floats({2}, {0.5, 1.5})},
                  .note = "real numbers, one divisor",
                  .known = true});
  rows.push_back({.op = "Mod",
                  .inputs = {integers({3}, {7, 8, 9}), integers({1, 1}, {4})},
                  .outputs = {integers({1, 3}, {3, 0, 1})},
                  .note = "one divisor with more axes",
                  .known = true});
  rows.push_back({.op = "Mod",
                  .first = 28,
                  .inputs = {x, floats({1, 1}, {2})},
                  .outputs = {floats({1, 2}, {0.5, 1.5})},
                  .note = "real numbers, one divisor with more axes",
                  .known = true});
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  rows.push_back(
      {.op = "Mod",
       .first = 28,
       .inputs = {floats({4}, {2, -2, infinity, 2}), floats({4}, {infinity, infinity, 2, 0})},
       .outputs = {floats({4}, {2, infinity, nan, nan})},
       .note = "infinities and 0",
       .known = true});
  rows.push_back({.op = "Mod",
                  .last = 13,
                  .inputs = {x, y},
                  .note = "real numbers without fmod",
                  .known = true,
                  .refused = "fmod"});
}

void add_places_and_reductions(Rows& rows) {
  for (DType dtype : {f32, i64, bf16, DType::boolean}) {
    rows.push_back({.op = "NonZero",
                    .inputs = {typed(dtype, {2, 2}, {1, 0, 1, 1})},
                    .outputs = {integers({2, 3}, {0, 1, 1, 0, 0, 1})},
                    .known = true});
  }
  // The axes are an input from 18 on.
  for (DType dtype : {f32, f64, bf16, i32, i64}) {
    const HostTensor x = typed(dtype, {3}, {2, -3, 4});
    rows.push_back({.op = "ReduceProd",
                    .inputs = {x},
                    .outputs = {typed(dtype, {1}, {-24})},
                    .note = "all axes",
                    .known = true});
    rows.push_back({.op = "ReduceProd",
                    .last = 13,
                    .inputs = {x},
                    .attributes = {{"axes", Axes{0}}, {"keepdims", 0}},
                    .outputs = {typed(dtype, {}, {-24})},
                    .note = "axes as attribute",
                    .known = true});
    rows.push_back({.op = "ReduceProd",
                    .first = 18,
                    .inputs = {x, integers({-1})},
                    .attributes = {{"keepdims", 0}},
                    .outputs = {typed(dtype, {}, {-24})},
                    .note = "axes as input",
                    .known = true});
  }
  const std::int64_t large = (std::int64_t{1} << 62) + 1;  // a double has 53 bits
  rows.push_back({.op = "ReduceProd",
                  .inputs = {HostTensor::from<std::int64_t>({2}, {large, 4})},
                  .outputs = {integers({1}, {4})},
                  .note = "64 bits, modulo 2^64",
                  .known = true});
  rows.push_back({.op = "ReduceProd",
                  .first = 18,
                  .inputs = {floats({3}, {2, -3, 4})},
                  .attributes = {{"noop_with_empty_axes", 1}},
                  .outputs = {floats({3}, {2, -3, 4})},
                  .note = "no axes, nothing is reduced",
                  .known = true});
}

void add_splits_to_sequences(Rows& rows) {
  const HostTensor x = floats({3, 2}, {0, 1, 2, 3, 4, 5});
  const auto at = [](ModelMaker& m, std::int64_t position, const std::string& y) {
    m.integers("position_of_" + y, {position});
    m.node("SequenceAt", {"s", "position_of_" + y}, {y});
  };
  rows.push_back({.op = "SplitToSequence",
                  .inputs = {x},
                  .outputs = {floats({1, 2}, {0, 1}), floats({1, 2}, {4, 5})},
                  .note = "parts of 1",
                  .nodes = [at](ModelMaker& m) {
                    m.node("SplitToSequence", {"x0"}, {"s"});
                    at(m, 0, "y0");
                    at(m, -1, "y1");
                  }});
  rows.push_back({.op = "SplitToSequence",
                  .inputs = {x},
                  .outputs = {floats({3}, {1, 3, 5})},
                  .note = "the axis goes",
                  .nodes = [at](ModelMaker& m) {
                    onnx::NodeProto& node = m.node("SplitToSequence", {"x0"}, {"s"});
                    set(node, "axis", std::int64_t{-1});
                    set(node, "keepdims", std::int64_t{0});
                    at(m, 1, "y0");
                  }});
  rows.push_back({.op = "SplitToSequence",
                  .inputs = {x},
                  .outputs = {floats({1, 2}, {0, 1}), floats({2, 2}, {2, 3, 4, 5})},
                  .note = "sizes",
                  .nodes = [at](ModelMaker& m) {
                    m.integers("sizes", {1, 2});
                    m.node("SplitToSequence", {"x0", "sizes"}, {"s"});
                    at(m, 0, "y0");
                    at(m, 1, "y1");
                  }});
  for (const char* op : {"SequenceConstruct", "SequenceAt"}) {
    rows.push_back({.op = op,
                    .inputs = {x, floats({1}, {7})},
                    .outputs = {floats({1}, {7}), x},
                    .nodes = [at](ModelMaker& m) {
                      m.node("SequenceConstruct", {"x0", "x1"}, {"s"});
                      at(m, 1, "y0");
                      at(m, -2, "y1");
                    }});
  }
  for (std::int64_t stack : {0, 1}) {
    const Shape shape = stack != 0 ? Shape{2, 2} : Shape{4};
    rows.push_back({.op = "ConcatFromSequence",
                    .inputs = {floats({2}, {1, 2}), floats({2}, {3, 4})},
                    .outputs = {floats(shape, {1, 2, 3, 4})},
                    .note = stack != 0 ? "a new axis" : "along an axis",
                    .nodes = [stack](ModelMaker& m) {
                      m.node("SequenceConstruct", {"x0", "x1"}, {"s"});
                      onnx::NodeProto& node = m.node("ConcatFromSequence", {"s"}, {"y0"});
                      set(node, "axis", std::int64_t{0});
                      set(node, "new_axis", stack);
                    }});
  }
}

// Without range or deviation nothing random is left.
void add_random(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    const std::int64_t onnx = dtype == f32 ? 1 : dtype == f64 ? 11 : 10;
    const HostTensor y = typed(dtype, {2, 2}, Numbers(4, 0.5));
    for (const char* kind : {"RandomUniform", "RandomNormal"}) {
      const bool normal = std::string(kind) == "RandomNormal";
      std::vector<std::pair<std::string, NodeAttribute>> attributes{
          {normal ? "mean" : "low", 0.5}, {normal ? "scale" : "high", normal ? 0.0 : 0.5}};
      const std::string like = std::string(kind) + "Like";
      rows.push_back({.op = like,
                      .inputs = {typed(dtype, {2, 2}, {1, 2, 3, 4})},
                      .attributes = attributes,
                      .outputs = {y},
                      .note = "type of the input"});
      attributes.emplace_back("dtype", onnx);
      rows.push_back({.op = like,
                      .inputs = {integers({2, 2}, {1, 2, 3, 4})},
                      .attributes = attributes,
                      .outputs = {y},
                      .note = "type by attribute"});
      attributes.emplace_back("shape", Axes{2, 2});
      rows.push_back({.op = kind, .attributes = attributes, .outputs = {y}});
    }
  }
}

}  // namespace

void add_constants_rows(std::vector<VersionRow>& rows) {
  add_constants(rows);
  add_shapes(rows);
  add_ranges(rows);
  add_remainders(rows);
  add_places_and_reductions(rows);
  add_splits_to_sequences(rows);
  add_random(rows);
}

}  // namespace tandem::testing
