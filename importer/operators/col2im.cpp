// Col2Im: blocks added into an image, as an update of its rows by constant places. What unfold
// takes apart, this puts together.
#include <fmt/format.h>

#include <limits>

#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

struct Blocks {
  Ints image, kernel, strides, pads, dilations;
  Shape counts;  // number of blocks along each axis
};

Blocks read_blocks(NodeContext& node) {
  constexpr std::int64_t limit = 1 << 30;
  Blocks b;
  b.image = node.static_integers(1, "image_shape");
  b.kernel = node.static_integers(2, "block_shape");
  const std::size_t axes = b.image.size();
  const auto read = [&](const char* name, std::size_t count, std::int64_t missing) {
    return node.integers(name, Ints(count, missing));
  };
  b.strides = read("strides", axes, 1);
  b.pads = read("pads", 2 * axes, 0);
  b.dilations = read("dilations", axes, 1);
  const auto check = [&](const char* name, const Ints& values, std::size_t count,
                         std::int64_t low) {
    bool fits = values.size() == count;
    for (std::int64_t value : values) fits = fits && value >= low && value <= limit;
    if (!fits) {
      node.fail(name, fmt::format("{} numbers from {} to 2^30", count, low),
                to_string(Shape(values)));
    }
  };
  check("image_shape", b.image, axes, 1);
  check("block_shape", b.kernel, axes, 1);
  check("strides", b.strides, axes, 1);
  check("pads", b.pads, 2 * axes, 0);
  check("dilations", b.dilations, axes, 1);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t room =
        b.image[i] + b.pads[i] + b.pads[i + axes] - (b.kernel[i] - 1) * b.dilations[i] - 1;
    b.counts.push_back(room < 0 ? 0 : room / b.strides[i] + 1);
  }
  return b;
}

/// The place in the image of every element of every block, [elements of a block, blocks]; those in
/// the padding name nothing.
std::vector<std::int64_t> places_of(const Blocks& b) {
  const std::size_t axes = b.image.size();
  const std::int64_t elements = element_count(b.kernel), blocks = element_count(b.counts);
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(elements * blocks));
  for (std::int64_t element = 0; element < elements; ++element) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      std::int64_t place = 0, stride = 1, tap = element, at = block;
      for (std::size_t i = axes; i-- > 0;) {
        const std::int64_t position =
            (at % b.counts[i]) * b.strides[i] - b.pads[i] + (tap % b.kernel[i]) * b.dilations[i];
        at /= b.counts[i];
        tap /= b.kernel[i];
        if (position < 0 || position >= b.image[i]) {
          place = std::numeric_limits<std::int64_t>::min();
          break;
        }
        place += position * stride;
        stride *= b.image[i];
      }
      places.push_back(place);
    }
  }
  return places;
}

}  // namespace

// [N, C block, blocks] to [N, C, image]
void col2im(NodeContext& node) {
  constexpr std::int64_t most = 1 << 24;
  const Shape& x = node.shape(0);
  const Blocks b = read_blocks(node);
  const auto elements = checked_elements(b.kernel, most), blocks = checked_elements(b.counts, most);
  if (!elements || !blocks || *elements * *blocks > most || !checked_elements(b.image, most)) {
    node.fail("the image is too large", "at most 2^24 elements in its blocks",
              to_string(Shape(b.image)));
  }
  if (x.size() != 3 || x[1] % *elements != 0 || x[2] != *blocks) {
    node.fail("input", fmt::format("[N, a multiple of {}, {}]", *elements, *blocks), to_string(x));
  }
  const std::int64_t channels = x[1] / *elements, places = *elements * *blocks;
  const Term rows = node.transpose(node.reshape(node.in(0), {x[0] * channels, places}), {1, 0});
  const Term image =
      node.expand(node.scalar(0, node.dtype(0)), {element_count(b.image), x[0] * channels});
  const Term sums = node.make(
      "ScatterRows", {image, node.constant(HostTensor::from({places}, places_of(b))), rows},
      {{"reduction", std::string("add")}});
  Shape shape{x[0], channels};
  shape.insert(shape.end(), b.image.begin(), b.image.end());
  node.out(0, node.make("Reshape", {node.transpose(sums, {1, 0})}, {{"shape", shape}}));
}

}  // namespace tandem::importer::operators
