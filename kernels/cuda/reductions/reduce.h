// Sums, means and maxima over axes under any strides. Where the innermost axis in memory is
// reduced, teams of threads share a result's elements; where it is kept, neighbouring threads have
// neighbouring results. Few results are cut into parts, which a second launch combines.
#pragma once

#include "kernels/cuda/reductions/columns.h"
#include "kernels/cuda/reductions/reduce_plan.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda::reductions {

// What is done to elements of type T. Sums of integers are kept in 64 bits that wrap around.

template <class T>
struct Adding {
  using Result = std::conditional_t<is_floating<T>, float, std::uint64_t>;
  using Combine = SumOf;
  static Result start() { return 0; }
  TANDEM_HOST_DEVICE static Result of(ComputedType<T> x) { return static_cast<Result>(x); }
};

template <class T>
struct Finding {
  using Result = std::conditional_t<
      is_floating<T>, float,
      std::conditional_t<std::is_same_v<T, std::uint64_t>, std::uint64_t, std::int64_t>>;
  using Combine = MaximumOf;
  static Result start() {
    if constexpr (is_floating<T>) return -INFINITY;
    if constexpr (!is_floating<T>) return static_cast<Result>(std::numeric_limits<T>::lowest());
  }
  TANDEM_HOST_DEVICE static Result of(ComputedType<T> x) { return static_cast<Result>(x); }
};

/// The result of n numbers that came to `all`: their mean where n is not -1.
template <class Out, class Result>
TANDEM_HOST_DEVICE inline Out finished(Result all, std::int64_t n) {
  if constexpr (is_floating<Out>) {
    return stored<Out>(n < 0 ? all : all / static_cast<float>(n));
  } else {
    if (n < 0) return static_cast<Out>(all);
    return static_cast<Out>(scalar::div(static_cast<std::int64_t>(all), n));
  }
}

template <class In, class Out, class Step, int pack, bool whole>
struct ReduceRows {
  static constexpr int block_threads = 256, ahead = 4;
  using Result = typename Step::Result;

  const In* x;
  Out* y;
  Result* partial;  // [results, parts]; null: y is written
  Reduction of;
  int team;
  Result start;

  TANDEM_HOST_DEVICE Result sum(std::int64_t result, std::int64_t part, int member) const {
    using Combine = typename Step::Combine;
    const In* const from = x + of.kept.at(result);
    const std::int64_t packs = of.count / pack;
    const std::int64_t end = part_begin(packs, part + 1, of.parts);
    Result sums[pack];
    TANDEM_UNROLL
    for (int k = 0; k < pack; ++k) sums[k] = start;
    for (std::int64_t i = part_begin(packs, part, of.parts) + member; i < end; i += ahead * team) {
      ComputedType<In> values[ahead][pack];
      TANDEM_UNROLL
      for (int j = 0; j < ahead; ++j) {
        if (i + j * team < end)
          load_pack<pack>(from + of.reduced.at((i + j * team) * pack), values[j]);
      }
      TANDEM_UNROLL
      for (int j = 0; j < ahead; ++j) {
        if (i + j * team >= end) continue;
        TANDEM_UNROLL
        for (int k = 0; k < pack; ++k) sums[k] = Combine{}(sums[k], Step::of(values[j][k]));
      }
    }
    TANDEM_UNROLL
    for (int width = pack / 2; width > 0; width /= 2) {
      TANDEM_UNROLL
      for (int k = 0; k < width; ++k) sums[k] = Combine{}(sums[k], sums[k + width]);
    }
    return sums[0];
  }

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int teams = block.threads() / team;
    const std::int64_t items = of.results * of.parts;
    typename Block::template Private<Result> part;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < items;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      block.each([&](int thread) {
        const std::int64_t item = first + thread / team;
        part(thread) = start;
        if (item >= items) return;
        const std::int64_t result = of.parts == 1 ? item : item / of.parts;
        part(thread) = sum(result, item - result * of.parts, thread % team);
      });
      const auto all = combined<whole>(block, part, team, typename Step::Combine{});
      block.each([&](int thread) {
        const std::int64_t item = first + thread / team;
        if (item >= items || thread % team != 0) return;
        if (partial != nullptr) {
          partial[item] = all(thread);
        } else {
          y[of.kept.other_at(item)] = finished<Out>(all(thread), of.mean_of);
        }
      });
    }
  }
};

/// A block is a part of the elements of `width` packs of results.
template <class In, class Out, class Step, int pack>
struct ReduceColumns {
  static constexpr int block_threads = column_threads, ahead = 4;
  using Result = typename Step::Result;
  using Results = Several<Result, pack>;

