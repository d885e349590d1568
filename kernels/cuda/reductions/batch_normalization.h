// Feature maps by channel (axis 1), channels innermost or in planes, for batch normalisation.
#pragma once

#include "kernels/cuda/reductions/moments.h"
#include "kernels/cuda/reductions/reductions.h"
#include "kernels/cuda/reductions/walk.h"

namespace tandem::cuda::reductions {

/// x as [images, channels, plane], or, innermost, as [images * plane, channels].
struct Maps {
  std::int64_t images = 1, channels = 1, plane = 1;
  bool innermost = false;

  std::int64_t of_channel() const { return images * plane; }
  std::int64_t elements() const { return images * channels * plane; }
  /// What has to be a multiple of a pack.
  std::int64_t run() const { return innermost ? channels : plane; }
};

inline Maps maps_of(const Operand& operand) {
  const Shape& shape = operand.type.shape;
  Maps maps;
  maps.images = shape[0];
  maps.channels = shape[1];
  for (std::size_t i = 2; i < shape.size(); ++i) maps.plane *= shape[i];
  maps.innermost = shape.size() == 2 || maps.plane == 1 || !is_row_major(operand.layout, shape);
  return maps;
}

/// Into how many parts each channel's sums are cut.
inline std::int64_t parts_of_maps(const Maps& maps, int pack, int multiprocessors) {
  if (maps.elements() == 0) return 0;
  if (!maps.innermost)
    return parts_of((maps.of_channel() + column_threads - 1) / column_threads, maps.channels,
                    multiprocessors, 8);
  const std::int64_t packs = (maps.channels + pack - 1) / pack;
  const int width = std::min(32, power_of_two_from(packs)), lanes = column_threads / width;
  return parts_of((maps.of_channel() + lanes - 1) / lanes, (packs + width - 1) / width,
                  multiprocessors, 4);
}

/// A kernel's workspace: four coefficients of each channel, then two sums of each channel and part,
/// both with channels innermost.
struct MapsWorkspace {
  float* base = nullptr;
  std::int64_t channels = 0;

  static std::size_t bytes(const Maps& maps, std::int64_t parts) {
    return static_cast<std::size_t>((4 + 2 * parts) * maps.channels) * sizeof(float);
  }
  TANDEM_HOST_DEVICE float& coefficient(int k, std::int64_t c) const {
    return base[k * channels + c];
  }
  TANDEM_HOST_DEVICE float& sum(std::int64_t part, int k, std::int64_t c) const {
    return base[(4 + 2 * part + k) * channels + c];
  }
};

// The sums of channels: two kinds. A state sums up values of one channel; results are joined.

/// Mean and squared deviations. A thread's sums are of x - shift, its first x.
struct MomentSums {
  static constexpr bool gradient = false;
  using Join = JoinMoments;
  using Result = Moments;

  struct State {
    float shift = 0, sum = 0, squares = 0;

    TANDEM_HOST_DEVICE void add(float x, float, float, bool first) {
      if (first) shift = x;
      const float shifted = x - shift;
      sum += shifted;
      squares += shifted * shifted;
    }
    TANDEM_HOST_DEVICE Moments result(std::int64_t count) const {
      if (count == 0) return {0, 0, 0};
      const auto n = static_cast<float>(count);
      const float between = sum / n, rest = squares - between * sum;
      return {n, shift + between, rest < 0 ? 0 : rest};
    }
  };
  TANDEM_HOST_DEVICE static float first(const Moments& m) { return m.mean; }
  TANDEM_HOST_DEVICE static float second(const Moments& m) { return m.squares; }
};

/// Sums of dy and of dy (x - mean).
struct GradientSums {
  static constexpr bool gradient = true;
  using Join = EachOf<SumOf>;
  using Result = Several<float, 2>;

  struct State {
    float sum = 0, product = 0;

