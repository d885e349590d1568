// GridSample and its gradient: where a place looks is found once for all channels. Sums of an
// element of dx are made by one thread, place by place.
#include "engine/operators/grid_sample.h"

#include <algorithm>
#include <array>

#include "engine/operators/operator.h"
#include "kernels/cpu/maps.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace tandem {
namespace {

constexpr std::size_t most_taps = 512;  // taps of the places that are handled together

/// The elements that some places see: those of place p are starts[p] to starts[p + 1].
struct PlaceTaps {
  std::int64_t starts[most_taps + 1];
  std::int64_t at[most_taps];  // from the first element of a sample and channel
  float weights[most_taps];
  float slopes[3][most_taps];  // derivatives of the weights by the coordinate along each axis of x
};

/// Elements between neighbours of a map [N, C, place], row-major or channels-last.
struct SampleStrides {
  std::int64_t sample, channel, place;

  explicit SampleStrides(const Operand& map) {
    const Shape& shape = map.type.shape;
    std::int64_t places = 1;
    for (std::size_t i = 2; i < shape.size(); ++i) places *= shape[i];
    const bool plain = is_map_row_major(map);
    sample = shape[1] * places;
    channel = plain ? places : 1;
    place = plain ? 1 : shape[1];
  }
};

/// What values and gradients share: shapes, and the taps of places.
struct Sampling {
  GridSampler sampler;
  SampleStrides x, y;
  std::size_t axes;
  std::array<std::int64_t, 3> extents{};
  std::int64_t batch, channels, elements = 1, places = 1;
  std::int64_t block = 1, blocks = 0;  // blocks of places whose taps are found together
  std::int64_t bytes = 0;              // bytes that take about as long to move
  int threads;

  Sampling(const KernelRequest& request, const Operand& x_map, const Operand& y_map)
      : sampler(request.attributes()),
        x(x_map),
        y(y_map),
        axes(x_map.type.rank() - 2),
        batch(x_map.type.shape[0]),
        channels(x_map.type.shape[1]),
        threads(request.facts->threads) {
    const std::string& mode = request.attributes().text("mode");
    const std::int64_t along = mode == "nearest" ? 1 : mode == "cubic" ? 4 : 2;
    std::int64_t taps = 1;
    for (std::size_t i = 0; i < axes; ++i) {
      extents[i] = x_map.type.shape[i + 2];
      elements *= extents[i];
      places *= y_map.type.shape[i + 2];
      taps *= along;
    }
    block = static_cast<std::int64_t>(most_taps) / taps;
    blocks = (places + block - 1) / block;
    bytes = batch * places * taps * (16 * channels + 64);
  }

  bool is_last() const { return x.channel == 1 && y.channel == 1; }

  /// The taps of `count` places of the grid from `coordinates` on.
  void find(const float* coordinates, std::int64_t count, PlaceTaps& to) const {
    std::size_t used = 0;
    for (std::int64_t p = 0; p < count; ++p, coordinates += axes) {
      to.starts[p] = static_cast<std::int64_t>(used);
      const auto keep = [&](std::int64_t element, double weight,
                            const std::array<double, 3>& slopes) {
        to.at[used] = element * x.place;
        to.weights[used] = static_cast<float>(weight);
        for (std::size_t k = 0; k < axes; ++k) to.slopes[k][used] = static_cast<float>(slopes[k]);
        ++used;
      };
      sampler.visit(
          {extents.data(), axes}, [&](std::size_t k) { return coordinates[k]; }, keep);
    }
    to.starts[count] = static_cast<std::int64_t>(used);
  }

  Range places_of(std::int64_t index) const {
    return {index * block, std::min((index + 1) * block, places)};
  }
  std::int64_t grid_place(std::int64_t n, std::int64_t place) const {
    return (n * places + place) * static_cast<std::int64_t>(axes);
  }
};

/// y of `count` places of one sample.
void look_up(const Sampling& s, const PlaceTaps& taps, std::int64_t count, const float* x,
             float* y) {
  if (s.is_last()) {
    for (std::int64_t p = 0; p < count; ++p) {
      float* const row = y + p * s.y.place;
      std::fill_n(row, s.channels, 0.0f);
      for (std::int64_t k = taps.starts[p]; k < taps.starts[p + 1]; ++k) {
        const float* const from = x + taps.at[k];
        const float weight = taps.weights[k];
        for (std::int64_t c = 0; c < s.channels; ++c) row[c] += weight * from[c];
      }
    }
    return;
  }
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const float* const plane = x + c * s.x.channel;
    float* const row = y + c * s.y.channel;
    for (std::int64_t p = 0; p < count; ++p) {
      float sum = 0;
      for (std::int64_t k = taps.starts[p]; k < taps.starts[p + 1]; ++k) {
        sum += taps.weights[k] * plane[taps.at[k]];
      }
      row[p * s.y.place] = sum;
    }
  }
}

