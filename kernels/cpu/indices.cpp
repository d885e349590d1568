// FlatIndices, ScatterRows, CumSum and TopK. Each thread owns a part of the result, so that it has
// the same bits whatever the number of threads.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

/// Indices into `extent` elements: counted from the start and clamped, -1 where absent.
struct IndexReader {
  bool wide = false;  // int64
  std::int64_t absent = 0;
  std::int32_t node = -1;

  IndexReader(const KernelRequest& request, DType dtype)
      : wide(dtype == DType::int64), absent(absent_id_of(dtype)), node(request.node_index) {}

  std::int64_t at(const void* indices, std::int64_t i, std::int64_t extent,
                  const KernelArguments& a) const {
    const std::int64_t raw = wide ? static_cast<const std::int64_t*>(indices)[i]
                                  : static_cast<const std::int32_t*>(indices)[i];
    if (raw == absent) return -1;
    const std::int64_t index = raw < 0 ? raw + extent : raw;
    if (index >= 0 && index < extent) return index;
    if (a.context != nullptr && a.context->error != nullptr) {
      a.context->error->report(ErrorWord::index_out_of_range, node, raw);
    }
    return index < 0 ? 0 : extent - 1;
  }
};

/// The sum of p[a] strides[a] for the p that follow each other in row-major order.
class PositionSum {
 public:
  PositionSum(const Shape& shape, const Ints& strides)
      : shape_(shape), strides_(strides), inner_(strides.empty() ? 0 : strides.back()) {}

  std::int64_t of(std::int64_t i) const {
    std::int64_t sum = 0;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      sum += i % shape_[axis] * strides_[axis];
      i /= shape_[axis];
    }
    return sum;
  }
  std::int64_t line() const { return shape_.empty() ? 1 : shape_.back(); }
  std::int64_t inner() const { return inner_; }

 private:
  Shape shape_;
  Ints strides_;
  std::int64_t inner_;
};

std::unique_ptr<PreparedKernel> prepare_flat_indices(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  const std::int64_t count = request.outputs[0].type.elements();
  return prepared(
      [count, indices = IndexReader(request, request.inputs[0].type.dtype),
       positions =
           PositionSum(request.outputs[0].type.shape, attributes.integers("position_strides")),
       extents = attributes.integers("extents"), strides = attributes.integers("strides"),
       threads = request.facts->threads](const KernelArguments& a) {
        std::int64_t* flat = static_cast<std::int64_t*>(a.outputs[0]);
        const auto tuple = static_cast<std::int64_t>(extents.size());
        parallel_ranges(
            threads, count, count * (tuple + 1) * 8, [&](std::int64_t begin, std::int64_t end) {
              std::int64_t place = 0;
              for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t column = i % positions.line();
                place = i == begin || column == 0 ? positions.of(i) : place + positions.inner();
                std::int64_t sum = place;
                bool is_absent = false;
                for (std::int64_t k = 0; k < tuple; ++k) {
                  const auto j = static_cast<std::size_t>(k);
                  const std::int64_t index = indices.at(a.inputs[0], i * tuple + k, extents[j], a);
                  is_absent = is_absent || index < 0;
                  sum += index * strides[j];
                }
                flat[i] = is_absent ? absent_id<std::int64_t> : sum;
              }
            });
      });
}

// update(to, from, n) changes one row of n elements.
template <class Update>
std::unique_ptr<PreparedKernel> prepare_scatter(const KernelRequest& request,
                                                std::int64_t row_bytes, Update update) {
  const TensorType &x = request.inputs[0].type, &indices = request.inputs[1].type;
  return prepared([row_bytes, update, rows = x.shape[0], count = indices.elements(),
                   reader = IndexReader(request, indices.dtype),
                   threads = request.facts->threads](const KernelArguments& a) {
    const char* x = static_cast<const char*>(a.inputs[0]);
    const char* updates = static_cast<const char*>(a.inputs[2]);
    char* y = static_cast<char*>(a.outputs[0]);
    parallel_ranges(threads, rows, row_bytes * (2 * rows + 3 * count),
                    [&](std::int64_t begin, std::int64_t end) {
                      if (row_bytes == 0) return;
                      std::memcpy(y + begin * row_bytes, x + begin * row_bytes,
                                  static_cast<std::size_t>((end - begin) * row_bytes));
                      for (std::int64_t m = 0; m < count; ++m) {
                        const std::int64_t row = reader.at(a.inputs[1], m, rows, a);
                        if (row < begin || row >= end) continue;  // an absent one among them
                        update(y + row * row_bytes, updates + m * row_bytes);
                      }
                    });
  });
}

std::unique_ptr<PreparedKernel> prepare_scatter_rows(const KernelRequest& request) {
  const TensorType& x = request.inputs[0].type;
  const std::int64_t elements = x.shape[0] == 0 ? 0 : x.elements() / x.shape[0];
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(x.dtype));
  const std::string& reduction = request.attributes().text("reduction");
  if (reduction == "none") {
    return prepare_scatter(request, bytes, [bytes](char* to, const char* from) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    });
  }
  const TileOp op = reduction == "add"   ? TileOp::add
                    : reduction == "mul" ? TileOp::mul
                    : reduction == "max" ? TileOp::maximum
                                         : TileOp::minimum;
  const TileFunction function = vector_functions(request).tile[static_cast<std::size_t>(op)];
  if (elements == 1 && op == TileOp::add) {
    return prepare_scatter(request, bytes, [](char* to, const char* from) {
      *reinterpret_cast<float*>(to) += *reinterpret_cast<const float*>(from);
    });
  }
  return prepare_scatter(request, bytes, [function, elements](char* to, const char* from) {
    float* y = reinterpret_cast<float*>(to);
    function({y, reinterpret_cast<const float*>(from), nullptr, y, elements, 0, 0});
  });
}

