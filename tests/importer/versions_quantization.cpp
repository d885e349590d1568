// Rows of quantization, of products of small integers, of regions and moved samples, and of what
// else has operators of its own; expected elements are written out.
#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// Steps of 0.5 from 10 on; halves go to even ones, and the ends cut.
void add_quantized(Rows& rows) {
  for (DType dtype : {f32, f16, i32}) {
    rows.push_back({.op = "QuantizeLinear",
                    .inputs = {typed(dtype, {5}, {0, 2, -3, 100, -300}),
                               typed(dtype == i32 ? f32 : dtype, {}, {4}), typed(i8, {}, {10})},
                    .outputs = {typed(i8, {5}, {10, 10, 9, 35, -65})},
                    .note = "one scale"});
  }
  rows.push_back({.op = "QuantizeLinear",
                  .inputs = {floats({4}, {-1, 0.25, 0.75, 200}), floats({}, {0.5})},
                  .outputs = {typed(u8, {4}, {0, 0, 2, 255})},
                  .note = "uint8 without a zero point"});
  rows.push_back(
      {.op = "QuantizeLinear",
       .first = 13,
       .inputs = {floats({2, 2}, {1, 2, 300, -300}), floats({2}, {0.5, 2}), typed(i8, {2}, {1, 0})},
       .attributes = {{"axis", 0}},
       .outputs = {typed(i8, {2, 2}, {3, 5, 127, -128})},
       .note = "a scale for each row"});
  for (DType type : {i16, u16}) {
    rows.push_back(
        {.op = "QuantizeLinear",
         .first = 21,
         .inputs = {floats({3}, {3, 1e6, -1e6}), floats({1}, {2}), typed(type, {1}, {5})},
         .outputs = {typed(type, {3},
                           type == i16 ? Numbers{7, 32767, -32768} : Numbers{7, 65535, 0})},
         .note = "16 bits"});
  }
  rows.push_back({.op = "QuantizeLinear",
                  .first = 21,
                  .inputs = {floats({1, 5}, {1, 2, 3, 4, 5}), floats({1, 3}, {1, 2, 5})},
                  .attributes = {{"block_size", 2}, {"output_dtype", 3}},
                  .outputs = {typed(i8, {1, 5}, {1, 2, 2, 2, 1})},
                  .note = "a scale for each block"});
  rows.push_back({.op = "QuantizeLinear",
                  .inputs = {floats({2, 3}, Numbers(6)), floats({2}, {1, 1})},
                  .note = "scales of another axis",
                  .refused = "shape of the scale and zero point"});
}

void add_dequantized(Rows& rows) {
  for (DType type : {i8, u8, i16, u16}) {
    rows.push_back(
        {.op = "DequantizeLinear",
         .inputs = {typed(type, {3}, {0, 3, 100}), floats({}, {0.5}), typed(type, {}, {2})},
         .outputs = {floats({3}, {-1, 0.5, 49})},
         .note = "one scale"});
  }
  rows.push_back({.op = "DequantizeLinear",
                  .inputs = {typed(i32, {2}, {-70000, 3}), floats({}, {2})},
                  .outputs = {floats({2}, {-140000, 6})},
                  .note = "int32"});
  rows.push_back(
      {.op = "DequantizeLinear",
       .first = 13,
       .inputs = {typed(u8, {1, 2, 2}, {1, 2, 3, 4}), floats({2}, {2, 10}), typed(u8, {2}, {1, 4})},
       .attributes = {{"axis", -2}},
       .outputs = {floats({1, 2, 2}, {0, 2, -10, 0})},
       .note = "a scale for each row"});
  rows.push_back({.op = "DequantizeLinear",
                  .first = 19,
                  .inputs = {typed(i8, {2}, {-4, 5}), typed(f16, {}, {0.25})},
                  .outputs = {typed(f16, {2}, {-1, 1.25})},
                  .note = "float16"});
  rows.push_back(
      {.op = "DequantizeLinear",
       .first = 21,
       .inputs = {typed(i8, {3, 1}, {1, 2, 3}), floats({2, 1}, {1, 10}), typed(i8, {2, 1}, {0, 1})},
       .attributes = {{"axis", 0}, {"block_size", 2}},
       .outputs = {floats({3, 1}, {1, 2, 20})},
       .note = "a scale for each block"});
  rows.push_back({.op = "DequantizeLinear",
                  .first = 23,
                  .inputs = {typed(i8, {2}, {-4, 5}), floats({}, {0.25})},
                  .attributes = {{"output_dtype", 10}},
                  .outputs = {typed(f16, {2}, {-1, 1.25})},
                  .note = "another type"});
  // The range is -1 to 4: steps of 5 / 255.
  rows.push_back({.op = "DynamicQuantizeLinear",
                  .inputs = {floats({4}, {-1, 0, 4, 1})},
                  .outputs = {typed(u8, {4}, {0, 51, 255, 102}), floats({}, {5.0 / 255}),
                              typed(u8, {}, {51})}});
  rows.push_back({.op = "DynamicQuantizeLinear",
                  .inputs = {floats({2}, {0, 0})},
                  .outputs = {typed(u8, {2}, {0, 0}), floats({}, {1.0 / 255}), typed(u8, {}, {0})},
                  .note = "zeros"});
}

