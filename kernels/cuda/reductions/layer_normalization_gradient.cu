// The gradient of LayerNormalization. dx takes one pass over dy and x, in which every block also
// sums up dscale and dbias over its rows; a second kernel adds up the blocks. Rows that do not fit
// a block's registers take a kernel of their own for the sums.
#include "kernels/cuda/reductions/layer_normalization.h"

namespace tandem::cuda::reductions {

constexpr int group_values = 8, block_values = 8;  // numbers of a row that a thread holds

template <class T>
struct LayerGradient {
  const T* dy;
  const T* x;
  const T* scale;
  const float* means;
  const float* rstds;
  T* dx;           // null: it is not read
  float* partial;  // [blocks, 2, length]: sums of dy n and of dy; null: none here
};

/// With n = (x - mean) rstd, g = dy scale and means over the row:
/// dx = rstd (g - mean(g) - n mean(g n)).
template <class T, int pack, int values, bool whole>
struct LayerGradRows {
  static constexpr int block_threads = row_threads(whole);

  LayerGradient<T> of;
  Rows rows;

  // Values of one tile: dy and n, and once these are summed up, g in place of dy.
  struct State {
    Registers<values> dy, normal, dscale, dbias;
  };

  TANDEM_HOST_DEVICE void load_normal(std::int64_t row, std::int64_t start, int member,
                                      State& s) const {
    const std::int64_t at = row * rows.length + start;
    const int left = rows.left(start, rows.team * values);
    const float mean = of.means[row], rstd = of.rstds[row];
    load_tile<pack>(of.dy + at, left, member, rows.team, 0, s.dy);
    load_tile<pack>(of.x + at, left, member, rows.team, mean, s.normal);
    TANDEM_UNROLL
    for (int i = 0; i < values; ++i) s.normal.values[i] = (s.normal.values[i] - mean) * rstd;
  }

  TANDEM_HOST_DEVICE void scale_dy(std::int64_t start, int member, State& s) const {
    TANDEM_UNROLL
    for (int k = 0; k < values / pack; ++k) {
      const int column = column_of<pack>(k * pack, member, rows.team);
      if (column >= rows.left(start, rows.team * values)) continue;
      float factor[pack];
      load_pack<pack>(of.scale + start + column, factor);
      TANDEM_UNROLL
      for (int i = 0; i < pack; ++i) s.dy.values[k * pack + i] *= factor[i];
    }
  }

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    const int size = team * values;
    const bool fits = rows.length <= size;
    const auto count = static_cast<float>(rows.length);
    typename Block::template Private<State> state;
    typename Block::template Private<float> part, other;
    block.each([&](int thread) {
      TANDEM_UNROLL
      for (int i = 0; i < values; ++i) {
        state(thread).dscale.values[i] = 0;
        state(thread).dbias.values[i] = 0;
      }
    });
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        State& s = state(thread);
        part(thread) = 0;
        other(thread) = 0;
        for (std::int64_t start = 0; start < rows.length && row < rows.count; start += size) {
          load_normal(row, start, thread % team, s);
          if (of.partial != nullptr) {
            TANDEM_UNROLL
            for (int i = 0; i < values; ++i) {
              s.dscale.values[i] += s.dy.values[i] * s.normal.values[i];
              s.dbias.values[i] += s.dy.values[i];
            }
          }
          scale_dy(start, thread % team, s);
          float sum = 0, with_normal = 0;
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i) {
            sum += s.dy.values[i];
            with_normal += s.dy.values[i] * s.normal.values[i];
          }
          part(thread) += sum;
          other(thread) += with_normal;
        }
      });
      if (of.dx == nullptr) continue;
      const auto sum = combined<whole>(block, part, team, SumOf{});
      const auto with_normal = combined<whole>(block, other, team, SumOf{});
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        if (row >= rows.count) return;
        const int member = thread % team;
        const float rstd = of.rstds[row], mean_g = sum(thread) / count;
        const float mean_g_n = with_normal(thread) / count;
        State& s = state(thread);
        for (std::int64_t start = 0; start < rows.length; start += size) {
          if (!fits) {
            load_normal(row, start, member, s);
            scale_dy(start, member, s);
          }
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i)
            s.dy.values[i] = rstd * (s.dy.values[i] - mean_g - s.normal.values[i] * mean_g_n);
          store_tile<pack>(of.dx + row * rows.length + start, rows.left(start, size), member, team,
                           s.dy);
        }
      });
    }
    if (of.partial == nullptr) return;
    write_partial(block, 0, [&](int thread) { return state(thread).dscale; });
    write_partial(block, 1, [&](int thread) { return state(thread).dbias; });
  }

  // A block's sums over its rows, which fit a tile.
  template <class Block, class Get>
  TANDEM_HOST_DEVICE void write_partial(Block& block, int which, Get get) const {
    float* const to = of.partial + (block.index() * std::int64_t{2} + which) * rows.length;
    if constexpr (whole) {
      block.each([&](int thread) {
        constexpr int floats = pack < 4 ? pack : 4;
        const Registers<values> own = get(thread);
        TANDEM_UNROLL
        for (int i = 0; i < values; i += floats) {
          const int column = column_of<pack>(i, thread, rows.team);
          if (column < rows.length) store_pack<floats>(to + column, own.values + i);
        }
      });
    } else {
      typename Block::template Private<Several<float, values>> sums;
      block.each([&](int thread) {
        const Registers<values> own = get(thread);
        TANDEM_UNROLL
        for (int i = 0; i < values; ++i) sums(thread).values[i] = own.values[i];
      });
      const auto* all = combined_columns(block, sums, rows.team, EachOf<SumOf>{});
      block.each([&](int thread) {
        if (thread >= rows.team) return;
        for (int i = 0; i < values; ++i) {
          const int column = column_of<pack>(i, thread, rows.team);
          if (column < rows.length) to[column] = all[thread].values[i];
        }
      });
    }
  }
};

