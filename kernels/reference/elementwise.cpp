// Scalar operators in float and double; Where and Cast in every type.
#include "kernels/reference/elementwise.h"

#include "kernels/reference/scalar_operators.h"

namespace tandem::reference {
namespace {

std::unique_ptr<PreparedKernel> function(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_scalar<decltype(tag)>(request); });
}

std::optional<std::string> refuse_power(const KernelRequest& request) {
  if (auto reason = refuse_other_types<0>(request)) return reason;
  return refuse_other_types<1>(request);
}

std::unique_ptr<PreparedKernel> power(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype, [&](auto base) {
    return with_main_type(request.inputs[1].type.dtype, [&](auto exponent) {
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
    const ScalarTypes types = types_of(op.scalar);
    if (types == ScalarTypes::own || !takes(types, DType::float32)) return;
    list.push_back(
        reference_kernel(kernel_name(op.name), op.name, refuse_other_types<0>, function));
  });
  list.push_back(reference_kernel("pow", "Pow", refuse_power, power));
  list.push_back(reference_kernel("where", "Where", refuse_nothing, where));
  list.push_back(reference_kernel("cast", "Cast", refuse_nothing, cast));
}

}  // namespace tandem::reference
