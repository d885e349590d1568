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
  int mode = 0;   // of a pointwise operation or a reduction
  int axis = -1;  // of an index
  std::vector<std::int64_t> strides, dilations, pads_begin, pads_end;
  // Indices of tensors. Convolutions: x, weight, y whichever is written; others: a, b, y.
  int x = -1, b = -1, select = -1, y = -1;

  /// The tensor that is written.
  int written() const;
  std::vector<int> read() const;
};

struct FakeGraph {
  std::vector<FakeTensor> tensors;
  std::vector<FakeOperation> operations;  // each after those whose results it reads
};

std::size_t bytes_of(cudnnDataType_t type);

/// What breaks a rule about the operation's shapes and types; "" where nothing does.
std::string shape_problem(const FakeGraph& graph, const FakeOperation& operation);

/// Computes all operations in double; every tensor is rounded to its type. `addresses` are those of
/// the tensors in memory by index. With `tensor_cores` the operands of products have 10 bits of
/// mantissa where they are float32. Returns what it cannot compute, or "".
std::string compute(const FakeGraph& graph, const std::map<int, void*>& addresses,
                    const std::map<int, double>& numbers, bool tensor_cores);

}  // namespace tandem::testing
