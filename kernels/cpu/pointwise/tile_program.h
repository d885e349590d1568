// Scalar operators compiled to a short list of vector steps over tiles of 1,024 elements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/pointwise/vector_functions.h"

namespace tandem {

constexpr std::int64_t tile_elements = 1024;

/// Operands are places in one table of addresses: inputs, then outputs, then registers.
struct TileStep {
  TileOp op = TileOp::copy;
  int y = 0, a = 0, b = 0, c = 0;
  float s = 0, t = 0;
};

struct TileReduction {
  enum class Kind { sum, mean, maximum } kind = Kind::sum;
  int source = 0;          // place that holds the tile to reduce
  int output = 0;          // which output gets the result
  std::vector<char> axes;  // per axis of the index space
};

struct TileProgram {
  Shape space;  // the index space of all steps
  std::vector<TileStep> steps;
  int inputs = 0, outputs = 0;
  int registers = 0;                             // tiles of float32
  std::vector<std::pair<int, float>> constants;  // register, number: filled once
  std::vector<char> input_used;
  std::vector<char> output_direct;  // steps write this output; else it is reduced or not there
  std::optional<TileReduction> reduction;
  double cost = 0;  // rough nanoseconds per 1,024 elements

  int place_of_output(int i) const { return inputs + i; }
  int place_of_register(int i) const { return inputs + outputs + i; }
};

/// Compiles the body of a Fused node, a single scalar operator, a ReduceSum, ReduceMean or
/// ReduceMax, or SumOfSquares. A reason where it cannot.
std::optional<std::string> compile_tiles(const KernelRequest& request, TileProgram& program);

}  // namespace tandem
