// Scalar functions, Where and Cast over element types that tiles of float32 do not hold: integers,
// bool and float64. A loop for each function and type runs over elements that lie side by side;
// others come and go through a buffer.
#include <algorithm>
#include <vector>

#include "engine/graph/dtype_dispatch.h"
#include "engine/graph/size_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/fused.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/strided.h"
#include "kernels/reference/scalar_apply.h"
#include "kernels/reference/scalar_operators.h"
#include "kernels/reference/support.h"

namespace tandem {
namespace {

constexpr std::int64_t piece_elements = 512;  // elements in one call of a loop
constexpr std::size_t most_operands = 4;      // the result, then up to three inputs

struct TypedCall {
  const void* inputs[most_operands - 1];
  void* y;
  std::int64_t n;
  scalar::Settings settings;
};
using TypedLoop = void (*)(const TypedCall&);

template <ScalarFunction f, class T>
void function_loop(const TypedCall& call) {
  using Result = std::conditional_t<is_predicate(f), bool, T>;
  const T* a = static_cast<const T*>(call.inputs[0]);
  Result* y = static_cast<Result*>(call.y);
  const scalar::Settings settings = call.settings;
  const std::int64_t n = call.n;
  if constexpr (is_binary(f)) {
    const T* b = static_cast<const T*>(call.inputs[1]);
    for (std::int64_t i = 0; i < n; ++i) y[i] = scalar::apply_known<f>(settings, a[i], b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = scalar::apply_known<f>(settings, a[i]);
  }
}

// Tiles cover functions that take only bools. Among those that take only floats, float64 has a loop
// where they are predicates: the others are calls of libraries, which take most of the time anyway.
template <class T>
constexpr bool has_loop(ScalarFunction f) {
  constexpr bool is_bool = std::is_same_v<T, bool>;
  switch (types_of(f)) {
    case ScalarTypes::any:
      return true;
    case ScalarTypes::numbers:
      return !is_bool;
    case ScalarTypes::integers:
      return std::is_integral_v<T> && !is_bool;
    case ScalarTypes::floats:
      return std::is_floating_point_v<T> && is_predicate(f);
    case ScalarTypes::booleans:
    case ScalarTypes::own:
      break;
  }
  return false;
}

template <class T>
TypedLoop function_loop_of(ScalarFunction f) {
  switch (f) {
#define TANDEM_FUNCTION(function, ...)                   \
  case ScalarFunction::function:                         \
    if constexpr (has_loop<T>(ScalarFunction::function)) \
      return function_loop<ScalarFunction::function, T>; \
    break;
#include "engine/operators/scalar_functions.inl"
    default:
      break;
  }
  return nullptr;
}

/// The loop of a function over a type, or null.
TypedLoop find_function_loop(ScalarFunction f, DType dtype) {
  if (dtype != DType::float64 && dtype != DType::boolean && !is_integer(dtype)) return nullptr;
  return with_type(TypeList<double, bool>{} + integer_types, dtype,
                   [f](auto tag) { return function_loop_of<decltype(tag)>(f); });
}

/// U is a type of the elements' size.
template <class U>
void where_loop(const TypedCall& call) {
  const bool* condition = static_cast<const bool*>(call.inputs[0]);
  const U* a = static_cast<const U*>(call.inputs[1]);
  const U* b = static_cast<const U*>(call.inputs[2]);
  U* y = static_cast<U*>(call.y);
  const std::int64_t n = call.n;
  for (std::int64_t i = 0; i < n; ++i) {
    const U yes = a[i], no = b[i];
    y[i] = condition[i] ? yes : no;
  }
}

template <class From, class To>
void cast_loop(const TypedCall& call) {
  using reference::Computed;
  const From* x = static_cast<const From*>(call.inputs[0]);
  To* y = static_cast<To*>(call.y);
  const std::int64_t n = call.n;
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = To(scalar::cast<Computed<To>>(static_cast<Computed<From>>(x[i])));
  }
}

/// Null where tiles convert, or where one side is of 8-bit floats.
TypedLoop find_cast_loop(DType from, DType to) {
  if (is_float8(from) || is_float8(to)) return nullptr;
  return with_type(from, [to](auto from_tag) {
    return with_type(to, [](auto to_tag) -> TypedLoop {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      constexpr auto in_tiles = []<class T>(T) {
        return std::is_same_v<T, float> || std::is_same_v<T, bool> || reference::is_half<T>;
      };
      if constexpr (in_tiles(From{}) && in_tiles(To{}))
        return nullptr;
      else
        return cast_loop<From, To>;
    });
  });
}

/// `n` elements, `stride` bytes apart, side by side.
void gather_elements(const char* from, std::int64_t stride, std::int64_t bytes, std::int64_t n,
                     void* to) {
  with_size(static_cast<std::size_t>(bytes), [&](auto tag) {
    using U = decltype(tag);
    U* y = static_cast<U*>(to);
    if (stride == 0) {
      std::fill_n(y, n, *reinterpret_cast<const U*>(from));
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) y[i] = *reinterpret_cast<const U*>(from + i * stride);
  });
}

void scatter_elements(const void* from, std::int64_t stride, std::int64_t bytes, std::int64_t n,
                      char* to) {
  with_size(static_cast<std::size_t>(bytes), [&](auto tag) {
    using U = decltype(tag);
    const U* x = static_cast<const U*>(from);
    for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<U*>(to + i * stride) = x[i];
  });
}

class TypedKernel final : public PreparedKernel {
 public:
  TypedKernel(const KernelRequest& request, TypedLoop loop, scalar::Settings settings = {})
      : loop_(loop), settings_(settings), threads_(request.facts->threads) {
    const Operand& y = request.outputs[0];
    const Shape& space = y.type.shape;
    std::vector<const Operand*> operands{&y};
    for (const Operand& x : request.inputs) operands.push_back(&x);
    count_ = operands.size();
    std::vector<StridedAxis> axes;
    for (int axis : memory_order(y.layout, space)) {
      axes.push_back({.extent = space[axis], .group = 0, .strides = {}});
      for (const Operand* operand : operands)
        axes.back().strides.push_back(strides_over(*operand, space)[axis]);
    }
    if (axes.empty()) axes.push_back({1, 0, std::vector<std::int64_t>(count_, 1)});
    axes = collapse(axes);
    length_ = axes.back().extent;
    for (std::size_t k = 0; k < count_; ++k) {
      bytes_[k] = static_cast<std::int64_t>(size_of(operands[k]->type.dtype));
      strides_[k] = length_ == 1 ? bytes_[k] : axes.back().strides[k] * bytes_[k];
      touched_ += element_count(space) * bytes_[k];
    }
    axes.pop_back();
    for (const StridedAxis& axis : axes) {
      Outer outer{axis.extent, {}};
      for (std::size_t k = 0; k < count_; ++k) outer.strides[k] = axis.strides[k] * bytes_[k];
      outer_.push_back(outer);
    }
    pieces_ = (length_ + piece_elements - 1) / piece_elements;
    units_ = pieces_;
    for (const Outer& outer : outer_) units_ *= outer.extent;
  }

