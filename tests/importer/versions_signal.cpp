// Rows of transforms, windows, pooling by norms, moves of blocks, and random draws or choices;
// expected elements are written out or come from their formulas.
#include <cmath>
#include <numbers>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;
using std::numbers::pi;

void add_running_products(Rows& rows) {
  for (DType dtype : {f32, f64, bf16, i32, i64}) {
    const HostTensor x = typed(dtype, {2, 3}, {1, 2, 4, -3, 0, 5});
    const auto add = [&](std::int64_t exclusive, std::int64_t reverse, const Numbers& y) {
      rows.push_back({.op = "CumProd",
                      .inputs = {x, integers({}, {-1})},
                      .attributes = {{"exclusive", exclusive}, {"reverse", reverse}},
                      .outputs = {typed(dtype, {2, 3}, y)},
                      .note = "last axis " + std::to_string(exclusive) + std::to_string(reverse)});
    };
    add(0, 0, {1, 2, 8, -3, 0, 0});
    add(1, 0, {1, 1, 2, 1, -3, 0});
    add(0, 1, {8, 8, 4, 0, 0, 5});
    add(1, 1, {8, 4, 1, 0, 5, 1});
    rows.push_back({.op = "CumProd",
                    .inputs = {x, typed(i32, {1}, {0})},
                    .outputs = {typed(dtype, {2, 3}, {1, 2, 4, -3, 0, 20})},
                    .note = "axis 0"});
  }
  // 1 to 20, whose last product float64 holds.
  Numbers x, y;
  for (int i = 1; i <= 18; ++i) {
    x.push_back(i);
    y.push_back(i == 1 ? 1 : y.back() * i);
  }
  rows.push_back({.op = "CumProd",
                  .inputs = {typed(f64, {18}, x), integers({}, {0})},
                  .outputs = {typed(f64, {18}, y)},
                  .note = "factorials"});
  rows.push_back({.op = "CumProd",
                  .inputs = {floats({2, 0}, {}), integers({}, {1})},
                  .attributes = {{"exclusive", 1}},
                  .outputs = {floats({2, 0}, {})},
                  .note = "nothing"});
}

void add_reversed_sequences(Rows& rows) {
  for (DType dtype : {f32, f16, i64, DType::boolean}) {
    rows.push_back({.op = "ReverseSequence",
                    .inputs = {typed(dtype, {3, 2}, {1, 0, 1, 1, 0, 0}), integers({3, 2})},
                    .outputs = {typed(dtype, {3, 2}, {0, 1, 1, 0, 1, 0})},
                    .note = "time first"});
    rows.push_back({.op = "ReverseSequence",
                    .inputs = {typed(dtype, {2, 3, 1}, {1, 0, 0, 0, 1, 0}), integers({2, 1})},
                    .attributes = {{"batch_axis", 0}, {"time_axis", 1}},
                    .outputs = {typed(dtype, {2, 3, 1}, {0, 1, 0, 0, 1, 0})},
                    .note = "batch first"});
  }
  rows.push_back({.op = "ReverseSequence",
                  .inputs = {floats({3, 2}, Numbers(6)), integers({3})},
                  .note = "a length too few",
                  .refused = "shape of the lengths"});
  rows.push_back({.op = "ReverseSequence",
                  .inputs = {floats({1, 2, 2}, Numbers(4)), integers({1, 1})},
                  .attributes = {{"batch_axis", 2}, {"time_axis", 1}},
                  .note = "a third axis",
                  .refused = "batch_axis and time_axis"});
}