void add_integer_products(Rows& rows) {
  const HostTensor a = typed(u8, {2, 2}, {11, 7, 10, 0}), b = typed(i8, {2, 2}, {1, -4, 2, 5});
  rows.push_back({.op = "MatMulInteger",
                  .inputs = {a, b},
                  .outputs = {typed(i32, {2, 2}, {25, -9, 10, -40})}});
  rows.push_back({.op = "MatMulInteger",
                  .inputs = {a, b, typed(u8, {2}, {10, 0}), typed(i8, {2}, {1, 0})},
                  .outputs = {typed(i32, {2, 2}, {-3, -19, 0, -40})},
                  .note = "zero points of rows and columns"});
  // 300 products of the largest numbers are beyond float32.
  rows.push_back({.op = "MatMulInteger",
                  .inputs = {typed(u8, {1, 300}, Numbers(300, 255)),
                             typed(u8, {300, 1}, Numbers(300, 253)), typed(u8, {}, {0})},
                  .outputs = {typed(i32, {1, 1}, {300.0 * 255 * 253})},
                  .note = "large sums"});
  const HostTensor x = typed(u8, {1, 1, 3}, {2, 3, 4}), w = typed(u8, {2, 1, 2}, {1, 0, 5, 2});
  rows.push_back({.op = "ConvInteger",
                  .inputs = {x, w, typed(u8, {}, {1}), typed(u8, {2}, {0, 1})},
                  .attributes = {{"pads", Axes{0, 1}}},
                  .outputs = {typed(i32, {1, 2, 3}, {1, 2, 3, 6, 11, 12})}});
  // The sums 25, -9, 10, -40 in steps of 4, from 1 on.
  for (DType type : {f32, f16}) {
    rows.push_back(
        {.op = "QLinearMatMul",
         .first = type == f32 ? 10 : 21,
         .inputs = {a, typed(type, {}, {0.5}), typed(u8, {}, {0}), b, typed(type, {}, {0.25}),
                    typed(i8, {}, {0}), typed(type, {}, {0.5}), typed(i8, {}, {1})},
         .outputs = {typed(i8, {2, 2}, {7, -1, 3, -9})},
         .note = std::string(name_of(type))});
  }
  rows.push_back({.op = "QLinearMatMul",
                  .inputs = {a, floats({}, {1}), typed(u8, {}, {0}), b, floats({2}, {1, 2}),
                             typed(i8, {2}, {0, 0}), floats({}, {1}), typed(u8, {}, {0})},
                  .outputs = {typed(u8, {2, 2}, {25, 0, 10, 0})},
                  .note = "columns, cut at 0"});
  // The sums of ConvInteger, and a bias.
  rows.push_back({.op = "QLinearConv",
                  .inputs = {x, floats({}, {1}), typed(u8, {}, {1}), w, floats({2}, {1, 0.5}),
                             typed(u8, {2}, {0, 1}), floats({}, {0.5}), typed(u8, {}, {3}),
                             typed(i32, {2}, {1, -1})},
                  .attributes = {{"pads", Axes{0, 1}}},
                  .outputs = {typed(u8, {1, 2, 3}, {7, 9, 11, 8, 13, 14})}});
}

