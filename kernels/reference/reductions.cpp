// Reductions of every element type: for each result, one pass over what it is made of.
#include <algorithm>

#include "kernels/reference/network_support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

/// The results of a reduction, and the elements that go into one of them.
struct ReductionWalk {
  Position results;  // in y
  Position firsts;   // in x, where each result's elements begin
  Position inner;    // in x, from there
};

ReductionWalk reduction_walk(const KernelRequest& request) {
  const Operand& x = request.inputs[0];
  const Ints& axes = request.attributes().integers("axes");
  Shape kept, reduced;
  Ints kept_strides, reduced_strides, y_strides;
  const bool keepdims = request.attributes().flag("keepdims");
  std::size_t y_axis = 0;
  for (std::size_t i = 0; i < x.type.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end()) {
      reduced.push_back(x.type.shape[i]);
      reduced_strides.push_back(x.layout.strides[i]);
      if (keepdims) ++y_axis;
    } else {
      kept.push_back(x.type.shape[i]);
      kept_strides.push_back(x.layout.strides[i]);
      y_strides.push_back(request.outputs[0].layout.strides[y_axis++]);
    }
  }
  return {Position(kept, y_strides), Position(kept, kept_strides),
          Position(reduced, reduced_strides)};
}

constexpr auto prepare_sum = []<class T>(const KernelRequest& request, T) {
  const bool mean = request.node->op->reducer == Reducer::mean;
  return prepared([mean, w = reduction_walk(request)](const KernelArguments& arguments) mutable {
    const T* x = static_cast<const T*>(arguments.inputs[0]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < w.results.count(); ++i) {
      Accumulator<T> sum = 0;
      for (std::int64_t k = 0; k < w.inner.count(); ++k, w.inner.next()) {
        sum += widened(x[w.firsts.at() + w.inner.at()]);
      }
      if constexpr (std::is_same_v<Accumulator<T>, double>) {
        if (mean) sum /= static_cast<double>(w.inner.count());
      } else if (mean) {
        const auto total = static_cast<std::int64_t>(sum);
        sum = static_cast<std::uint64_t>(scalar::div(total, w.inner.count()));
      }
      y[w.results.at()] = narrowed<T>(sum);
      w.results.next();
      w.firsts.next();
    }
  });
};

/// Floating-point products in double, those of integers wrap around.
constexpr auto prepare_prod = []<class T>(const KernelRequest& request, T) {
  return prepared([w = reduction_walk(request)](const KernelArguments& arguments) mutable {
    const T* x = static_cast<const T*>(arguments.inputs[0]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < w.results.count(); ++i) {
      Accumulator<T> product = 1;
      for (std::int64_t k = 0; k < w.inner.count(); ++k, w.inner.next()) {
        product *= widened(x[w.firsts.at() + w.inner.at()]);
      }
      y[w.results.at()] = narrowed<T>(product);
      w.results.next();
      w.firsts.next();
    }
  });
};

constexpr auto prepare_max = []<class T>(const KernelRequest& request, T) {
  return prepared([w = reduction_walk(request)](const KernelArguments& arguments) mutable {
    using C = Computed<T>;
    using Limits = std::numeric_limits<C>;
    const T* x = static_cast<const T*>(arguments.inputs[0]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < w.results.count(); ++i) {
      C largest = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
      for (std::int64_t k = 0; k < w.inner.count(); ++k, w.inner.next()) {
        largest = scalar::maximum(largest, static_cast<C>(x[w.firsts.at() + w.inner.at()]));
      }
      y[w.results.at()] = stored<T>(largest);
      w.results.next();
      w.firsts.next();
    }
  });
};

constexpr auto prepare_sum_of_squares = []<class T>(const KernelRequest& request, T) {
  return prepared([x_walk = walk(request.inputs[0])](const KernelArguments& arguments) mutable {
    const T* x = static_cast<const T*>(arguments.inputs[0]);
    double sum = 0;
    for (std::int64_t i = 0; i < x_walk.count(); ++i, x_walk.next()) {
      const double value = widened(x[x_walk.at()]);
      sum += value * value;
    }
    *static_cast<float*>(arguments.outputs[0]) = static_cast<float>(sum);
  });
};

}  // namespace

void add_reductions(KernelList& list) {
  list.push_back(number_kernel("reference.reduce_sum", "ReduceSum", prepare_sum));
  list.push_back(number_kernel("reference.reduce_mean", "ReduceMean", prepare_sum));
  list.push_back(number_kernel("reference.reduce_prod", "ReduceProd", prepare_prod));
  list.push_back(number_kernel("reference.reduce_max", "ReduceMax", prepare_max));
  list.push_back(
      any_float_kernel("reference.sum_of_squares", "SumOfSquares", prepare_sum_of_squares));
}

}  // namespace tandem::reference
