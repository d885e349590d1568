// Fourier transforms as products with constant matrices; what is used around them: windows and
// mel scales, which are constants.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "importer/operators/element_type.h"

namespace tandem::importer::operators {
namespace {

using std::numbers::pi;

// A constant of the attribute's type.
Term as_output_type(NodeContext& node, const HostTensor& numbers) {
  const std::int64_t type = node.integer("output_datatype", dtype_to_onnx(DType::float32));
  return node.constant(numbers.converted(element_type(node, type)));
}

std::int64_t length_of(NodeContext& node, std::size_t input, const char* role, std::int64_t most) {
  const std::int64_t value = node.static_integer(input, role);
  if (value < 1 || value > most) {
    node.fail(role, fmt::format("1 to {}", most), std::to_string(value));
  }
  return value;
}

// a + b cos(2 pi n / N) + c cos(4 pi n / N); N is the length, or for symmetric windows one less.
void window(NodeContext& node, double a, double b, double c) {
  const std::int64_t length = length_of(node, 0, "size", 1 << 23);
  const double turn = static_cast<double>(node.flag("periodic", true) ? length : length - 1);
  HostTensor numbers(TensorType{DType::float64, {length}});
  for (std::int64_t i = 0; i < length; ++i) {
    const double angle = turn > 0 ? 2 * pi * static_cast<double>(i) / turn : pi;
    numbers.as<double>()[static_cast<std::size_t>(i)] =
        a + b * std::cos(angle) + c * std::cos(2 * angle);
  }
  node.out(0, as_output_type(node, numbers));
}

/// A transform of x [..., elements, parts] to [..., results, result_parts]; parts are the real one
/// and, where there are two, the imaginary one.
struct Transform {
  std::int64_t length = 1;  // elements beyond it are cut, missing ones are 0
  bool inverse = false;
  bool onesided = false;  // forward: the first half of the results; inverse: that half is given

  std::int64_t half() const { return length / 2 + 1; }
  std::int64_t results() const { return onesided && !inverse ? half() : length; }
  std::int64_t result_parts() const { return onesided && inverse ? 1 : 2; }
  std::int64_t read() const { return onesided && inverse ? half() : length; }
};

Term transformed(NodeContext& node, const Term& x, const Transform& t) {
  constexpr std::int64_t most = 1 << 25;
  Shape shape = x.type.shape;
  const std::size_t axis = shape.size() - 2;
  const std::int64_t parts = shape.back(), results = t.results(), result_parts = t.result_parts();
  const std::int64_t elements = std::min(shape[axis], t.read());
  if (t.length > (1 << 24) || elements * parts * results * result_parts > most) {
    node.unsupported(fmt::format("a transform of {} elements is not supported", t.length),
                     "transforms of up to 2896 elements, or 4096 real ones with onesided");
  }
  Term signal = x;
  if (elements < shape[axis]) {
    Shape sizes = shape;
    sizes[axis] = elements;
    signal = node.make(
        "Slice", {x},
        {{"starts", Ints(shape.size(), 0)}, {"sizes", sizes}, {"steps", Ints(shape.size(), 1)}});
  }
  // (a + ib) e^(+-i angle): the sign is that of the imaginary unit's turn.
  const double sign = t.inverse ? 1 : -1;
  const std::int64_t columns = results * result_parts;
  std::vector<double> matrix(static_cast<std::size_t>(elements * parts * columns));
  for (std::int64_t n = 0; n < elements; ++n) {
    // Only half of the spectrum is given: all entries with a mirror image count twice.
    const bool twice = t.onesided && t.inverse && n > 0 && 2 * n != t.length;
    const double weight = (twice ? 2.0 : 1.0) / (t.inverse ? static_cast<double>(t.length) : 1.0);
    for (std::int64_t k = 0; k < results; ++k) {
      const double angle =
          2 * pi * static_cast<double>(n * k % t.length) / static_cast<double>(t.length);
      const double c = weight * std::cos(angle), s = sign * weight * std::sin(angle);
      const auto at = [&](std::int64_t part, std::int64_t result_part) -> double& {
        return matrix[static_cast<std::size_t>((n * parts + part) * columns + k * result_parts +
                                               result_part)];
      };
      at(0, 0) = c;
      if (result_parts == 2) at(0, 1) = s;
      if (parts == 2) at(1, 0) = -s;
      if (parts == 2 && result_parts == 2) at(1, 1) = c;
    }
  }
  Shape rows(shape.begin(), shape.end() - 2);
  rows.push_back(elements * parts);
  const Term constant =
      node.constant(HostTensor::from({elements * parts, columns}, matrix).converted(x.type.dtype));
  const Term y = node.make("MatMul", {node.reshape(signal, rows), constant});
  shape[axis] = results;
  shape.back() = result_parts;
  return node.reshape(y, shape);
}

void check_parts(NodeContext& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 2 || (x.back() != 1 && x.back() != 2)) {
    node.fail("input", "a last axis of 1 (real) or 2 (complex)", to_string(x));
  }
}

}  // namespace

void hann_window(NodeContext& node) { window(node, 0.5, -0.5, 0); }
void hamming_window(NodeContext& node) { window(node, 25.0 / 46, -21.0 / 46, 0); }
void blackman_window(NodeContext& node) { window(node, 0.42, -0.5, 0.08); }

