// Convolutions, products, reductions and pointwise operations by their definitions, in double.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <unordered_map>

#include "engine/graph/half.h"
#include "tests/cuda/support/fake_cudnn_graph.h"

namespace tandem::testing {
namespace {

using Extents = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

/// Calls f(index, place) for all elements in row-major order.
template <class F>
void for_elements(const Extents& extents, F f) {
  const std::int64_t count =
      std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  Extents index(extents.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    f(index, i);
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < extents[k]) break;
      index[k] = 0;
    }
  }
}

std::int64_t offset_of(const Extents& index, const Extents& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0});
}

/// The row-major place of `index` in a tensor that is broadcast: axes of extent 1 stay at 0.
std::int64_t place_of(const Extents& index, const Extents& extents) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    place = place * extents[i] + (extents[i] == 1 ? 0 : index[i]);
  }
  return place;
}

double rounded(double x, cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return Float16(static_cast<float>(x));
    case CUDNN_DATA_BFLOAT16:
      return BFloat16(static_cast<float>(x));
    case CUDNN_DATA_FLOAT:
      return static_cast<float>(x);
    case CUDNN_DATA_BOOLEAN:
      return x != 0;
    default:
      return x;
  }
}

double load(const void* data, std::int64_t at, cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return static_cast<const Float16*>(data)[at];
    case CUDNN_DATA_BFLOAT16:
      return static_cast<const BFloat16*>(data)[at];
    default:
      return static_cast<const float*>(data)[at];
  }
}

void store(void* data, std::int64_t at, cudnnDataType_t type, double x) {
  switch (type) {
    case CUDNN_DATA_HALF:
      static_cast<Float16*>(data)[at] = Float16(static_cast<float>(x));
      return;
    case CUDNN_DATA_BFLOAT16:
      static_cast<BFloat16*>(data)[at] = BFloat16(static_cast<float>(x));
      return;
    default:
      static_cast<float*>(data)[at] = static_cast<float>(x);
  }
}

/// A float32 as tensor cores read it.
double shortened(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>(bits & 0xffffe000u);
}

class Computer {
 public:
  Computer(const FakeGraph& graph, bool tensor_cores)
      : graph_(graph), tensor_cores_(tensor_cores), values_(graph.tensors.size()) {}

  void set(int tensor, Numbers numbers) { values_[at(tensor)] = std::move(numbers); }
  const Numbers& get(int tensor) const { return values_[at(tensor)]; }
  const std::string& problem() const { return problem_; }

  void run(const FakeOperation& o) {
    Numbers y;
    switch (o.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        y = convolution(o);
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        y = pointwise(o);
        break;
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        y = reduction(o);
        break;
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        y = product(o);
        break;
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        y = reshape(o);
        break;
      default:
        problem_ = "the fake computes no operation of type " + std::to_string(o.type);
        return;
    }
    const FakeTensor& to = tensor(o.written());
    // A sum with an order of its own is added to what memory holds.
    if (to.is_tiled) {
      const Numbers& before = get(o.written());
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += before[i];
    }
    for (double& number : y) number = rounded(number, to.type);
    set(o.written(), std::move(y));
  }

 private:
  static std::size_t at(int tensor) { return static_cast<std::size_t>(tensor); }
  const FakeTensor& tensor(int index) const { return graph_.tensors[at(index)]; }

  /// An operand of a product, as the product reads it.
  Numbers operand(int index) const {
    Numbers numbers = get(index);
    if (tensor_cores_ && tensor(index).type == CUDNN_DATA_FLOAT) {
      for (double& number : numbers) number = shortened(number);
    }
    return numbers;
  }

