// Sizes of a recurrent layer on the CPU, how its work is cut, and the parts of its workspace.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "engine/operators/rnn_scan.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/products/packed_product.h"
#include "kernels/cpu/rnn/cells.h"

namespace tandem {

/// Hands out parts of a workspace, each on a line of the cache.
class RnnWorkspace {
 public:
  std::size_t floats(std::int64_t count) { return bytes(static_cast<std::size_t>(count) * 4); }
  std::size_t bytes(std::size_t count) {
    const std::size_t at = total_;
    total_ += (count + 63) / 64 * 64;
    return at;
  }
  std::size_t total() const { return total_; }

 private:
  std::size_t total_ = 0;
};

/// A run of units of one direction, in whole panels: their products lie next to each other, so that
/// the cells read and write long pieces of rows.
struct RnnBlock {
  std::int64_t d, panel, panels, unit, units;
};

inline float* floats_at(const KernelArguments& a, std::size_t at) {
  return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + at);
}

struct RnnLayer {
  RnnSettings settings;
  std::int64_t steps = 0, batch = 0, directions = 0, hidden = 0, rows = 0;  // rows: G H
  Isa isa = Isa::avx2;
  int parts = 1;
  std::int64_t panels = 0;  // panels of H's columns
  bool has_lengths = false, has_long_lengths = false;
  std::int32_t node = -1;
  std::size_t lengths_at = 0;  // int64 [B]

  /// `y` is [T, D, B, H].
  RnnLayer(const KernelRequest& request, const Shape& y, std::size_t lengths,
           RnnWorkspace& workspace)
      : settings(request.attributes()),
        steps(y[0]),
        batch(y[2]),
        directions(y[1]),
        hidden(y[3]),
        rows(settings.gates() * y[3]),
        isa(isa_of(*request.facts)),
        panels((y[3] + panel_columns(isa) - 1) / panel_columns(isa)),
        has_lengths(request.is_present(lengths)),
        node(request.node_index) {
    if (has_lengths) has_long_lengths = request.inputs[lengths].type.dtype == DType::int64;
    const std::int64_t flops = 2 * directions * batch * rows * hidden;
    parts = parts_for(request.facts->threads, flops, grain_flops);
    parts = static_cast<int>(std::min<std::int64_t>(parts, directions * panels));
    lengths_at = workspace.bytes(static_cast<std::size_t>(batch) * sizeof(std::int64_t));
  }

  std::int64_t width() const { return panel_columns(isa); }
  std::int64_t state(std::int64_t d, std::int64_t b) const { return (d * batch + b) * hidden; }
  std::int64_t states() const { return directions * batch * hidden; }
  std::int64_t time(std::int64_t d, std::int64_t step) const {
    return settings.is_reverse(d) ? steps - 1 - step : step;
  }
  /// Samples and units whose products fit together in the second cache.
  static constexpr std::int64_t samples = 48, units = 128;
  std::int64_t block_panels() const {
    return std::min(panels, std::max<std::int64_t>(1, units / width()));
  }
  /// The distance from sample to sample in the products of a block.
  std::int64_t block_width() const { return block_panels() * width(); }
  std::int64_t scratch(std::int64_t gates) const { return gates * samples * block_width(); }

  /// Calls f(panel, first unit in the block, units) for the panels of a block.
  template <class F>
  void each_panel(const RnnBlock& block, F&& f) const {
    for (std::int64_t p = 0; p < block.panels; ++p) {
      const std::int64_t first = p * width();
      f(block.panel + p, first, std::min(width(), block.units - first));
    }
  }

  /// Calls f(block, part) for all runs of units; those of a part follow each other.
  template <class F>
  void each_block(F&& f) const {
    parallel_parts(parts, [&](int part) {
      const Range range = part_of(directions * panels, part, parts);
      for (std::int64_t i = range.begin; i < range.end;) {
        const std::int64_t panel = i % panels, unit = panel * width();
        const std::int64_t count = std::min({range.end - i, panels - panel, block_panels()});
        f(RnnBlock{i / panels, panel, count, unit, std::min(count * width(), hidden - unit)}, part);
        i += count;
      }
    });
  }

  /// Clamped to 0 to T, with a report of what was not; null where all samples have T steps.
  const std::int64_t* lengths(const KernelArguments& a, std::size_t input) const {
    if (!has_lengths) return nullptr;
    auto* to = reinterpret_cast<std::int64_t*>(static_cast<char*>(a.workspace) + lengths_at);
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t length = has_long_lengths
                                      ? static_cast<const std::int64_t*>(a.inputs[input])[b]
                                      : static_cast<const std::int32_t*>(a.inputs[input])[b];
      if ((length < 0 || length > steps) && a.context != nullptr && a.context->error != nullptr) {
        a.context->error->report(ErrorWord::index_out_of_range, node, length);
      }
      to[b] = std::clamp<std::int64_t>(length, 0, steps);
    }
    return to;
  }

  /// The state of an input, or zeros without it, into the workspace at `at`.
  void start(const KernelArguments& a, std::size_t input, std::size_t at) const {
    const auto bytes = static_cast<std::size_t>(states()) * sizeof(float);
    if (a.inputs[input] != nullptr) {
      std::memcpy(floats_at(a, at), a.inputs[input], bytes);
    } else {
      std::memset(floats_at(a, at), 0, bytes);
    }
  }
};

inline bool is_active(const std::int64_t* lengths, std::int64_t t, std::int64_t b) {
  return lengths == nullptr || t < lengths[b];
}

/// What the fast kernels leave to the reference.
std::optional<std::string> refuse_rnn(const KernelRequest& request, std::size_t lengths,
                                      std::size_t peepholes);

}  // namespace tandem
