// LayerNormalization and its gradient: a "row" is all normalised axes at one index of the axes
// before.
#include <cmath>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

/// The elements of an operand with x's shape by (row, index in the row).
class NormalizedRows {
 public:
  NormalizedRows(const Operand& operand, std::int64_t axis)
      : row_(Places(operand).only(0, static_cast<std::size_t>(axis))),
        element_(Places(operand).only(static_cast<std::size_t>(axis), operand.type.rank())) {}
  std::int64_t rows() const { return row_.count(); }
  std::int64_t elements() const { return element_.count(); }
  std::int64_t operator()(std::int64_t row, std::int64_t element) const {
    return row_(row) + element_(element);
  }

 private:
  Places row_, element_;
};

constexpr auto layer_normalization_forward = []<class T>(const KernelRequest& r, T) {
  const std::int64_t axis = r.attributes().integer("axis");
  const NormalizedRows x(r.inputs[0], axis), y(r.outputs[0], axis);
  const Reader scale(r.inputs[1]);
  const bool has_bias = r.is_present(2);
  const Reader bias = has_bias ? Reader(r.inputs[2]) : Reader();
  const Writer mean_out(r.outputs[1]), rstd_out(r.outputs[2]);
  const double epsilon = r.attributes().number("epsilon");
  return prepared([=](const KernelArguments& a) {
    const T* xs = static_cast<const T*>(a.inputs[0]);
    T* ys = static_cast<T*>(a.outputs[0]);
    const auto count = static_cast<double>(x.elements());
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < x.elements(); ++i) sum += static_cast<double>(xs[x(row, i)]);
      const double mean = sum / count;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const double centred = static_cast<double>(xs[x(row, i)]) - mean;
        squares += centred * centred;
      }
      const double rstd = 1 / std::sqrt(squares / count + epsilon);
      mean_out(a.outputs[1], row, mean);
      rstd_out(a.outputs[2], row, rstd);
      if (ys == nullptr) continue;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const double normalized = (static_cast<double>(xs[x(row, i)]) - mean) * rstd;
        const double shift = has_bias ? bias.number(a.inputs[2], i) : 0.0;
        ys[y(row, i)] = rounded<T>(normalized * scale.number(a.inputs[1], i) + shift);
      }
    }
  });
};

constexpr auto layer_normalization_gradient = []<class T>(const KernelRequest& r, T) {
  const std::int64_t axis = r.attributes().integer("axis");
  const NormalizedRows dy(r.inputs[0], axis), x(r.inputs[1], axis), dx(r.outputs[0], axis);
  const Reader scale(r.inputs[2]), mean(r.inputs[3]), rstd(r.inputs[4]);
  const Writer dscale(r.outputs[1]), dbias(r.outputs[2]);
  return prepared([=](const KernelArguments& a) {
    const T* dys = static_cast<const T*>(a.inputs[0]);
    const T* xs = static_cast<const T*>(a.inputs[1]);
    T* dxs = static_cast<T*>(a.outputs[0]);
    const auto count = static_cast<double>(x.elements());
    const auto dy_at = [&](std::int64_t row, std::int64_t i) {
      return static_cast<double>(dys[dy(row, i)]);
    };
    const auto normalized = [&](std::int64_t row, std::int64_t i) {
      return (static_cast<double>(xs[x(row, i)]) - mean.number(a.inputs[3], row)) *
             rstd.number(a.inputs[4], row);
    };
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      double sum_dy_n = 0, sum_dy = 0;
      for (std::int64_t row = 0; row < x.rows(); ++row) {
        sum_dy_n += dy_at(row, i) * normalized(row, i);
        sum_dy += dy_at(row, i);
      }
      dscale(a.outputs[1], i, sum_dy_n);
      dbias(a.outputs[2], i, sum_dy);
    }
    if (dxs == nullptr) return;
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      double sum_g = 0, sum_g_n = 0;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const double g = dy_at(row, i) * scale.number(a.inputs[2], i);
        sum_g += g;
        sum_g_n += g * normalized(row, i);
      }
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const double g = dy_at(row, i) * scale.number(a.inputs[2], i);
        dxs[dx(row, i)] = rounded<T>(rstd.number(a.inputs[4], row) *
                                     (g - sum_g / count - normalized(row, i) * sum_g_n / count));
      }
    }
  });
};

}  // namespace

void add_layer_normalization(KernelList& list) {
  list.push_back(any_float_kernel("reference.layer_normalization", "LayerNormalization",
                                  layer_normalization_forward));
  list.push_back(float_kernel("reference.layer_normalization_grad", "LayerNormalizationGrad",
                              layer_normalization_gradient, 1));
}

}  // namespace tandem::reference
