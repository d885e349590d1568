// Element by element with broadcasting: scalar operators, Where and Cast in every type.
#include "kernels/reference/scalar_apply.h"
#include "kernels/reference/scalar_operators.h"
#include "kernels/reference/support.h"

namespace tandem::reference {
namespace {

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

std::optional<std::string> refuse_function(const KernelRequest& request) {
  const DType dtype = request.inputs[0].type.dtype;
  if (takes(types_of(request.node->op->scalar), dtype)) return std::nullopt;
  return refused_type(dtype);
}

std::unique_ptr<PreparedKernel> function(const KernelRequest& request) {
  return with_type(request.inputs[0].type.dtype,
                   [&](auto tag) { return prepare_scalar<decltype(tag)>(request); });
}

std::optional<std::string> refuse_power(const KernelRequest& request) {
  for (const Operand& input : request.inputs) {
    if (input.type.dtype == DType::boolean) return refused_type(DType::boolean);
  }
  return std::nullopt;
}

std::unique_ptr<PreparedKernel> power(const KernelRequest& request) {
  constexpr auto numbers = wide_floats + half_floats + integer_types;
  return with_type(numbers, request.inputs[0].type.dtype, [&](auto base) {
    return with_type(numbers, request.inputs[1].type.dtype, [&](auto exponent) {
      return prepare_power<decltype(base), decltype(exponent)>(request);
    });
  });
}

// A choice between elements, whatever they are.
std::unique_ptr<PreparedKernel> where(const KernelRequest& request) {
  const Shape& shape = request.outputs[0].type.shape;
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  return prepared(
      [size, z_walk = walk(request.outputs[0]), c_walk = walk_broadcast(request.inputs[0], shape),
       x_walk = walk_broadcast(request.inputs[1], shape),
       y_walk =
           walk_broadcast(request.inputs[2], shape)](const KernelArguments& arguments) mutable {
        const bool* condition = static_cast<const bool*>(arguments.inputs[0]);
        const char* x = static_cast<const char*>(arguments.inputs[1]);
        const char* y = static_cast<const char*>(arguments.inputs[2]);
        char* z = static_cast<char*>(arguments.outputs[0]);
        const auto bytes = static_cast<std::int64_t>(size);
        for (std::int64_t i = 0; i < z_walk.count(); ++i) {
          const char* chosen =
              condition[c_walk.at()] ? x + x_walk.at() * bytes : y + y_walk.at() * bytes;
          std::memcpy(z + z_walk.at() * bytes, chosen, size);
          c_walk.next();
          x_walk.next();
          y_walk.next();
          z_walk.next();
        }
      });
}

template <class From, class To>
void convert(const void* x, void* y) {
  const Computed<From> value = *static_cast<const From*>(x);
  *static_cast<To*>(y) = To(scalar::cast<Computed<To>>(value));
}

using Convert = void (*)(const void*, void*);

Convert conversion(DType from, DType to) {
  return with_type(from, [&](auto from_tag) {
    return with_type(
        to, [&](auto to_tag) -> Convert { return convert<decltype(from_tag), decltype(to_tag)>; });
  });
}

std::unique_ptr<PreparedKernel> cast(const KernelRequest& request) {
  const DType from = request.inputs[0].type.dtype, to = request.outputs[0].type.dtype;
  return prepared(
      [one = conversion(from, to), from_bytes = static_cast<std::int64_t>(size_of(from)),
       to_bytes = static_cast<std::int64_t>(size_of(to)), x_walk = walk(request.inputs[0]),
       y_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
        const char* x = static_cast<const char*>(arguments.inputs[0]);
        char* y = static_cast<char*>(arguments.outputs[0]);
        for (std::int64_t i = 0; i < y_walk.count(); ++i) {
          one(x + x_walk.at() * from_bytes, y + y_walk.at() * to_bytes);
          x_walk.next();
          y_walk.next();
        }
      });
}

}  // namespace

void add_elementwise(KernelList& list) {
  for_each_scalar_operator([&](const Operator& op) {
    if (types_of(op.scalar) == ScalarTypes::own) return;
    list.push_back(reference_kernel(kernel_name(op.name), op.name, refuse_function, function));
  });
  list.push_back(reference_kernel("pow", "Pow", refuse_power, power));
  list.push_back(reference_kernel("where", "Where", refuse_nothing, where));
  list.push_back(reference_kernel("cast", "Cast", refuse_nothing, cast));
}

}  // namespace tandem::reference
