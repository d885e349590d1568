#include "engine/operators/packed/pack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "engine/formats/parallel_jobs.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t range_bytes = std::size_t{1} << 20;

[[noreturn]] void refuse(const std::string& name, const char* expected, double got) {
  throw Error(ErrorKind::data,
              Diagnostic{.message = "parameters.storage cannot pack this weight",
                         .path = name,
                         .expected = expected,
                         .got = std::to_string(got),
                         .fix = "leave it out of the rule's selector, or mend the weight"});
}

/// The places of a table in ascending order of their numbers, and the numbers halfway between.
struct NearestCode {
  std::array<int, 16> codes{};
  std::array<float, 15> halfway{};

  explicit NearestCode(const std::array<float, 16>& table) {
    for (int i = 0; i < 16; ++i) codes[static_cast<std::size_t>(i)] = i;
    const auto number = [&](int code) { return table[static_cast<std::size_t>(code)]; };
    std::sort(codes.begin(), codes.end(), [&](int a, int b) { return number(a) < number(b); });
    for (std::size_t i = 0; i < halfway.size(); ++i)
      halfway[i] = (number(codes[i]) + number(codes[i + 1])) / 2;
  }
  int operator()(float x) const {
    const auto at = std::upper_bound(halfway.begin(), halfway.end(), x) - halfway.begin();
    return codes[static_cast<std::size_t>(at)];
  }
};

/// Packs rows one by one; `error` and `size` sum (w - packed w)^2 and w^2.
class RowPacker {
 public:
  explicit RowPacker(const PackedFormat& format)
      : format_(format), nearest_(packed_table(format.kind)) {}

  float scale_of(std::span<const float> numbers) const {
    float largest = 0;
    for (const float x : numbers) {
      if (std::abs(x) > std::abs(largest)) largest = x;
    }
    if (format_.kind == PackedKind::int8) return std::abs(largest) / 127;
    if (format_.kind == PackedKind::int4) return largest / -8;
    return std::abs(largest);
  }

  int code_of(float x, float scale) const {
    if (scale == 0) return format_.has_table ? nearest_(0) : 0;
    if (format_.has_table) return nearest_(x / scale);
    const int most = (1 << (format_.bits - 1)) - 1;
    return std::clamp(static_cast<int>(std::lrint(x / scale)), -most - 1, most);
  }

  float number_of(int code, float scale) const {
    const float number = format_.has_table
                             ? packed_table(format_.kind)[static_cast<std::size_t>(code)]
                             : static_cast<float>(code);
    return number * scale;
  }

  int code_at(const std::uint8_t* row, std::int64_t c) const {
    if (format_.bits == 8) return static_cast<std::int8_t>(row[c]);
    const bool is_upper = (c % 2 == 0) == format_.high_first;
    const int code = (row[c / 2] >> (is_upper ? 4 : 0)) & 15;
    return format_.is_signed && code > 7 ? code - 16 : code;
  }

  void put(int code, std::int64_t c, std::uint8_t* row) const {
    if (format_.bits == 8) {
      row[c] = static_cast<std::uint8_t>(code);
      return;
    }
    const bool is_upper = (c % 2 == 0) == format_.high_first;
    row[c / 2] = static_cast<std::uint8_t>(row[c / 2] | ((code & 15) << (is_upper ? 4 : 0)));
  }

 private:
  const PackedFormat& format_;
  NearestCode nearest_;
};

void read_row(const HostTensor& w, std::int64_t r, std::span<float> to) {
  const auto first = static_cast<std::size_t>(r) * to.size();
  const auto copy = [&](const auto all) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(all[first + i]);
  };
  if (w.dtype() == DType::float16)
    copy(w.as<Float16>());
  else if (w.dtype() == DType::bfloat16)
    copy(w.as<BFloat16>());
  else
    copy(w.as<float>());
}

/// Calls f(row, its numbers, error sums of the row) for all rows, by several threads, and returns
/// the relative error.
template <class F>
double for_each_row(const HostTensor& w, std::int64_t rows, std::int64_t columns,
                    const std::string& name, const F& f) {
  std::vector<double> errors(static_cast<std::size_t>(rows)), sizes(errors.size());
  parallel_row_ranges(file_threads(), rows, static_cast<std::size_t>(columns) * sizeof(float),
                      range_bytes, [&](std::int64_t first, std::int64_t count) {
                        std::vector<float> row(static_cast<std::size_t>(columns));
                        for (std::int64_t r = first; r < first + count; ++r) {
                          read_row(w, r, row);
                          double& size = sizes[static_cast<std::size_t>(r)];
                          for (const float x : row) size += static_cast<double>(x) * x;
                          if (!std::isfinite(size)) {
                            for (const float x : row) {
                              if (!std::isfinite(x)) refuse(name, "finite numbers", x);
                            }
                          }
                          errors[static_cast<std::size_t>(r)] = f(r, std::span<const float>(row));
                        }
                      });
  double error = 0, size = 0;
  for (std::size_t r = 0; r < errors.size(); ++r) {
    error += errors[r];
    size += sizes[r];
  }
  return size > 0 ? std::sqrt(error / size) : 0;
}

double squared(float x, float y) {
  const double difference = static_cast<double>(x) - static_cast<double>(y);
  return difference * difference;
}