    TANDEM_HOST_DEVICE void add(float x, float dy, float mean, bool) {
      sum += dy;
      product += dy * (x - mean);
    }
    TANDEM_HOST_DEVICE Result result(std::int64_t) const { return {{sum, product}}; }
  };
  TANDEM_HOST_DEVICE static float first(const Result& r) { return r.values[0]; }
  TANDEM_HOST_DEVICE static float second(const Result& r) { return r.values[1]; }
};

/// Both sums of each channel and part. Innermost: a block is a part of the rows of `width` packs of
/// channels, each of which 256 / width threads share; else of one channel's elements. Parts are
/// counted in rows, or in packs.
template <class T, int pack, bool innermost, class Sums>
struct ChannelSums {
  static constexpr int block_threads = column_threads, ahead = 4;

  const T* x;
  const T* dy;         // only for a gradient
  const float* means;  // only for a gradient
  MapsWorkspace workspace;
  std::int64_t count, parts, tiles;  // rows or packs of a channel; tiles of channels
  std::int64_t channels, plane;
  int width;
  Division images;  // by packs of a plane

  TANDEM_HOST_DEVICE std::int64_t place(std::int64_t i, std::int64_t c) const {
    if constexpr (innermost) return i * channels + c;
    const std::int64_t image = images.divide(i);
    return (image * channels + c) * plane + i * pack;
  }

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    using Result = typename Sums::Result;
    using Results = Several<Result, innermost ? pack : 1>;
    const std::int64_t tile = block.index() % tiles, part = block.index() / tiles;
    const std::int64_t begin = part_begin(count, part, parts),
                       end = part_begin(count, part + 1, parts);
    const int lanes = block.threads() / width;
    typename Block::template Private<Results> results;
    block.each([&](int thread) {
      const std::int64_t c = innermost ? (tile * width + thread % width) * pack : tile;
      typename Sums::State states[pack];
      float mean[pack] = {};
      std::int64_t number = 0;
      if (c < channels) {
        if constexpr (Sums::gradient) {
          TANDEM_UNROLL
          for (int k = 0; k < pack; ++k) mean[k] = means[innermost ? c + k : c];
        }
        for (std::int64_t i = begin + thread / width; i < end; i += ahead * lanes) {
          float values[ahead][pack], slopes[ahead][pack];
          TANDEM_UNROLL
          for (int j = 0; j < ahead; ++j) {
            if (i + j * lanes >= end) continue;
            const std::int64_t at = place(i + j * lanes, c);
            load_pack<pack>(x + at, values[j]);
            if constexpr (Sums::gradient) load_pack<pack>(dy + at, slopes[j]);
          }
          TANDEM_UNROLL
          for (int j = 0; j < ahead; ++j) {
            if (i + j * lanes >= end) continue;
            TANDEM_UNROLL
            for (int k = 0; k < pack; ++k) {
              const float slope = Sums::gradient ? slopes[j][k] : 0.0f;
              states[k].add(values[j][k], slope, mean[k], number == 0);
            }
            ++number;
          }
        }
      }
      if constexpr (innermost) {
        TANDEM_UNROLL
        for (int k = 0; k < pack; ++k) results(thread).values[k] = states[k].result(number);
      } else {
        Result all = states[0].result(number);
        TANDEM_UNROLL
        for (int k = 1; k < pack; ++k) all = typename Sums::Join{}(all, states[k].result(number));
        results(thread).values[0] = all;
      }
    });
    const Results* all = combined_columns(block, results, width, EachOf<typename Sums::Join>{});
    block.each([&](int thread) {
      const std::int64_t c = innermost ? (tile * width + thread) * pack : tile;
      if (thread >= width || c >= channels) return;
      for (int k = 0; k < (innermost ? pack : 1); ++k) {
        workspace.sum(part, 0, c + k) = Sums::first(all[thread].values[k]);
        workspace.sum(part, 1, c + k) = Sums::second(all[thread].values[k]);
      }
    });
  }
};

