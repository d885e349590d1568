// Which initializers are weights of few bits that stay packed in the graph.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "onnx/onnx_pb.h"

namespace tandem {

namespace importer {

/// A product as quantize_dynamic writes it, y = x W with W of 8 bits: DynamicQuantizeLinear,
/// MatMulInteger, Cast, Mul by the product of both scales.
struct DynamicProduct {
  std::string x, weight, scale, zero_point;  // zero_point: "" if none
};

struct PackedWeights {
  /// The bytes: MatMulNBits, MatMulBnb4, GatherBlockQuantized, DequantizeLinear in front of a
  /// product or a lookup.
  std::unordered_map<std::string, std::int32_t> data;  // value: the element type in the file
  std::unordered_set<std::string> scales;
  std::unordered_map<std::string, DynamicProduct> products;  // by the name of y
};

/// The name that the weight had before a tool packed it: "fc.weight" of "fc.weight_Q4".
std::string without_quantizers_ending(const std::string& name);

/// Looks at initializers of the main graph.
PackedWeights find_packed_weights(const onnx::ModelProto& model);

}  // namespace importer
}  // namespace tandem
