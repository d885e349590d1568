// Element by element with broadcasting: one loop for all scalar functions of one element type.
#pragma once

#include "kernels/reference/scalar_apply.h"
#include "kernels/reference/support.h"

namespace tandem::reference {

/// y = f(a) or f(a, b); T is the type of the inputs, R the type of the result.
template <class T, class R>
std::unique_ptr<PreparedKernel> prepare_function(const KernelRequest& request) {
  const ScalarFunction f = request.node->op->scalar;
  const scalar::Settings settings = scalar::settings_of(*request.node);
  const Shape& shape = request.outputs[0].type.shape;
  const bool binary = request.inputs.size() > 1;
  return prepared([f, settings, binary, y_walk = walk(request.outputs[0]),
                   a_walk = walk_broadcast(request.inputs[0], shape),
                   b_walk = walk_broadcast(request.inputs[binary ? 1 : 0], shape)](
                      const KernelArguments& arguments) mutable {
    using C = Computed<T>;
    const T* a = static_cast<const T*>(arguments.inputs[0]);
    const T* b = static_cast<const T*>(arguments.inputs[binary ? 1 : 0]);
    R* y = static_cast<R*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < y_walk.count(); ++i) {
      const C left = a[a_walk.at()], right = b[b_walk.at()];
      if constexpr (std::is_same_v<R, bool>) {
        y[y_walk.at()] = scalar::apply_predicate<C>(f, settings, left, right);
      } else {
        y[y_walk.at()] = stored<R>(scalar::apply<C>(f, settings, left, right));
      }
      a_walk.next();
      b_walk.next();
      y_walk.next();
    }
  });
}

template <class T>
std::unique_ptr<PreparedKernel> prepare_scalar(const KernelRequest& request) {
  if (is_predicate(request.node->op->scalar)) return prepare_function<T, bool>(request);
  if constexpr (std::is_same_v<T, bool>) {
    assert(false && "no arithmetic on bool");
    return nullptr;
  } else {
    return prepare_function<T, T>(request);
  }
}

/// T is the type of the base, E that of the exponent.
template <class T, class E>
std::unique_ptr<PreparedKernel> prepare_power(const KernelRequest& request) {
  const Shape& shape = request.outputs[0].type.shape;
  return prepared(
      [y_walk = walk(request.outputs[0]), a_walk = walk_broadcast(request.inputs[0], shape),
       b_walk =
           walk_broadcast(request.inputs[1], shape)](const KernelArguments& arguments) mutable {
        const T* a = static_cast<const T*>(arguments.inputs[0]);
        const E* b = static_cast<const E*>(arguments.inputs[1]);
        T* y = static_cast<T*>(arguments.outputs[0]);
        for (std::int64_t i = 0; i < y_walk.count(); ++i) {
          const Computed<T> base = a[a_walk.at()];
          const Computed<E> exponent = b[b_walk.at()];
          y[y_walk.at()] = stored<T>(scalar::pow(base, exponent));
          a_walk.next();
          b_walk.next();
          y_walk.next();
        }
      });
}

}  // namespace tandem::reference