std::optional<std::string> refuse_scatter(const KernelRequest& request) {
  if (request.attributes().text("reduction") == "none") return std::nullopt;
  return refuse_but_float32(request, {0});
}

constexpr std::int64_t width = 16;

// Columns side by side, `width` at most, are summed together, numbers of T as Sum: floats in
// double, integers in unsigned ones, which wrap around.
template <class T, class Sum>
std::unique_ptr<PreparedKernel> cum_sum_of(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  const Lines lines(request.inputs[0].type.shape,
                    static_cast<std::size_t>(attributes.integer("axis")));
  const std::int64_t groups = (lines.inner + width - 1) / width;  // groups of `width` columns
  return prepared([lines, groups, exclusive = attributes.flag("exclusive"),
                   reverse = attributes.flag("reverse"),
                   threads = request.facts->threads](const KernelArguments& a) {
    const T* x = static_cast<const T*>(a.inputs[0]);
    T* y = static_cast<T*>(a.outputs[0]);
    const std::int64_t blocks = lines.inner == 0 ? 0 : lines.count / lines.inner;
    const auto sum_columns = [&](std::int64_t first, std::int64_t n) {
      Sum sums[width] = {};
      for (std::int64_t i = 0; i < lines.length; ++i) {
        const std::int64_t row = reverse ? lines.length - 1 - i : i;
        const std::int64_t at = first + row * lines.inner;
        for (std::int64_t k = 0; k < n; ++k) {
          const Sum before = sums[k];
          sums[k] += static_cast<Sum>(x[at + k]);
          y[at + k] = static_cast<T>(exclusive ? before : sums[k]);
        }
      }
    };
    const std::int64_t bytes =
        2 * static_cast<std::int64_t>(sizeof(T)) * lines.count * lines.length;
    parallel_ranges(threads, blocks * groups, bytes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t column = i % groups * width;
        sum_columns(i / groups * lines.length * lines.inner + column,
                    std::min(width, lines.inner - column));
      }
    });
  });
}

std::unique_ptr<PreparedKernel> prepare_cum_sum(const KernelRequest& request) {
  switch (request.inputs[0].type.dtype) {
    case DType::int32:
      return cum_sum_of<std::int32_t, std::uint32_t>(request);
    case DType::int64:
      return cum_sum_of<std::int64_t, std::uint64_t>(request);
    default:
      return cum_sum_of<float, double>(request);
  }
}

std::optional<std::string> refuse_cum_sum(const KernelRequest& request) {
  const DType dtype = request.inputs[0].type.dtype;
  if (dtype == DType::int32 || dtype == DType::int64) return std::nullopt;
  return refuse_but_float32(request, {0});
}

// The best place so far of a line that is searched for one.
template <class Before>
std::int64_t first_of(std::int64_t n, Before before) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    if (before(i, best)) best = i;
  }
  return best;
}

std::unique_ptr<PreparedKernel> prepare_top_k(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
  const std::int64_t k = attributes.integer("k");
  const Lines from(request.inputs[0].type.shape, axis), to(request.outputs[0].type.shape, axis);
  const int parts = parts_for(request.facts->threads, from.count * from.length * 16, grain_bytes);
  return prepared(
      [from, to, k, parts, largest = attributes.flag("largest")](const KernelArguments& a) {
        const float* x = static_cast<const float*>(a.inputs[0]);
        float* values = static_cast<float*>(a.outputs[0]);
        std::int64_t* places = static_cast<std::int64_t*>(a.outputs[1]);
        if (k == 0) return;
        parallel_parts(parts, [&](int part) {
          std::int64_t* order = static_cast<std::int64_t*>(a.workspace) + part * from.length;
          const Range range = part_of(from.count, part, parts);
          for (std::int64_t line = range.begin; line < range.end; ++line) {
            const float* elements = x + from.start(line);
            const auto element = [&](std::int64_t i) { return elements[i * from.inner]; };
            // NaN is the largest number.
            const auto comes_first = [&](std::int64_t i, std::int64_t j) {
              const float p = element(i), q = element(j);
              if (p == q) return i < j;
              if (p != p || q != q) {
                if (p != p && q != q) return i < j;
                return largest == (p != p);
              }
              return largest ? p > q : p < q;
            };
            if (k == 1) {
              order[0] = first_of(from.length, comes_first);
            } else {
              std::iota(order, order + from.length, 0);
              std::partial_sort(order, order + k, order + from.length, comes_first);
            }
            const std::int64_t start = to.start(line);
            for (std::int64_t i = 0; i < k; ++i) {
              if (values != nullptr) values[start + i * to.inner] = element(order[i]);
              if (places != nullptr) places[start + i * to.inner] = order[i];
            }
          }
        });
      },
      static_cast<std::size_t>(parts) * static_cast<std::size_t>(from.length) * 8);
}

}  // namespace

void add_index_kernels(KernelList& list) {
  add_row_major(list, "cpu.flat_indices", "FlatIndices", refuse_nothing, prepare_flat_indices);
  add_row_major(list, "cpu.scatter_rows", "ScatterRows", refuse_scatter, prepare_scatter_rows);
  add_row_major(list, "cpu.cum_sum", "CumSum", refuse_cum_sum, prepare_cum_sum);
  add_row_major(list, "cpu.top_k", "TopK", only_float32({0}), prepare_top_k);
}

}  // namespace tandem
