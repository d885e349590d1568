// Reductions of every element type: for each result, one pass over what it is made of.
#include <algorithm>

#include "kernels/reference/network_support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

/// The results of a reduction, and the elements that go into one of them.
struct ReductionWalk {
  Position results;  // places of y's elements
  Position firsts;   // places in x where each result's elements begin
  Position inner;    // places in x relative to `firsts`
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

/// Each y = finish(so_far, count): so_far starts as `begin` and takes add(so_far, x) for the
/// `count` elements that go into the result.
template <class T, class A, class Add, class Finish>
std::unique_ptr<PreparedKernel> reduction_of(const KernelRequest& request, A begin, Add add,
                                             Finish finish) {
  return prepared([=, w = reduction_walk(request)](const KernelArguments& arguments) mutable {
    const T* x = static_cast<const T*>(arguments.inputs[0]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < w.results.count(); ++i) {
      A so_far = begin;
      for (std::int64_t k = 0; k < w.inner.count(); ++k, w.inner.next()) {
        add(so_far, x[w.firsts.at() + w.inner.at()]);
      }
      y[w.results.at()] = finish(so_far, w.inner.count());
      w.results.next();
      w.firsts.next();
    }
  });
}

constexpr auto prepare_sum = []<class T>(const KernelRequest& request, T) {
  using A = Accumulator<T>;
  const bool mean = request.node->op->reducer == Reducer::mean;
  const auto finish = [mean](A sum, std::int64_t count) {
    if constexpr (std::is_same_v<A, double>) {
      if (mean) sum /= static_cast<double>(count);
    } else if (mean) {
      sum = static_cast<std::uint64_t>(scalar::div(static_cast<std::int64_t>(sum), count));
    }
    return narrowed<T>(sum);
  };
  return reduction_of<T>(
      request, A(0), [](A& sum, T x) { sum += widened(x); }, finish);
};

/// Floating-point products in double, those of integers wrap around.
constexpr auto prepare_prod = []<class T>(const KernelRequest& request, T) {
  using A = Accumulator<T>;
  return reduction_of<T>(
      request, A(1), [](A& product, T x) { product *= widened(x); },
      [](A product, std::int64_t) { return narrowed<T>(product); });
};

constexpr auto prepare_max = []<class T>(const KernelRequest& request, T) {
  using C = Computed<T>;
  using Limits = std::numeric_limits<C>;
  const C least = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
  return reduction_of<T>(
      request, least,
      [](C& largest, T x) { largest = scalar::maximum(largest, static_cast<C>(x)); },
      [](C largest, std::int64_t) { return stored<T>(largest); });
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