/// Joins the parts of `width` channels a block; `finish(channel, result)` takes them.
template <class Sums, class Block, class Get, class Finish>
TANDEM_HOST_DEVICE inline void join_parts(Block& block, std::int64_t channels, std::int64_t parts,
                                          Get get, Finish finish) {
  constexpr int width = 8;
  const int lanes = block.threads() / width;
  typename Block::template Private<Several<typename Sums::Result, 1>> results;
  block.each([&](int thread) {
    const std::int64_t c = block.index() * std::int64_t{width} + thread % width;
    typename Sums::Result all = {};
    for (std::int64_t part = thread / width; part < parts && c < channels; part += lanes)
      all = typename Sums::Join{}(all, get(part, c));
    results(thread).values[0] = all;
  });
  const auto* all = combined_columns(block, results, width, EachOf<typename Sums::Join>{});
  block.each([&](int thread) {
    const std::int64_t c = block.index() * std::int64_t{width} + thread;
    if (thread < width && c < channels) finish(c, all[thread].values[0]);
  });
}

/// Forward: y = (x - c0) c1 + c2. Gradient: dx = c0 (dy - c1 - (x - c3) c2), c being the
/// coefficients of the channel.
template <class T, int pack, bool innermost, bool gradient>
struct ApplyChannels {
  static constexpr int block_threads = column_threads, ahead = gradient ? 2 : 4;

  const T* x;
  const T* dy;
  T* to;
  MapsWorkspace workspace;
  std::int64_t packs;
  Division run, by_channels;  // packs of a plane, or of all channels; channels of an image

  TANDEM_HOST_DEVICE std::int64_t channel_of(std::int64_t i) const {
    std::int64_t rest = i;
    const std::int64_t runs = run.divide(rest);
    if constexpr (innermost) return rest * pack;
    std::int64_t c = runs;
    by_channels.divide(c);
    return c;
  }

  struct Coefficients {
    float values[gradient ? 4 : 3][innermost ? pack : 1];
  };

  TANDEM_HOST_DEVICE void read(std::int64_t c, Coefficients& to_fill) const {
    constexpr int of_channels = innermost ? pack : 1, floats = of_channels < 4 ? of_channels : 4;
    TANDEM_UNROLL
    for (int which = 0; which < (gradient ? 4 : 3); ++which) {
      TANDEM_UNROLL
      for (int k = 0; k < of_channels; k += floats)
        load_pack<floats>(&workspace.coefficient(which, c + k), to_fill.values[which] + k);
    }
  }

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t step = static_cast<std::int64_t>(block.blocks()) * block.threads();
    block.each([&](int thread) {
      Coefficients own{};
      std::int64_t channel = -1;
      for (std::int64_t i = static_cast<std::int64_t>(block.index()) * block.threads() + thread;
           i < packs; i += ahead * step) {
        float values[ahead][pack], slopes[ahead][pack];
        TANDEM_UNROLL
        for (int j = 0; j < ahead; ++j) {
          if (i + j * step >= packs) continue;
          load_pack<pack>(x + (i + j * step) * pack, values[j]);
          if constexpr (gradient) load_pack<pack>(dy + (i + j * step) * pack, slopes[j]);
        }
        TANDEM_UNROLL
        for (int j = 0; j < ahead; ++j) {
          if (i + j * step >= packs) continue;
          const std::int64_t c = channel_of(i + j * step);
          if (c != channel) read(channel = c, own);
          TANDEM_UNROLL
          for (int k = 0; k < pack; ++k) {
            const int at = innermost ? k : 0;
            if constexpr (gradient) {
              const float centred = values[j][k] - own.values[3][at];
              values[j][k] = own.values[0][at] *
                             (slopes[j][k] - own.values[1][at] - centred * own.values[2][at]);
            } else {
              values[j][k] =
                  (values[j][k] - own.values[0][at]) * own.values[1][at] + own.values[2][at];
            }
          }
          store_pack<pack>(to + (i + j * step) * pack, values[j]);
        }
      }
    });
  }
};

}  // namespace tandem::cuda::reductions
