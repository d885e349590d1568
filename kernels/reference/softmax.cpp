// Softmax, LogSoftmax and their gradients along one axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

template <class T>
std::unique_ptr<PreparedKernel> softmax_forward(const KernelRequest& r, T, bool logarithm) {
  const std::int64_t axis = r.attributes().integer("axis");
  const Lines x(r.inputs[0], axis), y(r.outputs[0], axis);
  return prepared([=](const KernelArguments& a) {
    const T* xs = static_cast<const T*>(a.inputs[0]);
    T* ys = static_cast<T*>(a.outputs[0]);
    for (std::int64_t line = 0; line < x.lines(); ++line) {
      const auto x_at = [&](std::int64_t i) { return static_cast<double>(xs[x(line, i)]); };
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (std::int64_t i = 0; i < x.extent(); ++i) largest = std::max(largest, x_at(i));
      for (std::int64_t i = 0; i < x.extent(); ++i) sum += std::exp(x_at(i) - largest);
      for (std::int64_t i = 0; i < x.extent(); ++i) {
        const double value =
            logarithm ? x_at(i) - largest - std::log(sum) : std::exp(x_at(i) - largest) / sum;
        ys[y(line, i)] = rounded<T>(value);
      }
    }
  });
}

template <class T>
std::unique_ptr<PreparedKernel> softmax_gradient(const KernelRequest& r, T, bool logarithm) {
  const std::int64_t axis = r.attributes().integer("axis");
  const Lines dy(r.inputs[0], axis), y(r.inputs[1], axis), dx(r.outputs[0], axis);
  return prepared([=](const KernelArguments& a) {
    const T* dys = static_cast<const T*>(a.inputs[0]);
    const T* ys = static_cast<const T*>(a.inputs[1]);
    T* dxs = static_cast<T*>(a.outputs[0]);
    for (std::int64_t line = 0; line < dy.lines(); ++line) {
      const auto dy_at = [&](std::int64_t i) { return static_cast<double>(dys[dy(line, i)]); };
      const auto y_at = [&](std::int64_t i) { return static_cast<double>(ys[y(line, i)]); };
      double sum = 0;
      for (std::int64_t i = 0; i < dy.extent(); ++i)
        sum += logarithm ? dy_at(i) : y_at(i) * dy_at(i);
      for (std::int64_t i = 0; i < dy.extent(); ++i) {
        const double value =
            logarithm ? dy_at(i) - std::exp(y_at(i)) * sum : y_at(i) * (dy_at(i) - sum);
        dxs[dx(line, i)] = rounded<T>(value);
      }
    }
  });
}

}  // namespace

void add_softmax(KernelList& list) {
  for (const bool logarithm : {false, true}) {
    const std::string name = logarithm ? "reference.log_softmax" : "reference.softmax";
    const std::string op = logarithm ? "LogSoftmax" : "Softmax";
    list.push_back(any_float_kernel(name, op, [logarithm](const KernelRequest& r, auto tag) {
      return softmax_forward(r, tag, logarithm);
    }));
    list.push_back(
        float_kernel(name + "_grad", op + "Grad", [logarithm](const KernelRequest& r, auto tag) {
          return softmax_gradient(r, tag, logarithm);
        }));
  }
}

}  // namespace tandem::reference
