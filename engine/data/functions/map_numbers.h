// The loop of functions of numbers over an array: in double, rounded once to what is stored.
#pragma once

#include <cstdint>

#include "engine/data/functions/field_function.h"

// Loops vectorise only with this.
#pragma GCC push_options
#pragma GCC optimize("O3")

namespace tandem::functions {

/// Many bytes, such as pixels, go through a table of all 256.
template <class T, class To, class F>
void map_values(const T* x, std::int64_t count, To* y, F f) {
  constexpr std::int64_t are_many = 1024;
  if constexpr (sizeof(T) == 1) {
    if (count >= are_many) {
      To table[256];
      for (int byte = 0; byte < 256; ++byte)
        table[byte] = static_cast<To>(f(number_at(static_cast<T>(byte))));
      for (std::int64_t i = 0; i < count; ++i) y[i] = table[static_cast<std::uint8_t>(x[i])];
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<To>(f(number_at(x[i])));
}

/// Elements from `first` on, `count` of them; the result is of float32 or float64.
template <class F>
void map_numbers(const SampleArray& sample, std::int64_t first, std::int64_t count, F f) {
  with_type(sample.type.dtype, [&](auto zero) {
    const auto* x = sample.as<decltype(zero)>() + first;
    if (sample.result_type.dtype == DType::float64)
      map_values(x, count, sample.to<double>() + first, f);
    else
      map_values(x, count, sample.to<float>() + first, f);
  });
}

}  // namespace tandem::functions

#pragma GCC pop_options
