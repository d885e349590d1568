// Casts that networks need, and Where, by units of several elements.
#include "kernels/cuda/pointwise/pointwise_kernel.h"
#include "kernels/cuda/pointwise/words.h"

namespace tandem::cuda {
namespace {

template <class From, class To>
struct WideCast {
  static constexpr const char* name = "cast_units";
  static constexpr int width = sizeof(From) <= 2 && sizeof(To) <= 2 ? 8 : 4;

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    From x[count];
    To y[count];
    read(x, p.inputs[0], at[0], p.space.inner[0]);
    for (int i = 0; i < count; ++i) {
      y[i] = stored<To>(scalar::cast<ComputedType<To>>(widened(x[i])));
    }
    write(p.output, at[3], y);
  }
};

template <class T, bool wide>
struct Choice {
  static constexpr const char* name = wide ? "where_units" : "where";
  static constexpr int width = !wide ? 1 : sizeof(T) <= 2 ? 8 : 4;

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    bool condition[count];
    T x[count], y[count];
    read(condition, p.inputs[0], at[0], p.space.inner[0]);
    read(x, p.inputs[1], at[1], p.space.inner[1]);
    read(y, p.inputs[2], at[2], p.space.inner[2]);
    for (int i = 0; i < count; ++i) y[i] = condition[i] ? x[i] : y[i];
    write(p.output, at[3], y);
  }
};

}  // namespace

PointwiseVariant wide_cast(DType from, DType to) {
  const auto floats = [to](auto tag) -> PointwiseVariant {
    using From = decltype(tag);
    if (to == DType::float32) return variant_of<WideCast<From, float>>();
    if (to == DType::float16) return variant_of<WideCast<From, GpuFloat16>>();
    if (to == DType::bfloat16) return variant_of<WideCast<From, GpuBFloat16>>();
    return {};
  };
  switch (from) {
    case DType::float32:
      return to == DType::boolean ? variant_of<WideCast<float, bool>>() : floats(float{});
    case DType::float16:
      return floats(GpuFloat16{});
    case DType::bfloat16:
      return floats(GpuBFloat16{});
    case DType::uint8:
      return floats(std::uint8_t{});
    case DType::boolean:
      return floats(bool{});
    case DType::int32:
      return to == DType::float32 ? variant_of<WideCast<std::int32_t, float>>()
                                  : PointwiseVariant{};
    case DType::int64:
      return to == DType::float32 ? variant_of<WideCast<std::int64_t, float>>()
             : to == DType::int32 ? variant_of<WideCast<std::int64_t, std::int32_t>>()
                                  : PointwiseVariant{};
    default:
      return {};
  }
}

PointwiseVariant choice(std::size_t bytes, bool wide) {
  return with_size(bytes, [wide](auto tag) {
    using T = decltype(tag);
    return wide ? variant_of<Choice<T, true>>() : variant_of<Choice<T, false>>();
  });
}

}  // namespace tandem::cuda
