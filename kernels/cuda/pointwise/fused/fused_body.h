// A fused body as its kernel sees it: numbers that are known, functions in order, a last reduction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/device/kernel.h"

namespace tandem::cuda {

struct FusedValue {
  DType dtype = DType::float32;
  std::optional<double> number;  // the same known number everywhere
  int input = -1;                // index among the kernel's inputs
};

struct FusedStep {
  const Node* node = nullptr;
  std::vector<int> inputs;  // values
  int output = 0;
};

struct FusedReduction {
  enum class Kind : std::uint8_t { sum, mean, maximum } kind = Kind::sum;
  int source = 0;          // value
  int output = 0;          // index among the kernel's outputs
  std::vector<char> axes;  // per axis of the space: whether it is reduced
};

struct FusedBody {
  Shape space;  // index space of all steps
  std::vector<FusedValue> values;
  std::vector<FusedStep> steps;
  std::vector<int> outputs;      // the value of each output of the kernel; -1: it is reduced
  std::vector<char> input_used;  // read by a step, or handed on to an output
  std::optional<FusedReduction> reduction;
};

/// Reads the body of a Fused node; says why no kernel can be made of it.
std::optional<std::string> read_body(const KernelRequest& request, FusedBody& body);

}  // namespace tandem::cuda