  Numbers convolution(const FakeOperation& o) const {
    const FakeTensor &x = tensor(o.x), &weight = tensor(o.b), &y = tensor(o.y);
    const int written = o.written();
    Numbers result(static_cast<std::size_t>(tensor(written).count()), 0.0);
    const Numbers xs = written == o.x ? Numbers() : operand(o.x);
    const Numbers ws = written == o.b ? Numbers() : operand(o.b);
    const Numbers ys = written == o.y ? Numbers() : operand(o.y);
    const std::int64_t groups = x.extents[1] / weight.extents[1];
    const std::int64_t outputs = y.extents[1] / groups;
    Extents from(x.extents.size());
    for_elements(y.extents, [&](const Extents& to, std::int64_t y_place) {
      Extents taps = weight.extents;
      taps[0] = 1;
      for_elements(taps, [&](Extents tap, std::int64_t) {
        tap[0] = to[1];
        from[0] = to[0];
        from[1] = to[1] / outputs * weight.extents[1] + tap[1];
        for (std::size_t i = 2; i < from.size(); ++i) {
          from[i] = to[i] * o.strides[i - 2] - o.pads_begin[i - 2] + tap[i] * o.dilations[i - 2];
          if (from[i] < 0 || from[i] >= x.extents[i]) return;
        }
        const auto x_at = static_cast<std::size_t>(place_of(from, x.extents));
        const auto w_at = static_cast<std::size_t>(place_of(tap, weight.extents));
        const auto y_at = static_cast<std::size_t>(y_place);
        if (written == o.y) result[y_at] += xs[x_at] * ws[w_at];
        if (written == o.x) result[x_at] += ys[y_at] * ws[w_at];
        if (written == o.b) result[w_at] += ys[y_at] * xs[x_at];
      });
    });
    return result;
  }

  Numbers pointwise(const FakeOperation& o) {
    const FakeTensor& y = tensor(o.y);
    Numbers result(static_cast<std::size_t>(y.count()));
    const auto number = [&](int index, const Extents& place) {
      if (index < 0) return 0.0;
      return get(index)[static_cast<std::size_t>(place_of(place, tensor(index).extents))];
    };
    for_elements(y.extents, [&](const Extents& index, std::int64_t place) {
      const double a = number(o.x, index), b = number(o.b, index);
      double& to = result[static_cast<std::size_t>(place)];
      switch (o.mode) {
        case CUDNN_POINTWISE_ADD:
          to = a + b;
          break;
        case CUDNN_POINTWISE_SUB:
          to = a - b;
          break;
        case CUDNN_POINTWISE_MUL:
          to = a * b;
          break;
        case CUDNN_POINTWISE_DIV:
          to = a / b;
          break;
        case CUDNN_POINTWISE_EXP:
          to = std::exp(a);
          break;
        case CUDNN_POINTWISE_LOG:
          to = std::log(a);
          break;
        case CUDNN_POINTWISE_IDENTITY:
          to = a;
          break;
        case CUDNN_POINTWISE_RELU_FWD:
          to = a > 0 ? a : 0;
          break;
        case CUDNN_POINTWISE_GELU_FWD:
          to = 0.5 * a * (1 + std::erf(a / std::numbers::sqrt2));
          break;
        case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
          to = 0.5 * a *
               (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (a + 0.044715 * a * a * a)));
          break;
        case CUDNN_POINTWISE_CMP_GE:
          to = a >= b;
          break;
        case CUDNN_POINTWISE_GEN_INDEX:
          to = static_cast<double>(index[static_cast<std::size_t>(o.axis)]);
          break;
        case CUDNN_POINTWISE_BINARY_SELECT:
          to = number(o.select, index) != 0 ? a : b;
          break;
        default:
          problem_ = "the fake computes no pointwise mode " + std::to_string(o.mode);
      }
    });
    return result;
  }

  Numbers reduction(const FakeOperation& o) {
    const FakeTensor &x = tensor(o.x), &y = tensor(o.y);
    const bool largest = o.mode == CUDNN_REDUCE_TENSOR_MAX;
    if (!largest && o.mode != CUDNN_REDUCE_TENSOR_ADD) {
      problem_ = "the fake computes no reduction of mode " + std::to_string(o.mode);
    }
    Numbers result(static_cast<std::size_t>(y.count()),
                   largest ? -std::numeric_limits<double>::infinity() : 0.0);
    for_elements(x.extents, [&](const Extents& index, std::int64_t place) {
      double& to = result[static_cast<std::size_t>(place_of(index, y.extents))];
      const double number = get(o.x)[static_cast<std::size_t>(place)];
      to = largest ? std::max(to, number) : to + number;
    });
    return result;
  }

  Numbers product(const FakeOperation& o) const {
    const FakeTensor &a = tensor(o.x), &b = tensor(o.b), &y = tensor(o.y);
    const Numbers left = operand(o.x), right = operand(o.b);
    const std::size_t rank = y.extents.size();
    Numbers result(static_cast<std::size_t>(y.count()));
    for_elements(y.extents, [&](const Extents& index, std::int64_t place) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.extents[rank - 1]; ++k) {
        Extents l = index, r = index;
        l[rank - 1] = k;
        r[rank - 2] = k;
        sum += left[static_cast<std::size_t>(place_of(l, a.extents))] *
               right[static_cast<std::size_t>(place_of(r, b.extents))];
      }
      result[static_cast<std::size_t>(place)] = sum;
    });
    return result;
  }

  /// Keeps each element at its offset in memory.
  Numbers reshape(const FakeOperation& o) {
    const FakeTensor &x = tensor(o.x), &y = tensor(o.y);
    std::unordered_map<std::int64_t, double> by_offset;
    for_elements(x.extents, [&](const Extents& index, std::int64_t place) {
      by_offset[offset_of(index, x.strides)] = get(o.x)[static_cast<std::size_t>(place)];
    });
    Numbers result(static_cast<std::size_t>(y.count()));
    for_elements(y.extents, [&](const Extents& index, std::int64_t place) {
      const auto found = by_offset.find(offset_of(index, y.strides));
      if (found == by_offset.end()) {
        problem_ = "a reshape gives an element another offset";
      } else {
        result[static_cast<std::size_t>(place)] = found->second;
      }
    });
    return result;
  }

  const FakeGraph& graph_;
  bool tensor_cores_;
  std::vector<Numbers> values_;
  std::string problem_;
};

}  // namespace

