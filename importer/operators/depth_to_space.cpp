// DepthToSpace and SpaceToDepth: blocks of pixels as channels, by Reshape and Transpose.
#include <fmt/format.h>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

// Whether the channel is the first of [C, b, b] (mode CRD), else the last of [b, b, C] (DCR).
bool channel_is_first(NodeContext& node) {
  const std::string mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") node.fail("mode", "DCR or CRD", mode);
  return mode == "CRD";
}

std::int64_t block_size(NodeContext& node) {
  if (node.rank(0) != 4) node.fail("input", "[N, C, H, W]", to_string(node.shape(0)));
  const std::int64_t block = node.integer("blocksize");
  if (block < 1 || block > (1 << 15)) node.fail("blocksize", "1 to 2^15", std::to_string(block));
  return block;
}

}  // namespace

// [N, C b b, H, W] to [N, C, H b, W b]
void depth_to_space(NodeContext& node) {
  const std::int64_t b = block_size(node);
  const Shape& x = node.shape(0);
  if (x[1] % (b * b) != 0) {
    node.fail("channels", fmt::format("a multiple of {}", b * b), std::to_string(x[1]));
  }
  const std::int64_t c = x[1] / (b * b);
  const Term apart = channel_is_first(node)
                         ? node.transpose(node.reshape(node.in(0), {x[0], c, b, b, x[2], x[3]}),
                                          {0, 1, 4, 2, 5, 3})
                         : node.transpose(node.reshape(node.in(0), {x[0], b, b, c, x[2], x[3]}),
                                          {0, 3, 4, 1, 5, 2});
  node.out(0, node.make("Reshape", {apart}, {{"shape", Ints{x[0], c, x[2] * b, x[3] * b}}}));
}

// [N, C, H b, W b] to [N, C b b, H, W]
void space_to_depth(NodeContext& node) {
  const std::int64_t b = block_size(node);
  const Shape& x = node.shape(0);
  if (x[2] % b != 0 || x[3] % b != 0) {
    node.fail("height and width", fmt::format("multiples of {}", b), to_string(x));
  }
  const std::int64_t h = x[2] / b, w = x[3] / b;
  const Term apart =
      node.transpose(node.reshape(node.in(0), {x[0], x[1], h, b, w, b}),
                     channel_is_first(node) ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  node.out(0, node.make("Reshape", {apart}, {{"shape", Ints{x[0], x[1] * b * b, h, w}}}));
}

}  // namespace tandem::importer::operators