/// Adds weight dy to the elements that places see, of some channels of one sample.
void spread(const Sampling& s, const PlaceTaps& taps, std::int64_t count, Range channels,
            const float* dy, float* dx) {
  if (s.is_last()) {
    for (std::int64_t p = 0; p < count; ++p) {
      const float* const row = dy + p * s.y.place;
      for (std::int64_t k = taps.starts[p]; k < taps.starts[p + 1]; ++k) {
        float* const to = dx + taps.at[k];
        const float weight = taps.weights[k];
        for (std::int64_t c = channels.begin; c < channels.end; ++c) to[c] += weight * row[c];
      }
    }
    return;
  }
  for (std::int64_t c = channels.begin; c < channels.end; ++c) {
    const float* const row = dy + c * s.y.channel;
    float* const plane = dx + c * s.x.channel;
    for (std::int64_t p = 0; p < count; ++p) {
      const float change = row[p * s.y.place];
      for (std::int64_t k = taps.starts[p]; k < taps.starts[p + 1]; ++k) {
        plane[taps.at[k]] += taps.weights[k] * change;
      }
    }
  }
}

/// dgrid of `count` places of one sample: sums of dy x over the channels for each tap, times the
/// slopes of its weight.
void grid_gradient(const Sampling& s, const PlaceTaps& taps, std::int64_t count, const float* dy,
                   const float* x, float* dgrid) {
  double sums[most_taps];
  std::fill_n(sums, taps.starts[count], 0.0);
  // Channel by channel where those lie apart: a plane then stays in the cache.
  const std::int64_t together = s.is_last() ? s.channels : 1;
  for (std::int64_t first = 0; first < s.channels; first += together) {
    for (std::int64_t p = 0; p < count; ++p) {
      const float* const changes = dy + first * s.y.channel + p * s.y.place;
      for (std::int64_t k = taps.starts[p]; k < taps.starts[p + 1]; ++k) {
        const float* const from = x + first * s.x.channel + taps.at[k];
        double sum = sums[k];
        for (std::int64_t c = 0; c < together; ++c) {  // their stride is 1 where there are several
          sum += static_cast<double>(changes[c]) * static_cast<double>(from[c]);
        }
        sums[k] = sum;
      }
    }
  }
  for (std::int64_t p = 0; p < count; ++p) {
    float* const to = dgrid + p * static_cast<std::int64_t>(s.axes);
    for (std::size_t axis = 0; axis < s.axes; ++axis) {
      double sum = 0;
      for (std::int64_t k = taps.starts[p]; k < taps.starts[p + 1]; ++k) {
        sum += sums[k] * static_cast<double>(taps.slopes[axis][k]);
      }
      to[s.axes - 1 - axis] = static_cast<float>(sum);
    }
  }
}

std::unique_ptr<PreparedKernel> prepare_grid_sample(const KernelRequest& request) {
  return prepared(
      [s = Sampling(request, request.inputs[0], request.outputs[0])](const KernelArguments& a) {
        const float* x = static_cast<const float*>(a.inputs[0]);
        const float* grid = static_cast<const float*>(a.inputs[1]);
        float* y = static_cast<float*>(a.outputs[0]);
        parallel_ranges(s.threads, s.batch * s.blocks, s.bytes,
                        [&](std::int64_t begin, std::int64_t end) {
                          PlaceTaps taps;
                          for (std::int64_t i = begin; i < end; ++i) {
                            const std::int64_t n = i / s.blocks;
                            const Range places = s.places_of(i % s.blocks);
                            s.find(grid + s.grid_place(n, places.begin), places.size(), taps);
                            look_up(s, taps, places.size(), x + n * s.x.sample,
                                    y + n * s.y.sample + places.begin * s.y.place);
                          }
                        });
      });
}

