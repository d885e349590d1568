// BatchNormalization with given statistics and with the batch's, and its gradient: sums of parts of
// channels, then coefficients of channels, then all elements.
#include "kernels/cuda/reductions/batch_normalization.h"

#include <numeric>

namespace tandem::cuda::reductions {

/// With given statistics: c0 = mean, c1 = scale / sqrt(var + epsilon), c2 = bias.
struct GivenStatistics {
  static constexpr int block_threads = column_threads;

  Floats scale, bias, mean, var;
  MapsWorkspace workspace;
  float epsilon;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    block.each([&](int thread) {
      const std::int64_t c = static_cast<std::int64_t>(block.index()) * block.threads() + thread;
      if (c >= workspace.channels) return;
      workspace.coefficient(0, c) = mean.get(c);
      workspace.coefficient(1, c) = scale.get(c) / std::sqrt(var.get(c) + epsilon);
      workspace.coefficient(2, c) = bias.get(c);
    });
  }
};

/// The batch's mean m, its variance v and rstd = 1 / sqrt(v + epsilon); the running statistics,
/// momentum old + (1 - momentum) new, which may lie where the old ones do; and c0 = m,
/// c1 = scale rstd, c2 = bias.
struct BatchStatistics {
  static constexpr int block_threads = column_threads;

  Floats scale, bias, old_mean, old_var, new_mean, new_var;
  float* saved_mean;  // null: it is not read
  float* saved_rstd;
  MapsWorkspace workspace;
  std::int64_t count, parts, unit;  // per channel: rows or packs, and elements of one
  float epsilon, momentum;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    join_parts<MomentSums>(
        block, workspace.channels, parts,
        [&](std::int64_t part, std::int64_t c) {
          const std::int64_t size =
              part_begin(count, part + 1, parts) - part_begin(count, part, parts);
          return Moments{static_cast<float>(size * unit), workspace.sum(part, 0, c),
                         workspace.sum(part, 1, c)};
        },
        [&](std::int64_t c, const Moments& all) {
          const float var = all.squares / all.count;
          const float rstd = 1 / std::sqrt(var + epsilon);
          workspace.coefficient(0, c) = all.mean;
          workspace.coefficient(1, c) = scale.get(c) * rstd;
          workspace.coefficient(2, c) = bias.get(c);
          const float before_mean = old_mean.get(c), before_var = old_var.get(c);
          new_mean.set(c, momentum * before_mean + (1 - momentum) * all.mean);
          new_var.set(c, momentum * before_var + (1 - momentum) * var);
          if (saved_mean != nullptr) saved_mean[c] = all.mean;
          if (saved_rstd != nullptr) saved_rstd[c] = rstd;
        });
  }
};

/// dbias = sum(dy), dscale = rstd sum(dy (x - mean)); with M elements a channel, c0 = scale rstd,
/// c1 = dbias / M, c2 = rstd dscale / M, c3 = mean.
struct GradientTotals {
  static constexpr int block_threads = column_threads;

  Floats scale, dscale, dbias;
  const float* mean;
  const float* rstd;
  MapsWorkspace workspace;
  std::int64_t parts, elements;  // per channel

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    join_parts<GradientSums>(
        block, workspace.channels, parts,
        [&](std::int64_t part, std::int64_t c) {
          return Several<float, 2>{{workspace.sum(part, 0, c), workspace.sum(part, 1, c)}};
        },
        [&](std::int64_t c, const Several<float, 2>& all) {
          const float r = rstd[c], slope = all.values[1] * r;
          const auto number = static_cast<float>(elements);
          dbias.set(c, all.values[0]);
          dscale.set(c, slope);
          workspace.coefficient(0, c) = scale.get(c) * r;
          workspace.coefficient(1, c) = all.values[0] / number;
          workspace.coefficient(2, c) = r * slope / number;
          workspace.coefficient(3, c) = mean[c];
        });
  }
};

namespace {

// The launches of one node, for elements of type T.
template <class T>
struct Launches {
  const Gpu& gpu;
  Maps maps;
  std::int64_t parts;
  MapsWorkspace workspace;
  void* queue;
  bool packs;  // the addresses and runs of all maps allow packs