/// The sums of long rows: [parts, 2, length] as above, a part being some rows.
template <class T>
struct LayerColumns {
  static constexpr int block_threads = column_threads, width = 32;

  LayerGradient<T> of;
  std::int64_t rows, length, tiles, parts;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t tile = block.index() % tiles, part = block.index() / tiles;
    const std::int64_t end = part_begin(rows, part + 1, parts);
    const int lanes = block.threads() / width;
    typename Block::template Private<Several<float, 2>> sums;
    block.each([&](int thread) {
      const std::int64_t column = tile * width + thread % width;
      Several<float, 2> own{{0, 0}};
      for (std::int64_t row = part_begin(rows, part, parts) + thread / width;
           row < end && column < length; row += lanes) {
        const float dy = widened(of.dy[row * length + column]);
        const float x = widened(of.x[row * length + column]);
        own.values[0] += dy * ((x - of.means[row]) * of.rstds[row]);
        own.values[1] += dy;
      }
      sums(thread) = own;
    });
    const auto* all = combined_columns(block, sums, width, EachOf<SumOf>{});
    block.each([&](int thread) {
      const std::int64_t column = tile * width + thread;
      if (thread >= width || column >= length) return;
      of.partial[2 * part * length + column] = all[thread].values[0];
      of.partial[(2 * part + 1) * length + column] = all[thread].values[1];
    });
  }
};

/// dscale and dbias from [parts, 2, length].
template <class T>
struct LayerTotals {
  static constexpr int block_threads = column_threads, width = 8;

  const float* partial;
  T* dscale;  // null: it is not read
  T* dbias;
  std::int64_t parts, length;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int lanes = block.threads() / width;
    typename Block::template Private<float> sums;
    block.each([&](int thread) {
      const std::int64_t column = block.index() * std::int64_t{width} + thread % width;
      float sum = 0;
      for (std::int64_t part = thread / width; part < parts && column < 2 * length; part += lanes)
        sum += partial[part * 2 * length + column];
      sums(thread) = sum;
    });
    const float* all = combined_columns(block, sums, width, SumOf{});
    block.each([&](int thread) {
      const std::int64_t column = block.index() * std::int64_t{width} + thread;
      if (thread >= width || column >= 2 * length) return;
      T* const to = column < length ? dscale : dbias;
      if (to != nullptr) to[column < length ? column : column - length] = stored<T>(all[thread]);
    });
  }
};

