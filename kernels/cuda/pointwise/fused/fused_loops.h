// The loops around a fused body. A Body is generated (fused_source.cpp): it reads, computes and
// writes `count` elements from offsets, and hands back what is reduced. For g++ and NVRTC.
#pragma once

#include "kernels/cuda/pointwise/fused/rtc_standard.h"

#include "kernels/cuda/pointwise/fused/fused_arguments.h"
#include "kernels/shared/block/block.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda {

template <class Body>
struct FusedElements {
  FusedArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t threads = block.threads();
    block.each([&](int thread) {
      for_each_unit<Body::width, Body::places>(
          p.space, block.index() * threads + thread, block.blocks() * threads,
          [&](auto count, const std::int64_t(&at)[Body::places]) {
            constexpr int elements = decltype(count)::value;
            typename Body::Reduced nothing[elements];
            Body::template run<elements>(p, at, nothing);
          });
    });
  }
};

/// Sums are kept in double, maxima in double as well, which holds a float as it is.
template <bool maximum>
struct Total {
  static TANDEM_HOST_DEVICE double start() {
    return maximum ? -from_bits<double>(0x7ff0000000000000u) : 0.0;
  }
  static TANDEM_HOST_DEVICE double joined(double a, double b) {
    return maximum ? scalar::maximum(a, b) : a + b;
  }
  /// Combines the elements of a unit: neighbours first, so that few additions of doubles are
  /// needed.
  template <int count, class T>
  static TANDEM_HOST_DEVICE double of(T (&values)[count]) {
    TANDEM_UNROLL
    for (int width = count / 2; width > 0; width /= 2) {
      TANDEM_UNROLL
      for (int i = 0; i < width; ++i) {
        values[i] =
            maximum ? scalar::maximum(values[i], values[i + width]) : values[i] + values[i + width];
      }
    }
    return static_cast<double>(values[0]);
  }
};

/// Writes the total of element `element` of the kept ones, whose place in the result is `offset`.
template <class Body>
TANDEM_HOST_DEVICE inline void write_total(const FusedArguments& p, unsigned part,
                                           std::int64_t element, std::int64_t offset,
                                           double total) {
  if (p.partial != nullptr) {
    p.partial[part * p.kept_elements + element] = total;
    return;
  }
  using Result = typename Body::Result;
  auto* const result = static_cast<Result*>(p.operands[Body::result_operand]);
  if (result == nullptr) return;
  result[offset] = stored<Result>(static_cast<ComputedType<Result>>(total * p.scale));
}

/// Reduced axes are the innermost: `lanes` threads share a row.
template <class Body>
struct FusedRows {
  FusedArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    using Sum = Total<Body::maximum>;
    double* const sums = block.template shared<double>();
    const int lanes = p.lanes, rows = block.threads() / lanes;
    const std::int64_t begin = block.index_y() * p.part;
    const std::int64_t end = begin + p.part < p.reduced ? begin + p.part : p.reduced;
    for (std::int64_t first = std::int64_t{block.index()} * rows; first < p.kept;
         first += std::int64_t{block.blocks()} * rows) {
      block.each([&](int thread) {
        const std::int64_t row = first + thread / lanes;
        double total = Sum::start();
        if (row < p.kept) {
          std::int64_t start[Body::places] = {};
          p.space.walk.locate(0, p.kept_axes, row, 1, start);
          for (std::int64_t unit = begin + thread % lanes; unit < end; unit += lanes) {
            total = Sum::joined(total, sum_of(unit, start));
          }
        }
        sums[thread] = total;
      });
      block.sync();
      for (int width = lanes / 2; width > 0; width /= 2) {
        block.each([&](int thread) {
          if (thread % lanes < width)
            sums[thread] = Sum::joined(sums[thread], sums[thread + width]);
        });
        block.sync();
      }
      block.each([&](int thread) {
        const std::int64_t row = first + thread / lanes;
        if (thread % lanes != 0 || row >= p.kept) return;
        std::int64_t at[Body::places] = {};
        p.space.walk.locate(0, p.kept_axes, row, 1, at);
        write_total<Body>(p, block.index_y(), row, at[Body::result_place], sums[thread]);
      });
      block.sync();
    }
  }

  TANDEM_HOST_DEVICE double sum_of(std::int64_t unit,
                                   const std::int64_t (&start)[Body::places]) const {
    std::int64_t at[Body::places];
    for (int i = 0; i < Body::places; ++i) at[i] = start[i];
    p.space.walk.locate(p.kept_axes, p.space.walk.axes, unit, p.space.width, at);
    if (p.space.width == Body::width) return sum_at<Body::width>(at);
    return sum_at<1>(at);
  }

  template <int count>
  TANDEM_HOST_DEVICE double sum_at(const std::int64_t (&at)[Body::places]) const {
    typename Body::Reduced values[count];
    Body::template run<count>(p, at, values);
    return Total<Body::maximum>::template of<count>(values);
  }
};