  int pack() const { return packs ? full_pack<T> : 1; }
  /// Rows, or packs, of a channel, and elements of one.
  std::int64_t unit() const { return maps.innermost ? 1 : pack(); }
  std::int64_t units() const { return maps.of_channel() / unit(); }

  // f(pack, innermost)
  template <class F>
  void choose(F f) const {
    constexpr auto full = std::integral_constant<int, full_pack<T>>{};
    constexpr auto one = std::integral_constant<int, 1>{};
    if (maps.innermost) {
      packs ? f(full, std::true_type{}) : f(one, std::true_type{});
    } else {
      packs ? f(full, std::false_type{}) : f(one, std::false_type{});
    }
  }

  template <class Sums>
  void sum(const char* name, const T* x, const T* dy, const float* means) const {
    choose([&](auto pack, auto innermost) {
      ChannelSums<T, pack, innermost, Sums> body{.x = x,
                                                 .dy = dy,
                                                 .means = means,
                                                 .workspace = workspace,
                                                 .count = units(),
                                                 .parts = parts,
                                                 .tiles = maps.channels,
                                                 .channels = maps.channels,
                                                 .plane = maps.plane,
                                                 .width = 1,
                                                 .images = {}};
      std::size_t results = 1;
      if (maps.innermost) {
        const std::int64_t packs_of_row = maps.channels / pack;
        body.width = std::min(32, power_of_two_from(packs_of_row));
        body.tiles = (packs_of_row + body.width - 1) / body.width;
        results = pack;
      } else {
        body.images = Division(maps.plane / pack, units());
      }
      const LaunchShape shape{
          .blocks = static_cast<unsigned>(body.tiles * parts),
          .threads = column_threads,
          .shared_bytes = column_threads * results * sizeof(typename Sums::Result)};
      gpu->launch(launch_of(name, shape, body), queue);
    });
  }

  template <class Body>
  void by_channels(const char* name, const Body& body, int width, std::size_t shared) const {
    const LaunchShape shape{.blocks = static_cast<unsigned>((maps.channels + width - 1) / width),
                            .threads = column_threads,
                            .shared_bytes = column_threads * shared};
    gpu->launch(launch_of(name, shape, body), queue);
  }

  template <bool gradient>
  void apply(const char* name, const T* x, const T* dy, T* to) const {
    choose([&](auto pack, auto innermost) {
      const std::int64_t count = maps.elements() / pack;
      const ApplyChannels<T, pack, innermost, gradient> body{
          .x = x,
          .dy = dy,
          .to = to,
          .workspace = workspace,
          .packs = count,
          .run = Division(maps.run() / pack, count),
          .by_channels = Division(maps.channels, maps.images * maps.channels)};
      LaunchShape shape;
      shape.threads = column_threads;
      shape.blocks = blocks_for(*gpu, count, column_threads);
      if (maps.innermost) {  // a thread keeps its channels where its steps are whole rows
        const std::int64_t packs_of_row = maps.channels / pack;
        const auto whole = static_cast<unsigned>(
            packs_of_row / std::gcd(packs_of_row, std::int64_t{column_threads}));
        if (shape.blocks > whole) shape.blocks -= shape.blocks % whole;
      }
      gpu->launch(launch_of(name, shape, body), queue);
    });
  }
};

// What is known before the run, and the frame of each run.
struct Prepared {
  Gpu gpu;
  Maps maps;
  std::int64_t parts = 0;

  Prepared(const KernelRequest& request, std::size_t x, const Gpu& on, bool sums)
      : gpu(on), maps(maps_of(request.inputs[x])) {
    const DType dtype = request.inputs[x].type.dtype;
    const int pack = dtype == DType::float32 ? full_pack<float> : full_pack<Half>;
    if (sums) {
      parts =
          parts_of_maps(maps, maps.run() % pack == 0 ? pack : 1, gpu->properties.multiprocessors);
    }
  }
  std::size_t workspace_bytes() const { return MapsWorkspace::bytes(maps, parts); }

