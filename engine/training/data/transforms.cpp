#include "engine/training/data/transforms.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "engine/training/data/number_functions.h"
#include "engine/training/data/number_text.h"
#include "engine/training/data/random.h"

#pragma GCC optimize("O3")  // the loops below vectorise only so

namespace tandem {
namespace {

bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::boolean; }

template <class T>
double number_at(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}

template <class From, class To>
void apply_to_all(const Transform& function, const From* x, std::int64_t count, To* y) {
  const auto apply = number_function(function.kind)->apply;
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<To>(apply(function, number_at(x[i])));
}

template <class T>
void scale_values(const T* x, std::int64_t count, float factor, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i]) * factor;
}

template <class T>
void normalize_values(const T* x, std::int64_t count, float mean, float std, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) - mean) / std;
}

/// Whether y, of an integer type, is x; y is any number where it is not.
template <class From, class To>
bool to_whole(From x, To& y) {
  if constexpr (std::is_same_v<From, bool>) {
    y = static_cast<To>(x);
    return true;
  } else if constexpr (std::is_integral_v<From>) {
    y = static_cast<To>(x);
    return std::in_range<To>(x);
  } else if constexpr (std::is_same_v<From, float> || std::is_same_v<From, double>) {
    constexpr auto least = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto half =
        static_cast<From>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    const bool is_inside = (x >= least) & (x < 2 * half);  // not so for NaN
    y = static_cast<To>(is_inside ? x : From{0});
    return is_inside & (static_cast<From>(y) == x);
  } else {
    return to_whole(static_cast<float>(x), y);
  }
}

/// What `convert_to_whole` does where a value does not fit.
template <class From, class To>
void mend_or_refuse(const From* x, std::int64_t count, DType type, bool narrows_ids, To* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (to_whole(x[i], y[i])) continue;
    std::string text;
    bool is_whole = true;
    if constexpr (std::is_integral_v<From>) {
      text = std::to_string(x[i]);
    } else {
      const double value = number_at(x[i]);
      text = number_text(value);
      is_whole = std::isfinite(value) && std::trunc(value) == value;
    }
    const std::string wanted(name_of(type));
    if (!is_whole) throw NotWhole(text + " is not a whole number, as " + wanted + " has them");
    if (!narrows_ids || !std::is_signed_v<To>)
      throw std::invalid_argument(text + " does not fit " + wanted);
    y[i] = static_cast<To>(-1);
  }
}

template <class From, class To>
void convert_to_whole(const From* x, std::int64_t count, DType type, bool narrows_ids, To* y) {
  unsigned misfits = 0;
  for (std::int64_t i = 0; i < count; ++i) misfits |= !to_whole(x[i], y[i]);
  if (misfits != 0) mend_or_refuse(x, count, type, narrows_ids, y);
}

template <class From, class To>
void cast_values(const From* x, std::int64_t count, To* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, bool>) {
      y[i] = static_cast<float>(x[i]) != 0;
    } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
      y[i] = To(static_cast<float>(x[i]));
    } else if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
      y[i] = static_cast<To>(static_cast<float>(x[i]));
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

// The planes that the last two axes make: how many, and their extents.
struct Planes {
  std::int64_t count, height, width;
  explicit Planes(const Shape& shape)
      : count(1), height(shape[shape.size() - 2]), width(shape.back()) {
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) count *= shape[axis];
  }
};

void crop(const Planes& in, const Planes& out, std::int64_t padding, RandomStream random,
          std::size_t size, const std::uint8_t* from, std::uint8_t* to) {
  const auto span = [&](std::int64_t extent, std::int64_t taken) {
    return static_cast<std::uint64_t>(extent + 2 * padding - taken + 1);
  };
  const std::int64_t top =
      static_cast<std::int64_t>(random.below(span(in.height, out.height))) - padding;
  const std::int64_t left =
      static_cast<std::int64_t>(random.below(span(in.width, out.width))) - padding;
  const std::int64_t first = std::max<std::int64_t>(0, left);
  const std::int64_t last = std::min(in.width, left + out.width);
  const std::size_t row = static_cast<std::size_t>(out.width) * size;
  for (std::int64_t plane = 0; plane < out.count; ++plane) {
    for (std::int64_t y = 0; y < out.height; ++y, to += row) {
      const std::int64_t source = top + y;
      if (source < 0 || source >= in.height || first >= last) {
        std::memset(to, 0, row);
        continue;
      }
      const std::uint8_t* line =
          from + static_cast<std::size_t>((plane * in.height + source) * in.width) * size;
      const std::size_t before = static_cast<std::size_t>(first - left) * size;
      const std::size_t middle = static_cast<std::size_t>(last - first) * size;
      std::memset(to, 0, before);
      std::memcpy(to + before, line + static_cast<std::size_t>(first) * size, middle);
      std::memset(to + before + middle, 0, row - before - middle);
    }
  }
}

template <class T>
void flip_rows(const T* x, std::int64_t rows, std::int64_t width, T* y) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    std::reverse_copy(x, x + width, y);
  }
}