  void run(const KernelArguments& arguments) noexcept override {
    parallel_ranges(threads_, units_, touched_, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) char buffers[most_operands][piece_elements * 8];
      for (std::int64_t unit = begin; unit < end; ++unit) run_piece(arguments, unit, buffers);
    });
  }

 private:
  struct Outer {
    std::int64_t extent;
    std::int64_t strides[most_operands];  // in bytes
  };

  void run_piece(const KernelArguments& arguments, std::int64_t unit,
                 char (&buffers)[most_operands][piece_elements * 8]) const {
    const std::int64_t first = unit % pieces_ * piece_elements;
    const std::int64_t n = std::min(piece_elements, length_ - first);
    std::int64_t places[most_operands];
    for (std::size_t k = 0; k < count_; ++k) places[k] = first * strides_[k];
    std::int64_t rest = unit / pieces_;
    for (auto outer = outer_.rbegin(); outer != outer_.rend(); ++outer) {
      const std::int64_t index = rest % outer->extent;
      rest /= outer->extent;
      for (std::size_t k = 0; k < count_; ++k) places[k] += index * outer->strides[k];
    }
    TypedCall call{{}, nullptr, n, settings_};
    for (std::size_t k = 1; k < count_; ++k) {
      const char* from = static_cast<const char*>(arguments.inputs[k - 1]) + places[k];
      call.inputs[k - 1] = from;
      if (strides_[k] == bytes_[k]) continue;
      gather_elements(from, strides_[k], bytes_[k], n, buffers[k]);
      call.inputs[k - 1] = buffers[k];
    }
    char* const y = static_cast<char*>(arguments.outputs[0]) + places[0];
    const bool direct = strides_[0] == bytes_[0];
    call.y = direct ? y : buffers[0];
    loop_(call);
    if (!direct) scatter_elements(buffers[0], strides_[0], bytes_[0], n, y);
  }

