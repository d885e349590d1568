// A graph of operations as the fake cuDNN understands it, and its arithmetic.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem::testing {

struct FakeTensor {
  std::int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> extents, strides;
  bool is_virtual = false, is_by_value = false, is_tiled = false;

  std::int64_t count() const;
  std::int64_t span_elements() const;  // from the first to past the last one
};

struct FakeOperation {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  int mode = 0;   // for pointwise operations and reductions
  int axis = -1;  // for an operation that generates indices
  std::vector<std::int64_t> strides, dilations, pads_begin, pads_end;
  // Indices of tensors. Convolutions: x, weight, y, whichever of them is the result; others: a, b,
  // y.
  int x = -1, b = -1, select = -1, y = -1;

  /// The tensor that the operation writes.
  int written() const;
  std::vector<int> read() const;
};

struct FakeGraph {
  std::vector<FakeTensor> tensors;
  std::vector<FakeOperation> operations;  // each after those whose results it reads
};

std::size_t bytes_of(cudnnDataType_t type);

/// The rule about the operation's shapes and types that is broken; "" if none is.
std::string shape_problem(const FakeGraph& graph, const FakeOperation& operation);

/// Computes all operations in double and rounds every tensor to its type. `addresses` are those of
/// the tensors in memory, by index. With `tensor_cores` float32 operands of products have 10 bits
/// of mantissa. Returns what cannot be computed, or "".
std::string compute(const FakeGraph& graph, const std::map<int, void*>& addresses,
                    const std::map<int, double>& numbers, bool tensor_cores);

}  // namespace tandem::testing
