// LayerNormalization: rows are all normalised axes at one index of the axes before.
#include "kernels/cuda/reductions/layer_normalization.h"

namespace tandem::cuda::reductions {

/// y = (x - mean) rstd scale + bias, rstd = 1 / sqrt(mean((x - mean)^2) + epsilon). Rows of more
/// than one tile are read three times.
template <class T, int pack, int values, bool whole>
struct LayerRows {
  static constexpr int block_threads = row_threads(whole);

  const T* x;
  const T* scale;
  const T* bias;  // null: none
  T* y;           // null: it is not read
  float* means;   // null: they are not read
  float* rstds;
  Rows rows;
  float epsilon;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int team = rows.team, teams = block.threads() / team;
    const int size = team * values;
    const bool fits = rows.length <= size;
    const auto count = static_cast<float>(rows.length);
    typename Block::template Private<Registers<values>> tile;
    typename Block::template Private<float> part;
    for (std::int64_t first = static_cast<std::int64_t>(block.index()) * teams; first < rows.count;
         first += static_cast<std::int64_t>(block.blocks()) * teams) {
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        float sum = 0;
        for (std::int64_t start = 0; start < rows.length && row < rows.count; start += size) {
          load_tile<pack>(x + row * rows.length + start, rows.left(start, size), thread % team,
                          team, 0, tile(thread));
          float own = 0;
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i) own += tile(thread).values[i];
          sum += own;
        }
        part(thread) = sum;
      });
      const auto sum = combined<whole>(block, part, team, SumOf{});
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        const float mean = sum(thread) / count;
        float squares = 0;
        for (std::int64_t start = 0; start < rows.length && row < rows.count; start += size) {
          const int left = rows.left(start, size);
          if (!fits)
            load_tile<pack>(x + row * rows.length + start, left, thread % team, team, 0,
                            tile(thread));
          float own = 0;
          TANDEM_UNROLL
          for (int i = 0; i < values; ++i) {
            const float centred = tile(thread).values[i] - mean;
            if (column_of<pack>(i, thread % team, team) < left) own += centred * centred;
          }
          squares += own;
        }
        part(thread) = squares;
      });
      const auto squares = combined<whole>(block, part, team, SumOf{});
      block.each([&](int thread) {
        const std::int64_t row = first + thread / team;
        if (row >= rows.count) return;
        const float mean = sum(thread) / count;
        const float rstd = 1 / std::sqrt(squares(thread) / count + epsilon);
        if (thread % team == 0) {
          if (means != nullptr) means[row] = mean;
          if (rstds != nullptr) rstds[row] = rstd;
        }
        if (y != nullptr) write(row, thread % team, mean, rstd, tile(thread));
      });
    }
  }

  TANDEM_HOST_DEVICE void write(std::int64_t row, int member, float mean, float rstd,
                                Registers<values>& tile) const {
    const int team = rows.team;
    const int size = team * values;
    for (std::int64_t start = 0; start < rows.length; start += size) {
      const std::int64_t at = row * rows.length + start;
      const int left = rows.left(start, size);
      if (rows.length > size) load_tile<pack>(x + at, left, member, team, 0, tile);
      TANDEM_UNROLL
      for (int k = 0; k < values / pack; ++k) {
        const int column = column_of<pack>(k * pack, member, team);
        if (column >= left) continue;
        float factor[pack], shift[pack];
        load_pack<pack>(scale + start + column, factor);
        if (bias != nullptr) load_pack<pack>(bias + start + column, shift);
        TANDEM_UNROLL
        for (int i = 0; i < pack; ++i) {
          const float normal = (tile.values[k * pack + i] - mean) * rstd;
          tile.values[k * pack + i] = normal * factor[i] + (bias != nullptr ? shift[i] : 0.0f);
        }
        store_pack<pack>(y + at + column, tile.values + k * pack);
      }
    }
  }
};

namespace {

std::unique_ptr<PreparedKernel> prepare_forward(const KernelRequest& request, const Gpu& gpu) {
  const LayerShape shape_of_x = layer_shape(request, 0);
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  const bool biased = request.is_present(2);
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      const auto in = [&](int i) { return static_cast<const T*>(a.inputs[i]); };
      const std::int64_t count = shape_of_x.rows, length = shape_of_x.length;
      if (count == 0) return;
      const T* bias = biased ? in(2) : nullptr;
      T* y = static_cast<T*>(a.outputs[0]);
      const bool packs = takes_packs<T>(in(0), length) && takes_packs<T>(in(1), length) &&
                         takes_packs<T>(bias, length) && takes_packs<T>(y, length);
      const RowShape shape = shape_of_rows<32, 16>(count, length, gpu->properties.multiprocessors);
      const Rows rows{count, length, shape.team};
      with_row_kernel<T, 32, 16>(packs, shape.kind, [&](auto pack, auto values, auto whole) {
        const LayerRows<T, pack, values, whole> body{in(0),
                                                     in(1),
                                                     bias,
                                                     y,
                                                     static_cast<float*>(a.outputs[1]),
                                                     static_cast<float*>(a.outputs[2]),
                                                     rows,
                                                     epsilon};
        gpu->launch(launch_of("layer_normalization", shape.launch, body), a.queue);
      });
    });
  });
}

}  // namespace

void add_layer_normalization(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.layer_normalization", "LayerNormalization", only_floats({0}),
                on(gpu, prepare_forward));
}

}  // namespace tandem::cuda::reductions
