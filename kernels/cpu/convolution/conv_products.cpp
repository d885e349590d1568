// Convolutions as plain matrix products on channels-last maps: pointwise kernels as one product,
// tiny maps as one product per tap over just the positions whose tap meets data.
#include <algorithm>
#include <cstring>

#include "engine/graph/align.h"
#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/products/gemm.h"

namespace tandem {
namespace {

constexpr std::size_t align = 64;
std::size_t aligned(std::size_t bytes) { return align_up(bytes, align); }

const float* floats(const void* p) { return static_cast<const float*>(p); }

/// y = residual, so that the products add to it.
void copy_residual(int threads, const Convolution& c, const void* residual, void* y) {
  const std::int64_t count = element_count(c.y);
  parallel_ranges(threads, count, 8 * count, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<float*>(y) + begin, floats(residual) + begin,
                static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

class PointwiseConvolution final : public PreparedKernel {
 public:
  PointwiseConvolution(const Convolution& c, const DeviceFacts& facts)
      : c_(c), threads_(facts.threads) {
    const std::int64_t rows = c.images() * c.out_positions(), in = c.in_channels(),
                       out = c.out_channels();
    GemmShape s;
    switch (c.pass) {
      case ConvolutionPass::forward:
        s = {.m = rows,
             .n = out,
             .k = in,
             .a_m = in,
             .a_k = 1,
             .b_k = out,
             .b_n = 1,
             .c_m = out,
             .c_n = 1,
             .bias_n = 1};
        break;
      case ConvolutionPass::input:
        s = {.m = rows,
             .n = in,
             .k = out,
             .a_m = out,
             .a_k = 1,
             .b_k = 1,
             .b_n = out,
             .c_m = in,
             .c_n = 1};
        break;
      case ConvolutionPass::weight:
        s = {.m = in,
             .n = out,
             .k = rows,
             .a_m = 1,
             .a_k = in,
             .b_k = out,
             .b_n = 1,
             .c_m = out,
             .c_n = 1};
        break;
    }
    plan_ = plan_gemm(s, threads_, isa_of(facts));
    workspace_bytes = plan_.workspace_bytes();
  }

  void run(const KernelArguments& x) noexcept override {
    GemmArguments g;
    g.a = floats(x.inputs[0]);
    g.b = floats(x.inputs[1]);
    g.c = static_cast<float*>(x.outputs[0]);
    if (c_.has_residual) copy_residual(threads_, c_, x.inputs[3], x.outputs[0]);
    g.accumulate = c_.has_residual;
    if (c_.has_bias) g.bias = floats(x.inputs[2]);
    if (c_.relu) g.activation = Activation::relu;
    run_gemm(plan_, g, x.workspace);
  }

 private:
  Convolution c_;
  int threads_;
  GemmPlan plan_;
};

/// A tap that joins an input position to an output position of the map.
struct Meeting {
  std::int64_t tap, in, out;
};

/// All meetings, ordered by tap, then by output position.
std::vector<Meeting> meetings_of(const Convolution& c) {
  std::vector<Meeting> meetings;
  const std::size_t rank = c.spatial_rank();
  for (std::int64_t tap = 0; tap < c.taps(); ++tap) {
    for (std::int64_t out = 0; out < c.out_positions(); ++out) {
      std::int64_t tap_rest = tap, out_rest = out, in = 0, scale = 1;
      bool inside = true;
      for (std::size_t i = rank; i-- > 0;) {
        const std::int64_t r = tap_rest % c.weight[i + 2], o = out_rest % c.y[i + 2];
        tap_rest /= c.weight[i + 2];
        out_rest /= c.y[i + 2];
        const std::int64_t at = o * c.strides[i] + r * c.dilations[i] - c.pads_begin[i];
        inside = inside && at >= 0 && at < c.x[i + 2];
        in += at * scale;
        scale *= c.x[i + 2];
      }
      if (inside) meetings.push_back({tap, in, out});
    }
  }
  return meetings;
}

/// Forward and data gradient: one product per meeting, rows are the images. The threads share the
/// columns, so that each reads its own part of the weights once.
class TapConvolution final : public PreparedKernel {
 public:
  TapConvolution(const Convolution& c, const DeviceFacts& facts)
      : c_(c), forward_(c.pass == ConvolutionPass::forward), threads_(facts.threads) {
    const std::int64_t targets = forward_ ? c.out_positions() : c.in_positions();
    std::vector<std::vector<Meeting>> by_target(static_cast<std::size_t>(targets));
    for (const Meeting& m : meetings_of(c)) {
      by_target[static_cast<std::size_t>(forward_ ? m.out : m.in)].push_back(m);
    }
    for (const auto& list : by_target) {
      meetings_.insert(meetings_.end(), list.begin(), list.end());
      ends_.push_back(meetings_.size());
    }
    const std::int64_t in = c.in_channels(), out = c.out_channels();
    const std::int64_t columns = forward_ ? out : in,
                       flops =
                           2 * c.images() * in * out * static_cast<std::int64_t>(meetings_.size());
    const int parts = static_cast<int>(
        std::min<std::int64_t>(parts_for(threads_, flops, grain_flops), (columns + 31) / 32));
    std::size_t bytes = 0;
    for (int i = 0; i < parts; ++i) {
      const Range range = part_of(columns, i, parts, 16);
      GemmShape s{.m = c.images(), .n = range.size(), .k = forward_ ? in : out};
      s.a_m = forward_ ? c.in_positions() * in : c.out_positions() * out;
      s.a_k = 1;
      s.b_k = forward_ ? out : 1;
      s.b_n = forward_ ? 1 : out;
      s.c_m = forward_ ? c.out_positions() * out : c.in_positions() * in;
      s.c_n = 1;
      s.bias_n = forward_ ? 1 : 0;
      Part part{range.begin, plan_gemm(s, 1, isa_of(facts)), {}};
      s.k = 0;
      part.empty = plan_gemm(s, 1, isa_of(facts));
      bytes = std::max({bytes, part.plan.workspace_bytes(), part.empty.workspace_bytes()});
      parts_.push_back(part);
    }
    part_bytes_ = aligned(bytes);
    workspace_bytes = part_bytes_ * parts_.size();
  }

  void run(const KernelArguments& x) noexcept override {
    if (c_.has_residual) copy_residual(threads_, c_, x.inputs[3], x.outputs[0]);
    parallel_parts(static_cast<int>(parts_.size()), [&](int index) {
      run_part(parts_[static_cast<std::size_t>(index)], x,
               static_cast<char*>(x.workspace) + part_bytes_ * static_cast<std::size_t>(index));
    });
  }

 private:
  struct Part {
    std::int64_t first;    // column
    GemmPlan plan, empty;  // empty: k = 0, for positions that no tap joins to anything
  };

  void run_part(const Part& part, const KernelArguments& x, void* workspace) const {
    const std::int64_t in = c_.in_channels(), out = c_.out_channels();
    const std::int64_t from_channels = forward_ ? in : out, to_channels = forward_ ? out : in;
    std::size_t at = 0;
    for (std::size_t target = 0; target < ends_.size(); ++target) {
      GemmArguments g;
      g.accumulate = c_.has_residual;
      g.c = static_cast<float*>(x.outputs[0]) + static_cast<std::int64_t>(target) * to_channels +
            part.first;
      const auto finish = [&] {
        if (c_.has_bias) g.bias = floats(x.inputs[2]) + part.first;
        if (c_.relu) g.activation = Activation::relu;
      };
      if (at == ends_[target]) {
        g.a = floats(x.inputs[0]);
        g.b = floats(x.inputs[1]);
        finish();
        run_gemm(part.empty, g, workspace);
      }
      for (; at < ends_[target]; ++at) {
        const Meeting& m = meetings_[at];
        g.a = floats(x.inputs[0]) + (forward_ ? m.in : m.out) * from_channels;
        g.b = floats(x.inputs[1]) + m.tap * in * out + part.first * (forward_ ? 1 : out);
        if (at + 1 == ends_[target]) finish();
        run_gemm(part.plan, g, workspace);
        g.accumulate = true;
      }
    }
  }

  Convolution c_;
  bool forward_;
  int threads_;
  std::vector<Meeting> meetings_;  // by target position
  std::vector<std::size_t> ends_;  // by target position: where its meetings end
  std::vector<Part> parts_;
  std::size_t part_bytes_ = 0;
};

/// Weight gradient: the rows of x and dy that a tap joins are gathered, then one product per tap.
class TapWeightGradient final : public PreparedKernel {
 public:
  TapWeightGradient(const Convolution& c, const DeviceFacts& facts)
      : c_(c), threads_(facts.threads), meetings_(meetings_of(c)) {
    const std::int64_t in = c.in_channels(), out = c.out_channels();
    std::size_t begin = 0, most_rows = 0, plan_bytes = 0;
    for (std::int64_t tap = 0; tap < c.taps(); ++tap) {
      std::size_t end = begin;
      while (end < meetings_.size() && meetings_[end].tap == tap) ++end;
      Tap entry{begin, end, {}};
      const bool direct = end - begin == 1;  // one position of each image: rows at a stride
      const auto rows = static_cast<std::int64_t>(end - begin) * c.images();
      if (!direct) most_rows = std::max(most_rows, static_cast<std::size_t>(rows));
      const GemmShape s{.m = in,
                        .n = out,
                        .k = rows,
                        .a_m = 1,
                        .a_k = direct ? c.in_positions() * in : in,
                        .b_k = direct ? c.out_positions() * out : out,
                        .b_n = 1,
                        .c_m = out,
                        .c_n = 1};
      if (end > begin) entry.plan = plan_gemm(s, threads_, isa_of(facts));
      plan_bytes = std::max(plan_bytes, entry.plan.workspace_bytes());
      taps_.push_back(entry);
      begin = end;
    }
    x_at_ = aligned(plan_bytes);
    y_at_ = x_at_ + aligned(most_rows * static_cast<std::size_t>(in) * sizeof(float));
    workspace_bytes = y_at_ + aligned(most_rows * static_cast<std::size_t>(out) * sizeof(float));
  }

  void run(const KernelArguments& x) noexcept override {
    const std::int64_t in = c_.in_channels(), out = c_.out_channels();
    char* const workspace = static_cast<char*>(x.workspace);
    float* const rows_x = reinterpret_cast<float*>(workspace + x_at_);
    float* const rows_y = reinterpret_cast<float*>(workspace + y_at_);
    for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
      const Tap& entry = taps_[tap];
      float* const dw =
          static_cast<float*>(x.outputs[0]) + static_cast<std::int64_t>(tap) * in * out;
      const std::size_t pairs = entry.end - entry.begin;
      if (pairs == 0) {
        std::memset(dw, 0, static_cast<std::size_t>(in * out) * sizeof(float));
        continue;
      }
      GemmArguments g;
      g.c = dw;
      if (pairs == 1) {
        g.a = floats(x.inputs[0]) + meetings_[entry.begin].in * in;
        g.b = floats(x.inputs[1]) + meetings_[entry.begin].out * out;
      } else {
        gather(entry, floats(x.inputs[0]), floats(x.inputs[1]), rows_x, rows_y);
        g.a = rows_x;
        g.b = rows_y;
      }
      run_gemm(entry.plan, g, workspace);
    }
  }

 private:
  struct Tap {
    std::size_t begin, end;  // its meetings
    GemmPlan plan;
  };

  void gather(const Tap& tap, const float* x, const float* y, float* rows_x, float* rows_y) const {
    const std::int64_t in = c_.in_channels(), out = c_.out_channels();
    const auto pairs = static_cast<std::int64_t>(tap.end - tap.begin);
    const std::int64_t rows = pairs * c_.images();
    parallel_ranges(
        threads_, rows, 8 * rows * (in + out), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t image = row / pairs;
            const Meeting& m = meetings_[tap.begin + static_cast<std::size_t>(row % pairs)];
            std::memcpy(rows_x + row * in, x + (image * c_.in_positions() + m.in) * in,
                        static_cast<std::size_t>(in) * sizeof(float));
            std::memcpy(rows_y + row * out, y + (image * c_.out_positions() + m.out) * out,
                        static_cast<std::size_t>(out) * sizeof(float));
          }
        });
  }

  Convolution c_;
  int threads_;
  std::vector<Meeting> meetings_;
  std::vector<Tap> taps_;
  std::size_t x_at_ = 0, y_at_ = 0;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_pointwise_convolution(const KernelRequest& request) {
  return std::make_unique<PointwiseConvolution>(convolution_of(request), *request.facts);
}

std::unique_ptr<PreparedKernel> prepare_tap_convolution(const KernelRequest& request) {
  const Convolution c = convolution_of(request);
  if (c.pass == ConvolutionPass::weight) {
    return std::make_unique<TapWeightGradient>(c, *request.facts);
  }
  return std::make_unique<TapConvolution>(c, *request.facts);
}

}  // namespace tandem