namespace {

struct Plan {
  RowShape shape;
  bool apart = false;  // sums take a kernel of their own
  std::int64_t tiles = 0, parts = 0;
};

Plan plan_of(const LayerShape& x, bool sums, int multiprocessors) {
  Plan plan;
  plan.shape = shape_of_rows<group_values, block_values>(x.rows, x.length, multiprocessors);
  if (!sums || x.rows == 0) return plan;
  const auto threads = static_cast<std::int64_t>(plan.shape.launch.threads);
  plan.apart = plan.shape.kind == RowShape::block && x.length > threads * block_values;
  if (plan.apart) {
    plan.tiles = (x.length + 31) / 32;
    plan.parts = parts_of((x.rows + 7) / 8, plan.tiles, multiprocessors, 8);
  } else {
    // Fewer blocks than for only dx: each writes as much as four rows.
    const std::int64_t teams = threads / plan.shape.team;
    const std::int64_t steps = (x.rows + teams - 1) / teams;
    plan.parts = parts_of(steps, 1, multiprocessors, static_cast<int>(1024 / threads));
    plan.shape.launch.blocks = static_cast<unsigned>(plan.parts);
    if (plan.shape.kind == RowShape::few)
      plan.shape.launch.shared_bytes = row_threads(false) * sizeof(Several<float, group_values>);
  }
  return plan;
}

template <class T>
struct Gradient {
  Gpu gpu;
  LayerShape shape;
  Plan plan;
  bool sums;

  void operator()(const KernelArguments& a) const {
    const auto in = [&](int i) { return static_cast<const T*>(a.inputs[i]); };
    const auto out = [&](int i) { return static_cast<T*>(a.outputs[i]); };
    LayerGradient<T> of{in(0),
                        in(1),
                        in(2),
                        static_cast<const float*>(a.inputs[3]),
                        static_cast<const float*>(a.inputs[4]),
                        out(0),
                        static_cast<float*>(a.workspace)};
    if (shape.length == 0) return;
    if (plan.apart) {
      const LayerColumns<T> body{of, shape.rows, shape.length, plan.tiles, plan.parts};
      const LaunchShape launch{.blocks = static_cast<unsigned>(plan.tiles * plan.parts),
                               .threads = column_threads,
                               .shared_bytes = column_threads * sizeof(Several<float, 2>)};
      gpu->launch(launch_of("layer_normalization_sums", launch, body), a.queue);
    }
    if (plan.apart || !sums) of.partial = nullptr;
    if (shape.rows > 0 && (of.dx != nullptr || of.partial != nullptr)) run_rows(of, a.queue);
    if (!sums) return;
    const LayerTotals<T> body{static_cast<const float*>(a.workspace), out(1), out(2), plan.parts,
                              shape.length};
    const LaunchShape launch{.blocks = static_cast<unsigned>((2 * shape.length + 7) / 8),
                             .threads = column_threads,
                             .shared_bytes = column_threads * sizeof(float)};
    gpu->launch(launch_of("layer_normalization_totals", launch, body), a.queue);
  }

  void run_rows(const LayerGradient<T>& of, void* queue) const {
    const std::int64_t length = shape.length;
    const bool packs = takes_packs<T>(of.dy, length) && takes_packs<T>(of.x, length) &&
                       takes_packs<T>(of.scale, length) && takes_packs<T>(of.dx, length);
    const Rows rows{shape.rows, length, plan.shape.team};
    with_row_kernel<T, group_values, block_values>(
        packs, plan.shape.kind, [&](auto pack, auto values, auto whole) {
          const LayerGradRows<T, pack, values, whole> body{of, rows};
          gpu->launch(launch_of("layer_normalization_grad", plan.shape.launch, body), queue);
        });
  }
};

std::unique_ptr<PreparedKernel> prepare_gradient(const KernelRequest& request, const Gpu& gpu) {
  const LayerShape shape = layer_shape(request, 1);
  const bool sums = request.outputs[1].present || request.outputs[2].present;
  const Plan plan = plan_of(shape, sums, gpu->properties.multiprocessors);
  const std::size_t workspace =
      static_cast<std::size_t>(2 * plan.parts * shape.length) * sizeof(float);
  return with_float(request.inputs[1].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared(Gradient<T>{gpu, shape, plan, sums}, workspace);
  });
}

}  // namespace

void add_layer_normalization_gradient(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.layer_normalization_grad", "LayerNormalizationGrad", only_floats({1}),
                on(gpu, prepare_gradient));
}

}  // namespace tandem::cuda::reductions
