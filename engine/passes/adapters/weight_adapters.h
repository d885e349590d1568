// Adapters of a weight as an exported model has them: tensors, and nodes next to each product.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/host_tensor.h"

namespace tandem {

struct AdapterOperand {
  std::string_view part;  // the tensor is called WEIGHT/part
  HostTensor value;
  int rank_axis = 0;
};

struct AdapterStep {
  std::string_view op;                   // an operator that ONNX has
  std::vector<std::string_view> inputs;  // parts, outputs of steps, or "x": what the product reads
  std::string_view output;
  bool as_product = false;  // with the attributes of the product
};

/// The output of the last step, times `scale`, is added to what a product with the weight makes.
struct WeightAdapters {
  std::string weight;  // the initializer's name
  bool out_first = false;
  double scale = 1;
  bool are_inputs = false;  // inputs of the model, which include the scale and are zeros if not fed
  std::vector<AdapterOperand> operands = {};
  std::vector<AdapterStep> steps = {};

  std::string name_of(const AdapterOperand& operand) const {
    return weight + "/" + std::string(operand.part);
  }
};

}  // namespace tandem