/// Kept axes are the innermost: a thread has one unit of columns and every eighth row.
template <class Body>
struct FusedColumns {
  FusedArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    if (p.space.width == Body::width)
      add_columns<Body::width>(block);
    else
      add_columns<1>(block);
  }

  template <int count, class Block>
  TANDEM_HOST_DEVICE void add_columns(Block& block) const {
    using Sum = Total<Body::maximum>;
    double* const sums = block.template shared<double>();  // [row lanes, column lanes, count]
    const int row_lanes = block.threads() / column_lanes;
    const std::int64_t begin = block.index_y() * p.part;
    const std::int64_t end = begin + p.part < p.reduced ? begin + p.part : p.reduced;
    for (std::int64_t first = std::int64_t{block.index()} * column_lanes; first < p.kept;
         first += std::int64_t{block.blocks()} * column_lanes) {
      block.each([&](int thread) {
        const std::int64_t unit = first + thread % column_lanes;
        double totals[count];
        for (int i = 0; i < count; ++i) totals[i] = Sum::start();
        if (unit < p.kept) {
          std::int64_t start[Body::places] = {};
          p.space.walk.locate(0, p.kept_axes, unit, p.space.width, start);
          add_rows(begin + thread / column_lanes, end, row_lanes, start, totals);
        }
        for (int i = 0; i < count; ++i) sums[thread * count + i] = totals[i];
      });
      block.sync();
      for (int width = row_lanes / 2; width > 0; width /= 2) {
        block.each([&](int thread) {
          if (thread / column_lanes >= width) return;
          for (int i = 0; i < count; ++i) {
            double& own = sums[thread * count + i];
            own = Sum::joined(own, sums[(thread + width * column_lanes) * count + i]);
          }
        });
        block.sync();
      }
      block.each([&](int thread) {
        const std::int64_t unit = first + thread;
        if (thread >= column_lanes || unit >= p.kept) return;
        std::int64_t at[Body::places] = {};
        p.space.walk.locate(0, p.kept_axes, unit, p.space.width, at);
        for (int i = 0; i < count; ++i) {
          write_total<Body>(p, block.index_y(), unit * count + i,
                            at[Body::result_place] + i * p.space.inner[Body::result_place],
                            sums[thread * count + i]);
        }
      });
      block.sync();
    }
  }

  /// Four rows at a time are added up before they meet the totals.
  template <int count>
  TANDEM_HOST_DEVICE void add_rows(std::int64_t row, std::int64_t end, int step,
                                   const std::int64_t (&start)[Body::places],
                                   double (&totals)[count]) const {
    constexpr int at_once = 4;
    for (; row < end; row += at_once * step) {
      typename Body::Reduced values[at_once][count];
      int rows = 0;
      TANDEM_UNROLL
      for (int k = 0; k < at_once; ++k) {
        if (row + k * step >= end) continue;
        std::int64_t at[Body::places];
        for (int i = 0; i < Body::places; ++i) at[i] = start[i];
        p.space.walk.locate(p.kept_axes, p.space.walk.axes, row + k * step, 1, at);
        Body::template run<count>(p, at, values[k]);
        ++rows;
      }
      TANDEM_UNROLL
      for (int i = 0; i < count; ++i) {
        typename Body::Reduced column[at_once];
        TANDEM_UNROLL
        for (int k = 0; k < at_once; ++k) {
          column[k] = k < rows ? values[k][i] : Body::maximum ? values[0][i] : 0;
        }
        totals[i] = Total<Body::maximum>::joined(
            totals[i], Total<Body::maximum>::template of<at_once>(column));
      }
    }
  }
};

}  // namespace tandem::cuda