  template <class T>
  Launches<T> launches(const KernelArguments& a, const T* x, const T* dy, const T* to) const {
    const std::int64_t run = maps.run();
    const bool packs = takes_packs<T>(x, run) && takes_packs<T>(dy, run) && takes_packs<T>(to, run);
    return {gpu, maps, parts, {static_cast<float*>(a.workspace), maps.channels}, a.queue, packs};
  }
};

template <bool training>
std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request, const Gpu& gpu) {
  const Prepared of(request, 0, gpu, training);
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  [[maybe_unused]] const auto momentum =
      training ? static_cast<float>(request.attributes().number("momentum")) : 0.0f;
  DType types[5];
  for (int i = 0; i < 5; ++i) types[i] = request.inputs[i].type.dtype;
  return with_float(types[0], [&](auto tag) {
    using T = decltype(tag);
    return prepared(
        [=](const KernelArguments& a) {
          if (of.maps.elements() == 0) return;
          const auto in = [&](int i) { return Floats(a.inputs[i], types[i]); };
          const T* x = static_cast<const T*>(a.inputs[0]);
          T* y = static_cast<T*>(a.outputs[0]);
          const auto launches = of.launches<T>(a, x, nullptr, y);
          if constexpr (training) {
            launches.template sum<MomentSums>("batch_normalization_sums", x, nullptr, nullptr);
            const BatchStatistics statistics{in(1),
                                             in(2),
                                             in(3),
                                             in(4),
                                             Floats(a.outputs[1], types[3]),
                                             Floats(a.outputs[2], types[4]),
                                             static_cast<float*>(a.outputs[3]),
                                             static_cast<float*>(a.outputs[4]),
                                             launches.workspace,
                                             launches.units(),
                                             of.parts,
                                             launches.unit(),
                                             epsilon,
                                             momentum};
            launches.by_channels("batch_normalization_statistics", statistics, 8, sizeof(Moments));
            if (y == nullptr) return;
          } else {
            const GivenStatistics given{in(1), in(2), in(3), in(4), launches.workspace, epsilon};
            launches.by_channels("batch_normalization_coefficients", given, column_threads, 0);
          }
          launches.template apply<false>(
              training ? "batch_normalization_training" : "batch_normalization", x, nullptr, y);
        },
        of.workspace_bytes());
  });
}

std::unique_ptr<PreparedKernel> prepare_gradient(const KernelRequest& request, const Gpu& gpu) {
  const Prepared of(request, 1, gpu, true);
  const DType scale_type = request.inputs[2].type.dtype;
  return with_float(request.inputs[1].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared(
        [=](const KernelArguments& a) {
          if (of.maps.channels == 0) return;
          const T* dy = static_cast<const T*>(a.inputs[0]);
          const T* x = static_cast<const T*>(a.inputs[1]);
          const float* mean = static_cast<const float*>(a.inputs[3]);
          T* dx = static_cast<T*>(a.outputs[0]);
          const auto launches = of.launches<T>(a, x, dy, dx);
          if (of.parts > 0)
            launches.template sum<GradientSums>("batch_normalization_grad_sums", x, dy, mean);
          const GradientTotals totals{Floats(a.inputs[2], scale_type),
                                      Floats(a.outputs[1], scale_type),
                                      Floats(a.outputs[2], scale_type),
                                      mean,
                                      static_cast<const float*>(a.inputs[4]),
                                      launches.workspace,
                                      of.parts,
                                      of.maps.of_channel()};
          launches.by_channels("batch_normalization_grad_totals", totals, 8,
                               sizeof(Several<float, 2>));
          if (dx != nullptr && of.parts > 0)
            launches.template apply<true>("batch_normalization_grad", x, dy, dx);
        },
        of.workspace_bytes());
  });
}

}  // namespace

void add_batch_normalization(KernelList& list, const Gpu& gpu) {
  const auto refuse = only_floats({0, 1, 2, 3, 4});
  const auto propose = [](const KernelRequest& r) { return propose_maps(r, 0, {0}, {0}); };
  list.push_back({"cuda.batch_normalization", "BatchNormalization", refuse, propose,
                  on(gpu, prepare_forward<false>)});
  list.push_back({"cuda.batch_normalization_training", "BatchNormalizationTraining", refuse,
                  propose, on(gpu, prepare_forward<true>)});
  list.push_back({"cuda.batch_normalization_grad", "BatchNormalizationGrad", refuse,
                  [](const KernelRequest& r) {
                    return propose_maps(r, 1, {0, 1}, {0});
                  },
                  on(gpu, prepare_gradient)});
}

}  // namespace tandem::cuda::reductions