/// GridSampleGrad. Samples are shared among the threads; where there are fewer, dx by channels and
/// dgrid by places.
class GridSampleGradKernel final : public PreparedKernel {
 public:
  explicit GridSampleGradKernel(const KernelRequest& request)
      : s_(request, request.inputs[1], request.inputs[0]) {
    const std::int64_t batch = std::max<std::int64_t>(s_.batch, 1);
    const std::int64_t most = std::max<std::int64_t>(s_.channels, 1);
    groups_ = std::clamp<std::int64_t>((s_.threads + batch - 1) / batch, 1, most);
  }

  void run(const KernelArguments& a) noexcept override {
    const bool to_x = a.outputs[0] != nullptr, to_grid = a.outputs[1] != nullptr;
    const Range all_blocks{0, s_.blocks}, all_channels{0, s_.channels};
    if (groups_ == 1) {
      each(s_.batch,
           [&](std::int64_t n) { run_part(a, n, all_blocks, all_channels, to_x, to_grid); });
      return;
    }
    if (to_x) {
      each(s_.batch * groups_, [&](std::int64_t i) {
        const Range channels =
            part_of(s_.channels, static_cast<int>(i % groups_), static_cast<int>(groups_));
        run_part(a, i / groups_, all_blocks, channels, true, false);
      });
    }
    if (to_grid) {
      each(s_.batch * s_.blocks, [&](std::int64_t i) {
        const std::int64_t block = i % s_.blocks;
        run_part(a, i / s_.blocks, {block, block + 1}, all_channels, false, true);
      });
    }
  }

 private:
  template <class F>
  void each(std::int64_t count, F&& f) const {
    parallel_ranges(s_.threads, count, s_.bytes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i);
    });
  }

  void run_part(const KernelArguments& a, std::int64_t n, Range blocks, Range channels, bool to_x,
                bool to_grid) const {
    const float* dy = static_cast<const float*>(a.inputs[0]) + n * s_.y.sample;
    const float* x = static_cast<const float*>(a.inputs[1]) + n * s_.x.sample;
    const float* grid = static_cast<const float*>(a.inputs[2]);
    float* dx = to_x ? static_cast<float*>(a.outputs[0]) + n * s_.x.sample : nullptr;
    if (to_x) clear(dx, channels);
    PlaceTaps taps;
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      const Range places = s_.places_of(block);
      const float* changes = dy + places.begin * s_.y.place;
      const std::int64_t at = s_.grid_place(n, places.begin);
      s_.find(grid + at, places.size(), taps);
      if (to_x) spread(s_, taps, places.size(), channels, changes, dx);
      if (to_grid) {
        grid_gradient(s_, taps, places.size(), changes, x, static_cast<float*>(a.outputs[1]) + at);
      }
    }
  }

  void clear(float* dx, Range channels) const {
    if (s_.x.channel != 1) {
      std::fill_n(dx + channels.begin * s_.x.channel, channels.size() * s_.x.channel, 0.0f);
      return;
    }
    for (std::int64_t i = 0; i < s_.elements; ++i) {
      std::fill_n(dx + i * s_.x.place + channels.begin, channels.size(), 0.0f);
    }
  }

  Sampling s_;
  std::int64_t groups_ = 1;
};

/// Maps [N, C, space...] of one kind; the grid, which is the last input, is row-major.
std::vector<Proposal> propose_sampled(const KernelRequest& request) {
  std::vector<Proposal> proposals;
  for (const LayoutConstraint::Kind kind : map_kinds(request.inputs[0])) {
    const std::vector<LayoutConstraint> maps(request.inputs.size() - 1, {kind, {}});
    proposals.push_back({.inputs = maps, .outputs = {{kind, {}}}});
  }
  return proposals;
}

}  // namespace

void add_grid_sample_kernels(KernelList& list) {
  const auto add = [&](const char* name, const char* op, auto prepare) {
    list.push_back({name, op, only_float32({0}), propose_sampled, prepare});
  };
  add("cpu.grid_sample", "GridSample", prepare_grid_sample);
  add("cpu.grid_sample_grad", "GridSampleGrad", makes<GridSampleGradKernel>());
}

}  // namespace tandem
