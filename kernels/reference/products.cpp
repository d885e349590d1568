// Matrix products, for each element of y a sum over k; and those that lowering makes: with an
// epilogue, and with the update that they feed.
#include "engine/operators/activation.h"
#include "kernels/reference/network_support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

/// An operand as a batch of matrices; absent row or column axes of 1-D operands have stride 0.
struct ProductMatrices {
  Position batch;
  std::int64_t row = 0, column = 0;
};

ProductMatrices matrices(const Operand& operand, const Shape& batch, bool has_row,
                         bool has_column) {
  Shape shape = operand.type.shape;
  Ints strides = operand.layout.strides;
  ProductMatrices result;
  if (has_column) {
    result.column = strides.back();
    shape.pop_back();
    strides.pop_back();
  }
  if (has_row) {
    result.row = strides.back();
    shape.pop_back();
    strides.pop_back();
  }
  result.batch = Position(batch, broadcast_strides(strides, shape, batch));
  return result;
}

/// The operands of y = a b, and of a further one of y's shape.
struct ProductWalk {
  ProductMatrices a, b, y, more;
  std::int64_t m = 1, n = 1, k = 1;
  bool last_is_row = false;  // where b is 1-D

  /// f(y's place, the place in `more`, index along y's last axis, sum) for every element.
  template <class T, class F>
  void run(const void* a_data, const void* b_data, F f) {
    const T* x = static_cast<const T*>(a_data);
    const T* w = static_cast<const T*>(b_data);
    for (std::int64_t matrix = 0; matrix < y.batch.count(); ++matrix) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          Accumulator<T> sum = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            sum += widened(x[a.batch.at() + i * a.row + l * a.column]) *
                   widened(w[b.batch.at() + l * b.row + j * b.column]);
          }
          f(y.batch.at() + i * y.row + j * y.column,
            more.batch.at() + i * more.row + j * more.column, last_is_row ? i : j, sum);
        }
      }
      a.batch.next();
      b.batch.next();
      y.batch.next();
      more.batch.next();
    }
  }
};

ProductWalk product_walk(const Operand& a, const Operand& b, const Operand& y,
                         const Operand& more) {
  const bool a_rows = a.type.rank() > 1, b_columns = b.type.rank() > 1;
  const Shape& shape = y.type.shape;
  const Shape batch(shape.begin(), shape.end() - (a_rows ? 1 : 0) - (b_columns ? 1 : 0));
  ProductWalk w;
  w.k = a.type.shape.back();
  if (a_rows) w.m = a.type.shape[a.type.rank() - 2];
  if (b_columns) w.n = b.type.shape.back();
  w.last_is_row = !b_columns;
  w.a = matrices(a, batch, a_rows, true);
  w.b = matrices(b, batch, true, b_columns);
  w.y = matrices(y, batch, a_rows, b_columns);
  w.more = matrices(more, batch, a_rows, b_columns);
  return w;
}

constexpr auto prepare_matmul = []<class T>(const KernelRequest& request, T) {
  const Operand& result = request.outputs[0];
  return prepared([w = product_walk(request.inputs[0], request.inputs[1], result, result)](
                      const KernelArguments& arguments) mutable {
    T* y = static_cast<T*>(arguments.outputs[0]);
    w.template run<T>(arguments.inputs[0], arguments.inputs[1],
                      [&](std::int64_t at, std::int64_t, std::int64_t, Accumulator<T> sum) {
                        y[at] = narrowed<T>(sum);
                      });
  });
};

double activated(Activation activation, double y) {
  switch (activation) {
    case Activation::relu:
      return scalar::relu(y);
    case Activation::gelu:
      return scalar::gelu(y);
    case Activation::gelu_tanh:
      return scalar::gelu_tanh(y);
    case Activation::relu_grad:  // the multiplier does it
    case Activation::none:
      break;
  }
  return y;
}

// Inputs a, b, bias?, multiplier?.
constexpr auto prepare_gemm = []<class T>(const KernelRequest& request, T) {
  const Operand& result = request.outputs[0];
  const bool has_bias = request.inputs[2].present, has_multiplier = request.inputs[3].present;
  const std::int64_t bias_stride = has_bias ? request.inputs[2].layout.strides[0] : 0;
  const double alpha = request.attributes().number("alpha");
  const Activation activation = activation_of(request.attributes());
  return prepared([=, w = product_walk(request.inputs[0], request.inputs[1], result,
                                       has_multiplier ? request.inputs[3] : result)](
                      const KernelArguments& arguments) mutable {
    const T* bias = static_cast<const T*>(arguments.inputs[2]);
    const T* multiplier = static_cast<const T*>(arguments.inputs[3]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    w.template run<T>(arguments.inputs[0], arguments.inputs[1],
                      [&](std::int64_t at, std::int64_t more, std::int64_t last, double sum) {
                        double value = alpha * sum;
                        if (has_bias) value += bias[last * bias_stride];
                        if (has_multiplier && multiplier[more] <= T(0)) value = 0;
                        y[at] = static_cast<T>(activated(activation, value));
                      });
  });
};

// Inputs master, a, b, lr; the output is master's storage.
constexpr auto prepare_gemm_sgd = []<class T>(const KernelRequest& request, T) {
  const double alpha = request.attributes().number("alpha");
  return prepared(
      [alpha, w = product_walk(request.inputs[1], request.inputs[2], request.outputs[0],
                               request.inputs[0])](const KernelArguments& arguments) mutable {
        const T* master = static_cast<const T*>(arguments.inputs[0]);
        const double rate = alpha * *static_cast<const float*>(arguments.inputs[3]);
        T* y = static_cast<T*>(arguments.outputs[0]);
        w.template run<T>(arguments.inputs[1], arguments.inputs[2],
                          [&](std::int64_t at, std::int64_t old, std::int64_t, double sum) {
                            y[at] = static_cast<T>(master[old] - rate * sum);
                          });
      });
};

}  // namespace

void add_products(KernelList& list) {
  list.push_back(number_kernel("reference.matmul", "MatMul", prepare_matmul));
  list.push_back(float_kernel("reference.gemm", "Gemm", prepare_gemm));
  list.push_back(float_kernel("reference.gemm_sgd", "GemmSgd", prepare_gemm_sgd));
}

}  // namespace tandem::reference