// x is 1 to 4 with signs; the norms of pairs.
void add_norm_pools(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor x = typed(dtype, {1, 1, 4}, {-1, 2, -3, 4});
    const auto norm = [](double a, double b, double p) {
      return std::pow(std::pow(a, p) + std::pow(b, p), 1 / p);
    };
    for (double p : {1.0, 2.0, 3.0}) {
      rows.push_back({.op = "LpPool",
                      .inputs = {x},
                      .attributes = {{"kernel_shape", Axes{2}},
                                     {"strides", Axes{2}},
                                     {"p", static_cast<std::int64_t>(p)}},
                      .outputs = {typed(dtype, {1, 1, 2}, {norm(1, 2, p), norm(3, 4, p)})},
                      .note = "norm " + std::to_string(p)});
      rows.push_back({.op = "GlobalLpPool",
                      .inputs = {x},
                      .attributes = {{"p", static_cast<std::int64_t>(p)}},
                      .outputs = {typed(dtype, {1, 1, 1}, {norm(norm(1, 2, p), norm(3, 4, p), p)})},
                      .note = "norm " + std::to_string(p)});
    }
    rows.push_back(
        {.op = "LpPool",
         .inputs = {x},
         .attributes = {{"kernel_shape", Axes{3}}, {"pads", Axes{1, 1}}},
         .outputs = {typed(dtype, {1, 1, 4}, {std::sqrt(5), std::sqrt(14), std::sqrt(29), 5})},
         .note = "zeros around"});
    rows.push_back({.op = "LpPool",
                    .first = 18,
                    .inputs = {x},
                    .attributes = {{"kernel_shape", Axes{2}},
                                   {"strides", Axes{3}},
                                   {"dilations", Axes{2}},
                                   {"ceil_mode", 1}},
                    .outputs = {typed(dtype, {1, 1, 2}, {std::sqrt(10), 4})},
                    .note = "ceil_mode and dilations"});
  }
  rows.push_back({.op = "LpPool",
                  .inputs = {floats({1, 1, 2}, {0, 0})},
                  .attributes = {{"kernel_shape", Axes{2}}, {"auto_pad", "SAME_UPPER"}, {"p", 3}},
                  .outputs = {floats({1, 1, 2}, {0, 0})},
                  .note = "zeros"});
  rows.push_back({.op = "LpPool",
                  .inputs = {floats({1, 1, 2}, {0, 0})},
                  .attributes = {{"kernel_shape", Axes{2}}, {"p", 0}},
                  .note = "norm 0",
                  .refused = "p"});
}

void add_unpooling(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor x = typed(dtype, {1, 1, 2, 2}, {1, 2, 3, 4});
    const HostTensor places = integers({1, 1, 2, 2}, {5, 7, 8, 15});
    const std::vector<std::pair<std::string, NodeAttribute>> windows{{"kernel_shape", Axes{2, 2}},
                                                                     {"strides", Axes{2, 2}}};
    rows.push_back({.op = "MaxUnpool",
                    .inputs = {x, places},
                    .attributes = windows,
                    .outputs = {typed(dtype, {1, 1, 4, 4},
                                      {0, 0, 0, 0, 0, 1, 0, 2, 3, 0, 0, 0, 0, 0, 0, 4})}});
    Numbers larger(25);
    larger[6] = 1, larger[8] = 2, larger[10] = 3, larger[18] = 4;
    rows.push_back({.op = "MaxUnpool",
                    .inputs = {x, places, integers({1, 1, 5, 5})},
                    .attributes = windows,
                    .outputs = {typed(dtype, {1, 1, 5, 5}, larger)},
                    .note = "a larger shape"});
  }
}

