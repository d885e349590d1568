#include "importer/file/added_biases.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "importer/file/moves.h"
#include "importer/paths.h"

namespace tandem::importer {
namespace {

std::int64_t integer_of(const onnx::NodeProto& node, const std::string& name,
                        std::int64_t otherwise) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return otherwise;
}

/// Columns or channels of the product with a weight of this shape; 0 where it is none.
std::int64_t product_width(const onnx::NodeProto& node, const Shape& weight) {
  const std::string& op = node.op_type();
  if (op == "MatMul") return weight.size() == 2 ? weight[1] : 0;
  if (op == "Gemm" && weight.size() == 2) return weight[integer_of(node, "transB", 0) != 0 ? 0 : 1];
  if (op == "Conv" && weight.size() > 2) return weight[0];
  if (op != "ConvTranspose" || weight.size() <= 2) return 0;
  // They divide the weight[0] input channels.
  const std::int64_t groups = integer_of(node, "group", 1);
  return groups >= 1 && groups <= weight[0] ? weight[1] * groups : 0;
}

/// Whether all elements lie along one axis, and there are `width` of them.
bool is_one_line(const Shape& shape, std::int64_t width) {
  const auto lines = std::count_if(shape.begin(), shape.end(), [](auto n) { return n != 1; });
  const auto longest = std::max_element(shape.begin(), shape.end());
  return !shape.empty() && lines <= 1 && *longest == width;
}

}  // namespace

std::unordered_set<std::string> added_biases(const OnnxFile::Content& file,
                                             const std::vector<bool>& needed) {
  const onnx::GraphProto& graph = file.model->graph();
  std::unordered_map<std::string, std::int64_t> widths;  // widths of products and of moved products
  std::unordered_set<std::string> biases;
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    if (!needed[static_cast<std::size_t>(n)] || !domain_of(node.domain()).empty() ||
        node.input_size() == 0 || node.output_size() == 0) {
      continue;
    }
    if (is_move(node) || node.op_type() == "Slice") {  // a crop; the width is compared below
      const auto moved = widths.find(node.input(0));
      if (moved != widths.end()) widths.emplace(node.output(0), std::int64_t{moved->second});
      continue;
    }
    if (node.input_size() < 2) continue;
    const auto weight = file.initializers.find(node.input(1));
    if (weight != file.initializers.end() && is_generated_name(weight->first)) {
      const std::int64_t width = product_width(node, weight->second.shape());
      if (width > 0) widths.emplace(node.output(0), width);
    }
    if (node.op_type() != "Add") continue;
    for (int i = 0; i < 2; ++i) {
      const auto product = widths.find(node.input(1 - i));
      const auto bias = file.initializers.find(node.input(i));
      if (product != widths.end() && bias != file.initializers.end() &&
          is_one_line(bias->second.shape(), product->second))
        biases.insert(node.input(i));
    }
  }
  return biases;
}

}  // namespace tandem::importer