  TypedLoop loop_;
  scalar::Settings settings_;
  int threads_;
  std::size_t count_ = 1;     // operands; the result is the first
  std::int64_t length_ = 1;   // extent of the innermost axis
  std::int64_t pieces_ = 1;   // pieces in a row along it
  std::int64_t units_ = 1;    // pieces of all rows
  std::int64_t touched_ = 0;  // bytes
  std::int64_t bytes_[most_operands] = {}, strides_[most_operands] = {};  // along the row, in bytes
  std::vector<Outer> outer_;
};

std::vector<Proposal> propose_typed(const KernelRequest& request) {
  return {one_order(request, request.outputs[0].type.shape)};
}

std::optional<std::string> refuse_typed_function(const KernelRequest& request) {
  const DType dtype = request.inputs[0].type.dtype;
  if (find_function_loop(request.node->op->scalar, dtype) == nullptr) return refused_type(dtype);
  return std::nullopt;
}

std::unique_ptr<PreparedKernel> prepare_typed_function(const KernelRequest& request) {
  return std::make_unique<TypedKernel>(
      request, find_function_loop(request.node->op->scalar, request.inputs[0].type.dtype),
      scalar::settings_of(*request.node));
}

std::unique_ptr<PreparedKernel> prepare_typed_where(const KernelRequest& request) {
  const std::size_t bytes = size_of(request.outputs[0].type.dtype);
  return std::make_unique<TypedKernel>(
      request, with_size(bytes, [](auto tag) -> TypedLoop { return where_loop<decltype(tag)>; }));
}

std::optional<std::string> refuse_typed_cast(const KernelRequest& request) {
  const DType from = request.inputs[0].type.dtype, to = request.outputs[0].type.dtype;
  if (find_cast_loop(from, to) != nullptr) return std::nullopt;
  return refused_type(from) + " to " + std::string(name_of(to));
}

std::unique_ptr<PreparedKernel> prepare_typed_cast(const KernelRequest& request) {
  return std::make_unique<TypedKernel>(
      request, find_cast_loop(request.inputs[0].type.dtype, request.outputs[0].type.dtype));
}

}  // namespace

void add_typed_kernels(KernelList& list) {
  const auto add = [&](const std::string& op, auto refuse, auto prepare) {
    list.push_back({"cpu.typed_" + kernel_name(op), op, refuse, propose_typed, prepare});
  };
  for_each_scalar_operator([&](const Operator& op) {
    if (has_loop<std::int32_t>(op.scalar) || has_loop<double>(op.scalar)) {
      add(op.name, refuse_typed_function, prepare_typed_function);
    }
  });
  add("Where", refuse_nothing, prepare_typed_where);
  add("Cast", refuse_typed_cast, prepare_typed_cast);
}

}  // namespace tandem