void flip(const TensorType& type, bool flips, const void* from, void* to) {
  if (!flips) {
    std::memcpy(to, from, type.bytes());
    return;
  }
  const std::int64_t width = type.shape.back(), rows = type.elements() / width;
  const auto as = [&](auto unit) {
    using T = decltype(unit);
    flip_rows(static_cast<const T*>(from), rows, width, static_cast<T*>(to));
  };
  switch (size_of(type.dtype)) {
    case 1:
      return as(std::uint8_t{});
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    default:
      return as(std::uint64_t{});
  }
}

// Bilinear; the centre of output pixel i lies at (i + 0.5) * scale - 0.5 of the input, edges
// repeat.
template <class T>
void resize_planes(const Planes& in, const Planes& out, const T* x, T* y) {
  const float scale_y = static_cast<float>(in.height) / static_cast<float>(out.height);
  const float scale_x = static_cast<float>(in.width) / static_cast<float>(out.width);
  const auto place = [](std::int64_t i, float scale, std::int64_t extent, std::int64_t& low,
                        std::int64_t& high) {
    const float at = std::max(0.0f, (static_cast<float>(i) + 0.5f) * scale - 0.5f);
    low = std::min(static_cast<std::int64_t>(at), extent - 1);
    high = std::min(low + 1, extent - 1);
    return std::min(at - static_cast<float>(low), 1.0f);
  };
  for (std::int64_t plane = 0; plane < out.count; ++plane, x += in.height * in.width) {
    for (std::int64_t i = 0; i < out.height; ++i) {
      std::int64_t top, bottom;
      const float v = place(i, scale_y, in.height, top, bottom);
      for (std::int64_t j = 0; j < out.width; ++j) {
        std::int64_t left, right;
        const float u = place(j, scale_x, in.width, left, right);
        const auto at = [&](std::int64_t row, std::int64_t column) {
          return static_cast<float>(x[row * in.width + column]);
        };
        const float upper = at(top, left) * (1 - u) + at(top, right) * u;
        const float lower = at(bottom, left) * (1 - u) + at(bottom, right) * u;
        const float value = upper * (1 - v) + lower * v;
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          *y++ = static_cast<T>(std::lround(value));
        } else if constexpr (std::is_same_v<T, bool>) {
          *y++ = value >= 0.5f;
        } else {
          *y++ = T(value);
        }
      }
    }
  }
}

template <class T>
void one_hot(const T* x, std::int64_t count, std::int64_t classes, float* y) {
  std::memset(y, 0, static_cast<std::size_t>(count * classes) * sizeof(float));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(x[i]);
    if (index < 0 || index >= classes) {
      throw std::invalid_argument("class " + std::to_string(index) + " is not below " +
                                  std::to_string(classes));
    }
    y[i * classes + index] = 1;
  }
}

}  // namespace

void TransformPlan::append(const Transform& transform) {
  Step step{.transform = transform,
            .from = to_,
            .to = to_,
            .place = places_++,
            .narrows_ids = narrows_ids_};
  Shape& shape = step.to.shape;
  bool renames_axes_only = false;
  switch (transform.kind) {
    case TransformKind::scale:
      step.to.dtype = DType::float32;
      break;
    case TransformKind::normalize:
      step.to.dtype = DType::float32;
      if (transform.mean.size() > 1 &&
          (shape.empty() || shape[0] != static_cast<std::int64_t>(transform.mean.size()))) {
        throw std::invalid_argument(std::to_string(transform.mean.size()) +
                                    " means for axis 0 of " + to_string(to_));
      }
      break;
    case TransformKind::cast:
      step.to.dtype = transform.dtype;
      renames_axes_only = step.to.dtype == to_.dtype;
      break;
    case TransformKind::flatten:
      shape = {to_.elements()};
      renames_axes_only = true;
      break;
    case TransformKind::reshape: {
      std::int64_t known = 1;
      for (std::int64_t extent : transform.shape) known *= extent == -1 ? 1 : extent;
      shape = transform.shape;
      for (std::int64_t& extent : shape) {
        if (extent == -1) extent = to_.elements() / known;
      }
      if (element_count(shape) != to_.elements()) {
        throw std::invalid_argument("the elements of " + to_string(to_) + " do not make " +
                                    to_string(transform.shape));
      }
      renames_axes_only = true;
      break;
    }
    case TransformKind::one_hot:
      if (!is_integer(to_.dtype))
        throw std::invalid_argument("one_hot takes integers, not " + to_string(to_));
      shape.push_back(transform.classes);
      step.to.dtype = DType::float32;
      break;
    case TransformKind::resize:
    case TransformKind::random_crop: {
      if (shape.size() < 2)
        throw std::invalid_argument("an image has two axes at least, this is " + to_string(to_));
      std::int64_t& height = shape[shape.size() - 2];
      std::int64_t& width = shape.back();
      if (height < 1 || width < 1) throw std::invalid_argument("an empty image: " + to_string(to_));
      const std::int64_t padding = 2 * transform.padding;
      if (transform.kind == TransformKind::random_crop &&
          (height + padding < transform.height || width + padding < transform.width)) {
        throw std::invalid_argument("the crop is larger than the padded " + to_string(to_));
      }
      height = transform.height;
      width = transform.width;
      break;
    }
    case TransformKind::random_flip:
      if (shape.empty()) throw std::invalid_argument("a single number cannot be flipped");
      break;
    case TransformKind::log1p:
    case TransformKind::bucketize:
      step.to.dtype = number_function(transform.kind)->type;
      break;
    case TransformKind::missing:
    case TransformKind::split:
    case TransformKind::hash:
    case TransformKind::vocabulary:
      throw std::invalid_argument("acts on the columns of csv and tsv, not on arrays");
  }
  to_ = step.to;
  if (!renames_axes_only) steps_.push_back(std::move(step));
}