// Most rows hold the numbers 1, 2, ...
void add_blocks(Rows& rows) {
  for (DType dtype : {f32, f64, f16, i32}) {
    rows.push_back({.op = "CenterCropPad",
                    .inputs = {typed(dtype, {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
                               integers({1, 6})},
                    .outputs = {typed(dtype, {1, 6}, {0, 4, 5, 6, 0, 0})},
                    .note = "cut and filled"});
    rows.push_back({.op = "CenterCropPad",
                    .inputs = {typed(dtype, {1, 4}, {1, 2, 3, 4}), integers({3})},
                    .attributes = {{"axes", Axes{-1}}},
                    .outputs = {typed(dtype, {1, 3}, {1, 2, 3})},
                    .note = "one axis"});
    // Blocks of 2 in an image of 4, one after the other and every second one.
    rows.push_back(
        {.op = "Col2Im",
         .inputs = {typed(dtype, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), integers({4}), integers({2})},
         .outputs = {typed(dtype, {1, 1, 4}, {1, 6, 8, 6})},
         .note = "sums"});
    rows.push_back({.op = "Col2Im",
                    .inputs = {typed(dtype, {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), integers({3}),
                               integers({2})},
                    .attributes = {{"pads", Axes{1, 0}}, {"strides", Axes{2}}},
                    .outputs = {typed(dtype, {1, 2, 3}, {3, 2, 4, 7, 6, 8})},
                    .note = "padding and strides"});
    rows.push_back({.op = "Col2Im",
                    .inputs = {typed(dtype, {1, 2, 2}, {1, 2, 3, 4}), integers({4}), integers({2})},
                    .attributes = {{"dilations", Axes{2}}},
                    .outputs = {typed(dtype, {1, 1, 4}, {1, 2, 3, 4})},
                    .note = "dilations"});
  }
  rows.push_back({.op = "Col2Im",
                  .inputs = {floats({1, 2, 2}, Numbers(4)), integers({4}), integers({2})},
                  .note = "a block too few",
                  .refused = "[N, a multiple of 2, 3]"});
}

void add_grids(Rows& rows) {
  for (DType dtype : {f32, f64}) {
    // x and y change places; y moves by 1.
    const HostTensor theta = typed(dtype, {1, 2, 3}, {0, 1, 0, 1, 0, 1});
    rows.push_back({.op = "AffineGrid",
                    .inputs = {theta, integers({1, 1, 1, 2})},
                    .outputs = {typed(dtype, {1, 1, 2, 2}, {0, 0.5, 0, 1.5})},
                    .note = "a line of two"});
    rows.push_back({.op = "AffineGrid",
                    .inputs = {theta, integers({1, 1, 2, 2})},
                    .attributes = {{"align_corners", 1}},
                    .outputs = {typed(dtype, {1, 2, 2, 2}, {-1, 0, -1, 2, 1, 0, 1, 2})},
                    .note = "corners"});
    rows.push_back({.op = "AffineGrid",
                    .inputs = {typed(dtype, {1, 3, 4}, {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 7}),
                               integers({1, 1, 2, 1, 1})},
                    .attributes = {{"align_corners", 1}},
                    .outputs = {typed(dtype, {1, 2, 1, 1, 3}, {-1, 0, 7, 1, 0, 7})},
                    .note = "volume"});
  }
  rows.push_back({.op = "AffineGrid",
                  .inputs = {floats({1, 3, 4}, Numbers(12)), integers({1, 1, 2, 1})},
                  .note = "theta of a volume",
                  .refused = "theta"});
}

// Certain results: probabilities 0 and 1, weights next to which all others vanish.
void add_draws(Rows& rows) {
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor p = typed(dtype, {4}, {0, 1, 1, 0});
    rows.push_back({.op = "Bernoulli", .inputs = {p}, .outputs = {p}});
    rows.push_back({.op = "Bernoulli",
                    .inputs = {p},
                    .attributes = {{"dtype", 7}},
                    .outputs = {integers({0, 1, 1, 0})},
                    .note = "int64"});
    const HostTensor x = typed(dtype, {2, 3}, {-999, 0, -999, 5, -999, -999});
    rows.push_back({.op = "Multinomial",
                    .inputs = {x},
                    .attributes = {{"sample_size", 4}},
                    .outputs = {typed(i32, {2, 4}, {1, 1, 1, 1, 0, 0, 0, 0})}});
    rows.push_back({.op = "Multinomial",
                    .inputs = {typed(dtype, {1, 3}, {-999, -999, 2})},
                    .attributes = {{"dtype", 7}, {"seed", 1.0}},
                    .outputs = {integers({1, 1}, {2})},
                    .note = "the last one, int64"});
  }
}

void add_choices(Rows& rows) {
  for (DType dtype : {f32, f16, i64}) {
    const HostTensor x = typed(dtype, {3, 2}, {1, 2, 3, 4, 5, 6});
    rows.push_back({.op = "Compress",
                    .inputs = {x, booleans({3}, {0, 1, 1})},
                    .attributes = {{"axis", -2}},
                    .outputs = {typed(dtype, {2, 2}, {3, 4, 5, 6})},
                    .note = "rows"});
    rows.push_back({.op = "Compress",
                    .inputs = {x, booleans({4}, {1, 0, 0, 1})},
                    .outputs = {typed(dtype, {2}, {1, 4})},
                    .note = "elements"});
    const HostTensor y = typed(dtype, {6}, {2, 1, 1, 3, 4, 3});
    rows.push_back({.op = "Unique",
                    .inputs = {y},
                    .outputs = {typed(dtype, {4}, {1, 2, 3, 4}), integers({1, 0, 3, 4}),
                                integers({1, 0, 0, 2, 3, 2}), integers({2, 1, 2, 1})},
                    .note = "sorted",
                    .known = true});
    rows.push_back({.op = "Unique",
                    .inputs = {y},
                    .attributes = {{"sorted", 0}},
                    .outputs = {typed(dtype, {4}, {2, 1, 3, 4}), integers({0, 1, 3, 4}),
                                integers({0, 1, 1, 2, 3, 2}), integers({1, 2, 2, 1})},
                    .note = "as they come",
                    .known = true});
    rows.push_back({.op = "Unique",
                    .inputs = {typed(dtype, {2, 3}, {2, 0, 2, 1, 5, 1})},
                    .attributes = {{"axis", 1}},
                    .outputs = {typed(dtype, {2, 2}, {0, 2, 5, 1}), integers({1, 0}),
                                integers({1, 0, 1}), integers({1, 2})},
                    .note = "columns",
                    .known = true});
  }
  rows.push_back({.op = "Unique",
                  .inputs = {floats({2}, {1, 1})},
                  .note = "of what is fed",
                  .refused = "known before the run"});
}

// The single items 2 and 3; the pairs 5 4, 5 6 and 7 8. Columns 4 to 0 count them.
void add_sequence_counts(Rows& rows) {
  for (DType dtype : {i32, i64}) {
    const HostTensor x = typed(dtype, {2, 6}, {1, 2, 5, 9, 4, 2, 7, 5, 8, 6, 3, 5});
    const auto add = [&](const char* mode, std::int64_t least, std::int64_t skips,
                         const Numbers& y) {
      rows.push_back({.op = "TfIdfVectorizer",
                      .inputs = {x},
                      .attributes = {{"mode", mode},
                                     {"min_gram_length", least},
                                     {"max_gram_length", 2},
                                     {"max_skip_count", skips},
                                     {"ngram_counts", Axes{0, 2}},
                                     {"ngram_indexes", Axes{4, 3, 2, 1, 0}},
                                     {"pool_int64s", Axes{2, 3, 5, 4, 5, 6, 7, 8}},
                                     {"weights", std::vector<float>{10, 20, 30, 40, 50}}},
                      .outputs = {floats({2, 5}, y)},
                      .note = std::string(mode) + " " + std::to_string(skips)});
    };
    add("TF", 1, 1, {0, 0, 1, 0, 2, 1, 1, 0, 1, 0});
    add("TF", 2, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    add("IDF", 1, 1, {0, 0, 30, 0, 50, 10, 20, 0, 40, 0});
    add("TFIDF", 1, 2, {0, 0, 30, 0, 100, 10, 20, 0, 40, 0});
  }
}

// Boxes: two that nearly agree, one away from them; corners in either order.
void add_suppressions(Rows& rows) {
  const HostTensor boxes =
      floats({1, 4, 4}, {0, 0, 10, 10, 11, 10, 0, 0, 20, 20, 30, 30, 0, 0, 10, 10});
  const HostTensor scores = floats({1, 2, 4}, {0.5, 0.9, 0.6, 0.1, 0.9, 0.5, 0.2, 0.8});
  const HostTensor most = integers({2}), half = floats({1}, {0.5});
  rows.push_back({.op = "NonMaxSuppression",
                  .inputs = {boxes, scores, most, half, floats({1}, {0.3})},
                  .outputs = {integers({3, 3}, {0, 0, 1, 0, 0, 2, 0, 1, 0})},
                  .note = "two classes",
                  .known = true});
  rows.push_back({.op = "NonMaxSuppression",
                  .inputs = {boxes, scores, integers({1})},
                  .outputs = {integers({2, 3}, {0, 0, 1, 0, 1, 0})},
                  .note = "one of each",
                  .known = true});
  rows.push_back({.op = "NonMaxSuppression",
                  .inputs = {boxes, scores},
                  .outputs = {integers({0, 3}, {})},
                  .note = "none",
                  .known = true});
  // The middle 5 and extents 10; the second is moved by 4 along x: 60 of 140 are common.
  rows.push_back({.op = "NonMaxSuppression",
                  .inputs = {floats({1, 2, 4}, {5, 5, 10, 10, 9, 5, 10, 10}),
                             floats({1, 1, 2}, {0.5, 0.9}), most, floats({}, {0.43})},
                  .attributes = {{"center_point_box", 1}},
                  .outputs = {integers({2, 3}, {0, 0, 1, 0, 0, 0})},
                  .note = "middles and extents",
                  .known = true});
  rows.push_back({.op = "NonMaxSuppression",
                  .inputs = {boxes, scores, most},
                  .note = "of what is fed",
                  .refused = "known before the run"});
}

void add_windows(Rows& rows) {
  struct Window {
    const char* op;
    double a, b, c;
  };
  for (const Window& window : {Window{"HannWindow", 0.5, -0.5, 0},
                               {"HammingWindow", 25.0 / 46, -21.0 / 46, 0},
                               {"BlackmanWindow", 0.42, -0.5, 0.08}}) {
    for (std::int64_t periodic : {0, 1}) {
      Numbers y;
      for (int i = 0; i < 5; ++i) {
        const double angle = 2 * pi * i / (periodic != 0 ? 5 : 4);
        y.push_back(window.a + window.b * std::cos(angle) + window.c * std::cos(2 * angle));
      }
      for (const auto& [type, number] : {std::pair{f32, 1}, {f64, 11}, {f16, 10}}) {
        rows.push_back({.op = window.op,
                        .inputs = {integers({}, {5})},
                        .attributes = {{"periodic", periodic}, {"output_datatype", number}},
                        .outputs = {typed(type, {5}, y)},
                        .note = "periodic " + std::to_string(periodic)});
      }
    }
    rows.push_back(
        {.op = window.op, .inputs = {integers({}, {0})}, .note = "no size", .refused = "size"});
  }
}

/// sum over n of (x[n] as a complex number) e^(-+2 pi i n k / length), times `scale`.
Numbers fourier(const Numbers& real, const Numbers& imaginary, int length, int results, double sign,
                double scale) {
  Numbers y;
  for (int k = 0; k < results; ++k) {
    double re = 0, im = 0;
    for (int n = 0; n < std::min<int>(length, static_cast<int>(real.size())); ++n) {
      const double angle = sign * 2 * pi * n * k / length;
      const auto i = static_cast<std::size_t>(n);
      re += real[i] * std::cos(angle) - imaginary[i] * std::sin(angle);
      im += real[i] * std::sin(angle) + imaginary[i] * std::cos(angle);
    }
    y.push_back(re * scale);
    y.push_back(im * scale);
  }
  return y;
}

void add_transforms(Rows& rows) {
  const Numbers re{1, -2, 0.5, 3, 1}, im{0.5, 1, -1, 0, 2}, none(5);
  const Numbers both{1, 0.5, -2, 1, 0.5, -1, 3, 0, 1, 2};
  const auto add = [&](const char* note, const HostTensor& x, const HostTensor& length,
                       std::int64_t inverse, std::int64_t onesided, const HostTensor& y) {
    rows.push_back({.op = "DFT",
                    .last = 19,
                    .inputs = {x, length},
                    .attributes = {{"axis", 1}, {"inverse", inverse}, {"onesided", onesided}},
                    .outputs = {y},
                    .note = std::string(note) + ", axis as attribute"});
    rows.push_back({.op = "DFT",
                    .first = 20,
                    .inputs = {x, length, integers({}, {-2})},
                    .attributes = {{"inverse", inverse}, {"onesided", onesided}},
                    .outputs = {y},
                    .note = note});
  };
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor x = typed(dtype, {1, 5, 2}, both), real = typed(dtype, {1, 5, 1}, re);
    const HostTensor own;
    add("complex", x, own, 0, 0, typed(dtype, {1, 5, 2}, fourier(re, im, 5, 5, -1, 1)));
    add("back", x, own, 1, 0, typed(dtype, {1, 5, 2}, fourier(re, im, 5, 5, 1, 0.2)));
    add("real", real, own, 0, 0, typed(dtype, {1, 5, 2}, fourier(re, none, 5, 5, -1, 1)));
    add("one side", real, own, 0, 1, typed(dtype, {1, 3, 2}, fourier(re, none, 5, 3, -1, 1)));
    add("longer", x, integers({}, {7}), 0, 0,
        typed(dtype, {1, 7, 2}, fourier(re, im, 7, 7, -1, 1)));
    add("shorter", real, typed(i32, {}, {3}), 0, 1,
        typed(dtype, {1, 2, 2}, fourier(re, none, 3, 2, -1, 1)));
    // One side is [1, 2 - i, 3]: the whole is [1, 2 - i, 3, 2 + i].
    add("one side back", typed(dtype, {1, 3, 2}, {1, 0, 2, -1, 3, 0}), own, 1, 1,
        typed(dtype, {1, 4, 1}, {2, 0, 0, -1}));
  }
  // Two frames of 3, one step of 2 apart.
  for (DType dtype : {f32, f64, f16}) {
    const HostTensor x = typed(dtype, {1, 5, 1}, re);
    const Numbers first = fourier({1, -2, 0.5}, none, 3, 2, -1, 1),
                  second = fourier({0.5, 3, 1}, none, 3, 2, -1, 1);
    Numbers y = first;
    y.insert(y.end(), second.begin(), second.end());
    rows.push_back({.op = "STFT",
                    .inputs = {x, integers({}, {2}), HostTensor(), integers({}, {3})},
                    .outputs = {typed(dtype, {1, 2, 2, 2}, y)},
                    .note = "frames"});
    Numbers weighted = fourier({2, -2, 0.25}, none, 3, 3, -1, 1);
    const Numbers next = fourier({1, 3, 0.5}, none, 3, 3, -1, 1);
    weighted.insert(weighted.end(), next.begin(), next.end());
    rows.push_back({.op = "STFT",
                    .inputs = {x, integers({}, {2}), typed(dtype, {3}, {2, 1, 0.5})},
                    .attributes = {{"onesided", 0}},
                    .outputs = {typed(dtype, {1, 2, 3, 2}, weighted)},
                    .note = "window"});
  }
}

// Three triangles over 9 frequencies; their corners by the definition in double.
void add_mels(Rows& rows) {
  constexpr int mels = 3, length = 16, bins = 9;
  constexpr double rate = 8000, low = 0, high = 4000;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  Numbers corners;
  for (int i = 0; i < mels + 2; ++i) {
    const double m = mel(low) + i * (mel(high) - mel(low)) / (mels + 2);
    corners.push_back(std::floor((length + 1) * 700 * (std::pow(10, m / 2595) - 1) / rate));
  }
  Numbers y;
  for (int bin = 0; bin < bins; ++bin) {
    for (std::size_t i = 0; i < mels; ++i) {
      const double left = corners[i], middle = corners[i + 1], right = corners[i + 2];
      const double rise = bin == middle ? 1 : (bin - left) / (middle - left);
      const double fall = bin == middle ? 1 : (right - bin) / (right - middle);
      y.push_back(std::max(0.0, std::min(rise, fall)));
    }
  }
  for (const auto& [type, number] : {std::pair{f32, 1}, {f64, 11}}) {
    rows.push_back({.op = "MelWeightMatrix",
                    .inputs = {integers({}, {mels}), integers({}, {length}), integers({}, {rate}),
                               floats({}, {low}), floats({}, {high})},
                    .attributes = {{"output_datatype", number}},
                    .outputs = {typed(type, {bins, mels}, y)}});
  }
  rows.push_back({.op = "MelWeightMatrix",
                  .inputs = {integers({}, {mels}), integers({}, {length}), integers({}, {rate}),
                             floats({}, {low}), floats({}, {9000})},
                  .note = "beyond half the rate",
                  .refused = "edges"});
}

}  // namespace

void add_signal_rows(Rows& rows) {
  add_running_products(rows);
  add_reversed_sequences(rows);
  add_norm_pools(rows);
  add_unpooling(rows);
  add_blocks(rows);
  add_grids(rows);
  add_draws(rows);
  add_choices(rows);
  add_suppressions(rows);
  add_sequence_counts(rows);
  add_windows(rows);
  add_transforms(rows);
  add_mels(rows);
}

}  // namespace tandem::testing