// Sampled at the middles of elements, so that results are elements or halves between two.
void add_regions(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor x = typed(dtype, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
    const HostTensor batches = integers({1}, {0});
    rows.push_back({.op = "RoiAlign",
                    .first = 16,
                    .inputs = {x, typed(dtype, {1, 4}, {0, 0, 3, 2}), batches},
                    .attributes = {{"output_height", 2}, {"output_width", 3}},
                    .outputs = {typed(dtype, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})},
                    .note = "elements"});
    rows.push_back({.op = "RoiAlign",
                    .last = 15,
                    .inputs = {x, typed(dtype, {1, 4}, {0, 0, 2, 1}), batches},
                    .attributes = {{"sampling_ratio", 1}},
                    .outputs = {typed(dtype, {1, 1, 1, 1}, {3.5})},
                    .note = "no half pixel before version 16"});
    rows.push_back({.op = "RoiAlign",
                    .first = 16,
                    .inputs = {x, typed(dtype, {1, 4}, {0, 0, 4, 2}), batches},
                    .attributes = {{"sampling_ratio", 1},
                                   {"spatial_scale", 0.5},
                                   {"coordinate_transformation_mode", "output_half_pixel"}},
                    .outputs = {typed(dtype, {1, 1, 1, 1}, {3.5})},
                    .note = "half the size"});
    rows.push_back({.op = "RoiAlign",
                    .first = 16,
                    .inputs = {x, typed(dtype, {1, 4}, {0, 0, 3, 2}), batches},
                    .attributes = {{"mode", "max"}},
                    .outputs = {typed(dtype, {1, 1, 1, 1}, {6})},
                    .note = "largest"});
    rows.push_back({.op = "MaxRoiPool",
                    .inputs = {x, typed(dtype, {2, 5}, {0, 0, 0, 2, 1, 0, 2, 2, 4, 3})},
                    .attributes = {{"pooled_shape", Axes{1, 2}}},
                    .outputs = {typed(dtype, {2, 1, 1, 2}, {5, 6, 0, 0})}});
    rows.push_back({.op = "MaxRoiPool",
                    .inputs = {x, typed(dtype, {1, 5}, {0, 2, 0, 4, 0})},
                    .attributes = {{"pooled_shape", Axes{1, 1}}, {"spatial_scale", 0.5}},
                    .outputs = {typed(dtype, {1, 1, 1, 1}, {3})},
                    .note = "half the size"});
  }
}

void add_moved_samples(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor x = typed(dtype, {1, 1, 2, 2}, {1, 2, 3, 4});
    const HostTensor w = typed(dtype, {1, 1, 1, 2}, {1, 10});
    // Both taps of the two places: down by one, right by a half; and right by a half.
    const HostTensor offset = typed(dtype, {1, 4, 2, 1}, {1, 0, 0, 0.5, 0, 0, 0.5, 0.5});
    rows.push_back({.op = "DeformConv",
                    .inputs = {x, w, offset},
                    .outputs = {typed(dtype, {1, 1, 2, 1}, {13, 23.5})},
                    .note = "offsets"});
    rows.push_back({.op = "DeformConv",
                    .inputs = {x, w, offset, typed(dtype, {1}, {100}),
                               typed(dtype, {1, 2, 2, 1}, {2, 1, 0, 0.5})},
                    .outputs = {typed(dtype, {1, 1, 2, 1}, {106, 113.5})},
                    .note = "bias and mask"});
  }
  rows.push_back({.op = "DeformConv",
                  .inputs = {floats({1, 1, 2, 2}, Numbers(4)), floats({1, 1, 1, 1}, {1}),
                             floats({1, 2, 3, 2}, Numbers(12))},
                  .note = "offsets of another shape",
                  .refused = "extents of the offsets"});
}

void add_determinants_and_bit_casts(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    rows.push_back({.op = "Det",
                    .inputs = {typed(dtype, {3, 2, 2}, {1, 2, 3, 4, 0, 2, 1, 0, 1, 2, 2, 4})},
                    .outputs = {typed(dtype, {3}, {-2, -2, 0})}});
  }
  rows.push_back({.op = "Det",
                  .inputs = {floats({2, 3}, Numbers(6))},
                  .note = "not square",
                  .refused = "square"});
  rows.push_back({.op = "BitCast",
                  .inputs = {floats({2}, {1, -0.0})},
                  .attributes = {{"to", 6}},
                  .outputs = {typed(i32, {2}, {0x3f800000, -2147483648.0})},
                  .note = "float32 as int32"});
  rows.push_back({.op = "BitCast",
                  .inputs = {integers({1}, {0x4000000000000000})},
                  .attributes = {{"to", 11}},
                  .outputs = {typed(f64, {1}, {2})},
                  .note = "int64 as float64"});
  rows.push_back({.op = "BitCast",
                  .inputs = {typed(i8, {2}, {-1, 5})},
                  .attributes = {{"to", 2}},
                  .outputs = {typed(u8, {2}, {255, 5})},
                  .note = "int8 as uint8"});
  rows.push_back({.op = "BitCast",
                  .inputs = {typed(i64, {1}, {1})},
                  .attributes = {{"to", 6}},
                  .note = "another size",
                  .refused = "types of different sizes"});
}

}  // namespace

void add_quantization_rows(Rows& rows) {
  add_quantized(rows);
  add_dequantized(rows);
  add_integer_products(rows);
  add_regions(rows);
  add_moved_samples(rows);
  add_determinants_and_bit_casts(rows);
}

}  // namespace tandem::testing