// The axis is an input from version 20 on.
void dft(NodeContext& node) {
  check_parts(node);
  const std::int64_t rank = node.rank(0);
  std::int64_t axis = node.version() < 20 ? node.integer("axis", 1) : -2;
  if (node.has(2)) axis = node.static_integer(2, "axis");
  axis = node.axis(axis, rank);
  if (axis == rank - 1) node.fail("axis", "one before the last", std::to_string(axis));
  Transform t;
  t.inverse = node.flag("inverse", false);
  t.onesided = node.flag("onesided", false);
  const std::int64_t extent = node.shape(0)[static_cast<std::size_t>(axis)];
  t.length = node.has(1)               ? node.static_integer(1, "dft_length")
             : t.inverse && t.onesided ? 2 * (extent - 1)
                                       : extent;
  if (t.length < 1) node.fail("dft_length", "1 or more", std::to_string(t.length));
  Ints swap(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < swap.size(); ++i) swap[i] = static_cast<std::int64_t>(i);
  std::swap(swap[static_cast<std::size_t>(axis)], swap[swap.size() - 2]);
  const Term x = node.transpose(node.widen(node.in(0)), swap);
  const Term y = node.transpose(transformed(node, x, t), swap);
  node.out(0, node.cast(y, node.dtype(0)));
}

// signal [batch, length, parts], frame_step, window?, frame_length? to [batch, frames, results, 2]
void stft(NodeContext& node) {
  check_parts(node);
  const Shape& x = node.shape(0);
  if (x.size() != 3) node.fail("input", "[batch, length, 1 or 2]", to_string(x));
  const std::int64_t step = length_of(node, 1, "frame_step", 1 << 30);
  std::int64_t length = x[1];
  if (node.has(2)) {
    if (node.rank(2) != 1) node.fail("window", "one axis", to_string(node.shape(2)));
    length = node.shape(2)[0];
  }
  if (node.has(3)) length = length_of(node, 3, "frame_length", 1 << 24);
  if (node.has(2) && node.shape(2) != Shape{length}) {
    node.fail("window", to_string(Shape{length}), to_string(node.shape(2)));
  }
  if (length < 1 || length > x[1]) {
    node.fail("frame_length", fmt::format("1 to {}", x[1]), std::to_string(length));
  }
  const std::int64_t frames = (x[1] - length) / step + 1;
  if (!checked_elements({frames, length}, 1 << 24)) {
    node.fail("the frames are too many", "2^24 elements in all", std::to_string(frames));
  }
  std::vector<std::int64_t> places;
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    for (std::int64_t i = 0; i < length; ++i) places.push_back(frame * step + i);
  }
  Term parts = node.make(
      "Gather", {node.widen(node.in(0)), node.constant(HostTensor::from({frames, length}, places))},
      {{"axis", std::int64_t{1}}});
  if (node.has(2)) {
    const Term window = node.reshape(node.widen(node.in(2)), {length, 1});
    parts = node.make("Mul", {parts, window});
  }
  const Term y = transformed(node, parts, {length, false, node.flag("onesided", true)});
  node.out(0, node.cast(y, node.dtype(0)));
}

// Triangles whose corners lie equally far apart on the mel scale 2595 log10(1 + f / 700).
void mel_weight_matrix(NodeContext& node) {
  const std::int64_t mels = length_of(node, 0, "num_mel_bins", 1 << 20);
  const std::int64_t length = length_of(node, 1, "dft_length", 1 << 24);
  const std::int64_t rate = length_of(node, 2, "sample_rate", std::int64_t{1} << 40);
  const std::int64_t bins = length / 2 + 1;
  if (!checked_elements({bins, mels}, 1 << 25)) node.fail("the matrix is too large");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(node.static_number(3, "lower_edge_hertz"));
  const double high = mel(node.static_number(4, "upper_edge_hertz"));
  const double step = (high - low) / static_cast<double>(mels + 2);
  std::vector<std::int64_t> corners;
  for (std::int64_t i = 0; i < mels + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
    const double corner =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(corner >= 0 && corner < static_cast<double>(bins))) {
      node.fail("edges", "frequencies from 0 to half the sample rate", fmt::format("{} Hz", hertz));
    }
    corners.push_back(static_cast<std::int64_t>(corner));
  }
  HostTensor matrix(TensorType{DType::float64, {bins, mels}});
  for (std::int64_t i = 0; i < mels; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t left = corners[k], middle = corners[k + 1], right = corners[k + 2];
    const auto at = [&](std::int64_t bin) -> double& {
      return matrix.as<double>()[static_cast<std::size_t>(bin * mels + i)];
    };
    const auto share = [](std::int64_t part, std::int64_t whole) {
      return static_cast<double>(part) / static_cast<double>(whole);
    };
    for (std::int64_t bin = left; bin < middle; ++bin) at(bin) = share(bin - left, middle - left);
    at(middle) = 1;
    for (std::int64_t bin = middle; bin < right; ++bin)
      at(bin) = share(right - bin, right - middle);
  }
  node.out(0, as_output_type(node, matrix));
}

}  // namespace tandem::importer::operators
