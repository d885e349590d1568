// What the fake cuDNN requires of an operation's operands.
#include "tests/cuda/support/fake_cudnn_graph.h"

namespace tandem::testing {
namespace {

using Extents = std::vector<std::int64_t>;

std::string text_of(const Extents& extents) {
  std::string text;
  for (std::int64_t extent : extents) text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return text + "]";
}

bool broadcasts_to(const Extents& from, const Extents& to) {
  if (from.size() != to.size()) return false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1 && from[i] != to[i]) return false;
  }
  return true;
}

std::string convolution_problem(const FakeTensor& x, const FakeTensor& weight, const FakeTensor& y,
                                const FakeOperation& o) {
  const std::size_t rank = x.extents.size(), spatial = o.strides.size();
  if (rank != spatial + 2 || weight.extents.size() != rank || y.extents.size() != rank)
    return "a convolution's tensors and its settings have other numbers of axes";
  if (spatial < 2) return "a convolution needs two spatial axes at least";
  if (y.extents[0] != x.extents[0] || y.extents[1] != weight.extents[0])
    return "a convolution's y has other images or channels";
  if (x.extents[1] % weight.extents[1] != 0) return "a convolution's channels do not divide";
  const std::int64_t groups = x.extents[1] / weight.extents[1];
  if (weight.extents[0] % groups != 0) return "a convolution's groups do not divide";
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t room = x.extents[i + 2] + o.pads_begin[i] + o.pads_end[i] -
                              (weight.extents[i + 2] - 1) * o.dilations[i] - 1;
    if (room < 0 || y.extents[i + 2] != room / o.strides[i] + 1)
      return "a convolution's y " + text_of(y.extents) + " is not what its settings give";
  }
  return "";
}

int operands_of(int mode) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_CMP_GE:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 1;
  }
}

}  // namespace

std::string shape_problem(const FakeGraph& graph, const FakeOperation& o) {
  const auto tensor = [&](int index) -> const FakeTensor& {
    return graph.tensors[static_cast<std::size_t>(index)];
  };
  const FakeTensor &x = tensor(o.x), &y = tensor(o.y);
  switch (o.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return convolution_problem(x, tensor(o.b), y, o);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
      const int given = 1 + int{o.b >= 0} + int{o.select >= 0};
      if (given != operands_of(o.mode))
        return "pointwise mode " + std::to_string(o.mode) + " has another number of operands";
      if ((o.mode == CUDNN_POINTWISE_GEN_INDEX) != (o.axis >= 0))
        return "an axis belongs to an index and to nothing else";
      for (const int operand : o.read()) {
        if (!broadcasts_to(tensor(operand).extents, y.extents))
          return "an operand " + text_of(tensor(operand).extents) + " does not broadcast to " +
                 text_of(y.extents);
      }
      return "";
    }
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return broadcasts_to(y.extents, x.extents) ? "" : "a reduction's y does not fit";
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
      const FakeTensor& b = tensor(o.b);
      const std::size_t rank = y.extents.size();
      if (rank < 3 || x.extents.size() != rank || b.extents.size() != rank)
        return "a product needs three axes at least, and the same of all operands";
      const bool fits = x.extents[rank - 1] == b.extents[rank - 2] &&
                        y.extents[rank - 2] == x.extents[rank - 2] &&
                        y.extents[rank - 1] == b.extents[rank - 1];
      if (!fits) return "a product's operands do not fit";
      for (std::size_t i = 0; i + 2 < rank; ++i) {
        if (x.extents[i] != y.extents[i] || b.extents[i] != y.extents[i])
          return "a product's batches do not fit";
      }
      return "";
    }
    default:
      return x.count() == y.count() ? "" : "a reshape has another number of elements";
  }
}

}  // namespace tandem::testing