bool TransformPlan::only_casts() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.transform.kind == TransformKind::cast && is_integer(step.to.dtype);
  });
}

void TransformPlan::append_cast(DType dtype) {
  if (dtype == to_.dtype) return;
  Transform transform;
  transform.kind = TransformKind::cast;
  transform.dtype = dtype;
  append(transform);
}

void TransformPlan::run_step(const Step& step, const void* from, const SampleKey& key, void* to) {
  const Transform& t = step.transform;
  const std::int64_t count = step.from.elements();
  const auto random = [&] {
    return RandomStream(mix(mix(mix(key.seed, static_cast<std::uint64_t>(key.epoch)),
                                static_cast<std::uint64_t>(key.sample)),
                            step.place));
  };
  switch (t.kind) {
    case TransformKind::scale:
      with_type(step.from.dtype, [&](auto zero) {
        scale_values(static_cast<const decltype(zero)*>(from), count, static_cast<float>(t.factor),
                     static_cast<float*>(to));
      });
      break;
    case TransformKind::normalize:
      with_type(step.from.dtype, [&](auto zero) {
        const auto channels = static_cast<std::int64_t>(t.mean.size());
        const std::int64_t each = count / channels;
        for (std::int64_t c = 0; c < channels; ++c) {
          const auto index = static_cast<std::size_t>(c);
          normalize_values(static_cast<const decltype(zero)*>(from) + c * each, each,
                           static_cast<float>(t.mean[index]), static_cast<float>(t.std[index]),
                           static_cast<float*>(to) + c * each);
        }
      });
      break;
    case TransformKind::cast:
      with_type(step.from.dtype, [&](auto x) {
        with_type(step.to.dtype, [&](auto y) {
          using To = decltype(y);
          const auto* values = static_cast<const decltype(x)*>(from);
          if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
            convert_to_whole(values, count, step.to.dtype, step.narrows_ids, static_cast<To*>(to));
          } else {
            cast_values(values, count, static_cast<To*>(to));
          }
        });
      });
      break;
    case TransformKind::one_hot:
      with_type(step.from.dtype, [&](auto zero) {
        one_hot(static_cast<const decltype(zero)*>(from), count, t.classes,
                static_cast<float*>(to));
      });
      break;
    case TransformKind::resize:
      with_type(step.from.dtype, [&](auto zero) {
        resize_planes(Planes(step.from.shape), Planes(step.to.shape),
                      static_cast<const decltype(zero)*>(from), static_cast<decltype(zero)*>(to));
      });
      break;
    case TransformKind::random_crop:
      crop(Planes(step.from.shape), Planes(step.to.shape), t.padding, random(),
           size_of(step.from.dtype), static_cast<const std::uint8_t*>(from),
           static_cast<std::uint8_t*>(to));
      break;
    case TransformKind::random_flip:
      flip(step.from, random().below(2) == 1, from, to);
      break;
    case TransformKind::log1p:
    case TransformKind::bucketize:
      with_type(step.from.dtype, [&](auto zero) {
        const auto* x = static_cast<const decltype(zero)*>(from);
        if (number_function(t.kind)->gives_whole_numbers()) {
          apply_to_all(t, x, count, static_cast<std::int64_t*>(to));
        } else {
          apply_to_all(t, x, count, static_cast<float*>(to));
        }
      });
      break;
    case TransformKind::flatten:
    case TransformKind::reshape:
    case TransformKind::missing:
    case TransformKind::split:
    case TransformKind::hash:
    case TransformKind::vocabulary:
      assert(false);
      break;
  }
}

void TransformPlan::run(const void* from, const SampleKey& key, void* to) const {
  if (only_copies()) {
    if (to_.bytes() > 0) std::memcpy(to, from, to_.bytes());
    return;
  }
  thread_local std::vector<std::uint64_t>
      scratch[2];  // words, so that every element type is aligned
  const void* at = from;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    void* next = to;
    if (i + 1 < steps_.size()) {
      std::vector<std::uint64_t>& buffer = scratch[i % 2];
      const std::size_t words = (steps_[i].to.bytes() + 7) / 8;
      if (buffer.size() < words) buffer.resize(words);
      next = buffer.data();
    }
    run_step(steps_[i], at, key, next);
    at = next;
  }
}

}  // namespace tandem
