// Det by elimination with the largest pivot of each column, and its gradient by cofactors.
#include <algorithm>
#include <cmath>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

// m [n, n] is overwritten.
double determinant(std::vector<double>& m, std::size_t n) {
  double result = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      for (std::size_t j = 0; j < n; ++j) std::swap(m[k * n + j], m[pivot * n + j]);
      result = -result;
    }
    const double divisor = m[k * n + k];
    result *= divisor;
    if (divisor == 0) return 0;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / divisor;
      for (std::size_t j = k + 1; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return result;
}

constexpr auto det_forward = []<class T>(const KernelRequest& r, T) {
  const auto n = static_cast<std::size_t>(r.inputs[0].type.shape.back());
  return prepared([x = Places(r.inputs[0]), y = Places(r.outputs[0]), n,
                   m = std::vector<double>(n * n)](const KernelArguments& a) mutable {
    const T* from = static_cast<const T*>(a.inputs[0]);
    for (std::int64_t i = 0; i < y.count(); ++i) {
      for (std::size_t k = 0; k < n * n; ++k) {
        m[k] = static_cast<double>(
            from[x(i * static_cast<std::int64_t>(n * n) + static_cast<std::int64_t>(k))]);
      }
      static_cast<T*>(a.outputs[0])[y(i)] = rounded<T>(determinant(m, n));
    }
  });
};

constexpr auto det_gradient = []<class T>(const KernelRequest& r, T) {
  const auto n = static_cast<std::size_t>(r.inputs[1].type.shape.back());
  const std::size_t less = n > 0 ? n - 1 : 0;
  return prepared([dy = Places(r.inputs[0]), x = Places(r.inputs[1]), dx = Places(r.outputs[0]), n,
                   less, m = std::vector<double>(less * less)](const KernelArguments& a) mutable {
    const T* from = static_cast<const T*>(a.inputs[1]);
    const auto size = static_cast<std::int64_t>(n * n);
    for (std::int64_t i = 0; i < dy.count(); ++i) {
      const double slope = static_cast<double>(static_cast<const T*>(a.inputs[0])[dy(i)]);
      for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
          std::size_t next = 0;
          for (std::size_t p = 0; p < n; ++p) {
            for (std::size_t q = 0; q < n; ++q) {
              if (p == row || q == column) continue;
              m[next++] =
                  static_cast<double>(from[x(i * size + static_cast<std::int64_t>(p * n + q))]);
            }
          }
          const double sign = (row + column) % 2 == 0 ? 1 : -1;
          static_cast<T*>(
              a.outputs[0])[dx(i * size + static_cast<std::int64_t>(row * n + column))] =
              rounded<T>(slope * sign * determinant(m, less));
        }
      }
    }
  });
};

}  // namespace

void add_det(KernelList& list) {
  list.push_back(any_float_kernel("reference.det", "Det", det_forward));
  list.push_back(any_float_kernel("reference.det_grad", "DetGrad", det_gradient));
}

}  // namespace tandem::reference