  const In* x;
  Out* y;
  Result* partial;  // [parts, results]; null: y is written
  Reduction of;
  std::int64_t tiles;
  std::int64_t stride;  // between neighbouring results in y
  int width;
  Result start;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    using Combine = typename Step::Combine;
    const std::int64_t tile = block.index() % tiles, part = block.index() / tiles;
    const std::int64_t end = part_begin(of.count, part + 1, of.parts);
    const int lanes = block.threads() / width;
    typename Block::template Private<Results> sums;
    block.each([&](int thread) {
      const std::int64_t result = (tile * width + thread % width) * pack;
      Results own;
      TANDEM_UNROLL
      for (int k = 0; k < pack; ++k) own.values[k] = start;
      if (result < of.results) {
        const In* const from = x + of.kept.at(result);
        for (std::int64_t i = part_begin(of.count, part, of.parts) + thread / width; i < end;
             i += ahead * lanes) {
          ComputedType<In> values[ahead][pack];
          TANDEM_UNROLL
          for (int j = 0; j < ahead; ++j) {
            if (i + j * lanes < end)
              load_pack<pack>(from + of.reduced.at(i + j * lanes), values[j]);
          }
          TANDEM_UNROLL
          for (int j = 0; j < ahead; ++j) {
            if (i + j * lanes >= end) continue;
            TANDEM_UNROLL
            for (int k = 0; k < pack; ++k)
              own.values[k] = Combine{}(own.values[k], Step::of(values[j][k]));
          }
        }
      }
      sums(thread) = own;
    });
    const Results* all = combined_columns(block, sums, width, EachOf<Combine>{});
    block.each([&](int thread) {
      const std::int64_t result = (tile * width + thread) * pack;
      if (thread >= width || result >= of.results) return;
      const std::int64_t to = of.kept.other_at(result);
      for (int k = 0; k < pack; ++k) {
        if (partial != nullptr) {
          partial[part * of.results + result + k] = all[thread].values[k];
        } else {
          y[to + k * stride] = finished<Out>(all[thread].values[k], of.mean_of);
        }
      }
    });
  }
};

/// Launches one stage: all parts of `of` to `partial`, or finished results to y.
template <class In, class Out, class Step, int pack>
void launch_reduction(const Gpu& gpu, const char* name, bool rows, const In* x, Out* y,
                      typename Step::Result* partial, const Reduction& of, void* queue,
                      typename Step::Result start) {
  const int processors = gpu->properties.multiprocessors;
  LaunchShape shape;
  shape.threads = column_threads;
  if (rows && of.count > most_of_group) {
    const ReduceRows<In, Out, Step, pack, true> body{x, y, partial, of, column_threads, start};
    shape.blocks = blocks_for(processors, of.results * of.parts, 1);
    gpu->launch(launch_of(name, shape, body), queue);
  } else if (rows) {
    const int team = std::min(32, power_of_two_from((of.count + 4 * pack - 1) / (4 * pack)));
    const ReduceRows<In, Out, Step, pack, false> body{x, y, partial, of, team, start};
    const int teams = column_threads / team;
    shape.blocks = blocks_for(processors, of.results * of.parts, teams);
    gpu->launch(launch_of(name, shape, body), queue);
  } else {
    ReduceColumns<In, Out, Step, pack> body{x, y, partial, of, 1, 0, 1, start};
    const std::int64_t packs = of.results / pack;
    body.width = width_of_columns(packs, of.count);
    body.tiles = (packs + body.width - 1) / body.width;
    body.stride = of.kept.last_other_stride();
    shape.blocks = static_cast<unsigned>(body.tiles * of.parts);
    shape.shared_bytes = column_threads * sizeof(Several<typename Step::Result, pack>);
    gpu->launch(launch_of(name, shape, body), queue);
  }
}

template <class T, template <class> class Step>
void reduce(const Gpu& gpu, const char* name, const ReductionPlan& plan, const KernelArguments& a) {
  using Result = typename Step<T>::Result;
  if (plan.first.results == 0) return;
  const T* x = static_cast<const T*>(a.inputs[0]);
  T* y = static_cast<T*>(a.outputs[0]);
  const Result start = Step<T>::start();
  Result* const partial = plan.first.parts == 1 ? nullptr : static_cast<Result*>(a.workspace);
  const auto launch = [&](auto pack) {
    launch_reduction<T, T, Step<T>, pack>(gpu, name, plan.rows, x, y, partial, plan.first, a.queue,
                                          start);
  };
  if constexpr (is_floating<T>) {
    if (plan.pack > 1 && takes_packs<T>(x, 0)) {
      launch(std::integral_constant<int, full_pack<T>>{});
    } else {
      launch(std::integral_constant<int, 1>{});
    }
    if (partial == nullptr) return;
    launch_reduction<Result, T, Step<Result>, 1>(gpu, name, plan.rows, partial, y, nullptr,
                                                 plan.second, a.queue, start);
  } else {
    launch(std::integral_constant<int, 1>{});
  }
}

}  // namespace tandem::cuda::reductions