PackedTensor as_halves(const HostTensor& w, const PackedFormat& format, std::int64_t rows,
                       std::int64_t columns, const std::string& name) {
  PackedTensor packed;
  packed.kind = format.kind;
  packed.from = w.type();
  if (w.dtype() == format.data) {
    packed.data = w;
    return packed;
  }
  packed.data = HostTensor(TensorType{format.data, w.shape()});
  packed.error = for_each_row(w, rows, columns, name, [&](std::int64_t r, auto row) {
    double error = 0;
    const auto write = [&](auto all) {
      auto* const to = all.data() + r * columns;
      for (std::size_t i = 0; i < row.size(); ++i) {
        to[i] = std::remove_cvref_t<decltype(*to)>(row[i]);
        const auto back = static_cast<float>(to[i]);
        if (!std::isfinite(back)) refuse(name, "numbers of float16, at most 65504", row[i]);
        error += squared(row[i], back);
      }
    };
    if (format.data == DType::float16)
      write(packed.data.as<Float16>());
    else
      write(packed.data.as<BFloat16>());
    return error;
  });
  return packed;
}

bool are_normal_halves(std::span<const float> scales) {
  constexpr float least = 6.103515625e-5f, most = 65504;
  return std::all_of(scales.begin(), scales.end(), [](float scale) {
    const float size = std::abs(scale);
    return scale == 0 || (size >= least && size <= most);
  });
}

}  // namespace

std::int64_t usual_block(PackedKind kind) {
  constexpr std::int64_t of_nf4 = 64, of_others = 32;
  return kind == PackedKind::nf4 ? of_nf4 : of_others;
}

PackedTensor pack(const HostTensor& w, PackedKind kind, std::int64_t block,
                  const std::string& name) {
  const PackedFormat& format = packed_format(kind);
  const std::int64_t columns = w.shape().back();
  const std::int64_t rows = columns == 0 ? 0 : w.type().elements() / columns;
  if (!format.has_codes()) return as_halves(w, format, rows, columns, name);
  const std::int64_t blocks = (columns + block - 1) / block;
  Shape shape = w.shape();
  shape.back() = (columns * format.bits + 7) / 8;
  PackedTensor packed;
  packed.kind = kind;
  packed.from = w.type();
  packed.block = block;
  packed.data = HostTensor(TensorType{format.data, shape});
  packed.scales = HostTensor(TensorType{DType::float32, {rows, blocks}});
  const RowPacker packer(format);
  const std::span<float> scales = packed.scales.as<float>();
  const auto for_each_block = [&](std::int64_t r, auto row, const auto& f) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto first = static_cast<std::size_t>(b * block);
      f(first, row.subspan(first, std::min(row.size() - first, static_cast<std::size_t>(block))),
        scales[static_cast<std::size_t>(r * blocks + b)]);
    }
  };
  for_each_row(w, rows, columns, name, [&](std::int64_t r, auto row) {
    for_each_block(
        r, row, [&](std::size_t, auto numbers, float& scale) { scale = packer.scale_of(numbers); });
    return 0.0;
  });
  // Codes are chosen for the scales as they are stored.
  const bool is_half = are_normal_halves(scales);
  if (is_half) {
    for (float& scale : scales) scale = static_cast<float>(Float16(scale));
  }
  auto* const bytes = static_cast<std::uint8_t*>(packed.data.data());
  packed.error = for_each_row(w, rows, columns, name, [&](std::int64_t r, auto row) {
    double error = 0;
    std::uint8_t* const to = bytes + r * shape.back();
    for_each_block(r, row, [&](std::size_t first, auto numbers, float scale) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const int code = packer.code_of(numbers[i], scale);
        packer.put(code, static_cast<std::int64_t>(first + i), to);
        error += squared(numbers[i], packer.number_of(code, scale));
      }
    });
    return error;
  });
  if (is_half) packed.scales = packed.scales.converted(DType::float16);
  return packed;
}

HostTensor unpack(const PackedTensor& packed) {
  const PackedFormat& format = packed_format(packed.kind);
  if (!format.has_codes()) return packed.data.converted(DType::float32);
  HostTensor result(TensorType{DType::float32, packed.from.shape});
  const std::int64_t columns = packed.from.shape.back(), row_bytes = packed.data.shape().back();
  const std::int64_t rows = columns == 0 ? 0 : packed.from.elements() / columns;
  const std::int64_t blocks = packed.scales.shape().back();
  const HostTensor scales = packed.scales.converted(DType::float32);
  const RowPacker packer(format);
  const auto* const bytes = static_cast<const std::uint8_t*>(packed.data.data());
  parallel_row_ranges(
      file_threads(), rows, static_cast<std::size_t>(columns) * sizeof(float), range_bytes,
      [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t r = first; r < first + count; ++r) {
          float* const to = result.as<float>().data() + r * columns;
          for (std::int64_t c = 0; c < columns; ++c) {
            const float scale =
                scales.as<float>()[static_cast<std::size_t>(r * blocks + c / packed.block)];
            to[c] = packer.number_of(packer.code_at(bytes + r * row_bytes, c), scale);
          }
        }
      });
  return result;
}

}  // namespace tandem