std::size_t bytes_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

std::int64_t FakeTensor::count() const {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t FakeTensor::span_elements() const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
  return last + 1;
}

int FakeOperation::written() const {
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) return x;
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) return b;
  return y;
}

std::vector<int> FakeOperation::read() const {
  std::vector<int> all;
  for (const int index : {x, b, select, y}) {
    if (index >= 0 && index != written()) all.push_back(index);
  }
  return all;
}

std::string compute(const FakeGraph& graph, const std::map<int, void*>& addresses,
                    const std::map<int, double>& numbers, bool tensor_cores) {
  Computer computer(graph, tensor_cores);
  std::vector<bool> is_written(graph.tensors.size(), false);
  for (const FakeOperation& operation : graph.operations) {
    is_written[static_cast<std::size_t>(operation.written())] = true;
  }
  for (const auto& [index, number] : numbers) computer.set(index, {number});
  for (const auto& [index, address] : addresses) {
    const FakeTensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    if (is_written[static_cast<std::size_t>(index)] && !tensor.is_tiled) continue;
    Numbers values(static_cast<std::size_t>(tensor.count()));
    for_elements(tensor.extents, [&](const Extents& at, std::int64_t place) {
      values[static_cast<std::size_t>(place)] =
          load(address, offset_of(at, tensor.strides), tensor.type);
    });
    computer.set(index, std::move(values));
  }
  for (const FakeOperation& operation : graph.operations) {
    computer.run(operation);
    if (!computer.problem().empty()) return computer.problem();
  }
  for (const auto& [index, address] : addresses) {
    if (!is_written[static_cast<std::size_t>(index)]) continue;
    const FakeTensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    const Numbers& values = computer.get(index);
    for_elements(tensor.extents, [&](const Extents& at, std::int64_t place) {
      store(address, offset_of(at, tensor.strides), tensor.type,
            values[static_cast<std::size_t>(place)]);
    });
  }
  return "";
}

}  // namespace tandem::testing
