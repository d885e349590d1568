// The norm of gradients and what is done with it: SumOfSquares in two stages of fixed order,
// ClipScale, and Accumulate, the sum over micro-batches.
#include <cmath>

#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/floats.h"
#include "kernels/cuda/updates/norms.h"
#include "kernels/cuda/updates/update_lists.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 256;
/// Up to that many elements are summed by a single block.
constexpr std::int64_t alone_elements = 16 << 10;

/// sums[block] = the sum of the squares of the block's elements. Four squares are added in float32,
/// fours in double.
struct SquaresOfBlocks {
  const void* x;
  Floats type;
  bool vector;
  std::int64_t elements;
  double* sums;  // null: one block, which writes y
  float* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<double> sum;
    const std::int64_t stride = static_cast<std::int64_t>(block.blocks()) * block.threads();
    const std::int64_t whole = vector ? elements / 4 : 0;
    block.each([&](int thread) {
      const std::int64_t first =
          static_cast<std::int64_t>(block.index()) * block.threads() + thread;
      double own = 0;
      for (std::int64_t i = first; i < whole; i += stride) {
        const Values<4> four = load<4>(x, type, 4 * i);
        float squares = 0;
        for (int k = 0; k < 4; ++k) squares += four.at[k] * four.at[k];
        own += static_cast<double>(squares);
      }
      for (std::int64_t i = 4 * whole + first; i < elements; i += stride) {
        const float one = load<1>(x, type, i).at[0];
        own += static_cast<double>(one * one);
      }
      sum(thread) = own;
    });
    const double all = block.sum(sum);
    block.one([&] {
      if (sums != nullptr)
        sums[block.index()] = all;
      else
        *y = static_cast<float>(all);
    });
  }
};

std::unique_ptr<PreparedKernel> prepare_sum_of_squares(const KernelRequest& r, const Gpu& gpu) {
  const std::int64_t elements = r.inputs[0].type.elements();
  const Floats type = *floats_of(r.inputs[0].type.dtype);
  const bool alone = elements <= alone_elements;
  const unsigned blocks = alone ? 1 : blocks_for(*gpu, elements, 16 * block_threads);
  return prepared(
      [=](const KernelArguments& a) {
        const bool vector = is_aligned(a.inputs[0], 4 * size_of(type));
        auto* const sums = alone ? nullptr : static_cast<double*>(a.workspace);
        auto* const y = static_cast<float*>(a.outputs[0]);
        const SquaresOfBlocks body{a.inputs[0], type, vector, elements, sums, y};
        const unsigned threads = alone ? 1024 : block_threads;
        gpu->launch(launch_of("squares of blocks", {.blocks = blocks, .threads = threads}, body),
                    a.queue);
        if (!alone) launch_total(*gpu, {sums, blocks, y}, a.queue);
      },
      alone ? 0 : blocks * sizeof(double));
}

/// norm = sqrt(the sum of all), scale = min(1, max_norm / (norm + 1e-6)).
struct ClipBySum {
  double max_norm;
  float *scale, *norm;

  TANDEM_HOST_DEVICE void operator()(double all) const {
    const double root = std::sqrt(all), ratio = max_norm / (root + 1e-6);
    // A norm that is not a number stays one: the comparison is false for it.
    if (scale != nullptr) *scale = static_cast<float>(ratio > 1 ? 1 : ratio);
    if (norm != nullptr) *norm = static_cast<float>(root);
  }
};

std::unique_ptr<PreparedKernel> prepare_clip_scale(const KernelRequest& r, const Gpu& gpu) {
  const std::size_t count = r.inputs.size();
  return prepared(
      [=, max_norm = r.attributes().number("max_norm")](const KernelArguments& a) {
        const ClipBySum clip{max_norm, static_cast<float*>(a.outputs[0]),
                             static_cast<float*>(a.outputs[1])};
        launch_sum_of_scalars(*gpu, "clip", a, 0, count, clip);
      },
      scalar_sum_workspace(count));
}

/// new_sum = sum + grad, or grad.
struct Accumulated {
  const float* sum;  // null: the first
  const void* grad;
  Floats type;
  bool vector;
  std::int64_t elements;
  float* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t stride = static_cast<std::int64_t>(block.blocks()) * block.threads();
    const std::int64_t whole = vector ? elements / 4 : 0;
    block.each([&](int thread) {
      const std::int64_t first =
          static_cast<std::int64_t>(block.index()) * block.threads() + thread;
      for (std::int64_t i = first; i < whole; i += stride) add<4>(4 * i);
      for (std::int64_t i = 4 * whole + first; i < elements; i += stride) add<1>(i);
    });
  }
  template <int n>
  TANDEM_HOST_DEVICE void add(std::int64_t i) const {
    Values<n> all = load<n>(grad, type, i);
    if (sum != nullptr) {
      const Values<n> before = load<n>(sum, i);
      for (int k = 0; k < n; ++k) all.at[k] += before.at[k];
    }
    store<n>(y, i, all);
  }
};

std::unique_ptr<PreparedKernel> prepare_accumulate(const KernelRequest& r, const Gpu& gpu) {
  const std::int64_t elements = r.inputs[0].type.elements();
  return prepared([=, first = r.attributes().flag("first"),
                   type = *floats_of(r.inputs[1].type.dtype)](const KernelArguments& a) {
    if (elements == 0) return;
    const auto* const sum = first ? nullptr : static_cast<const float*>(a.inputs[0]);
    auto* const y = static_cast<float*>(a.outputs[0]);
    const bool vector =
        is_aligned(sum, 16) && is_aligned(y, 16) && is_aligned(a.inputs[1], 4 * size_of(type));
    const Accumulated body{sum, a.inputs[1], type, vector, elements, y};
    const LaunchShape shape{.blocks = blocks_for(*gpu, elements, 4 * block_threads),
                            .threads = block_threads};
    gpu->launch(launch_of("accumulate", shape, body), a.queue);
  });
}

std::optional<std::string> refuse_accumulate(const KernelRequest& r) {
  if (r.inputs[0].type.dtype != DType::float32) return refused_type(r.inputs[0].type.dtype);
  if (!floats_of(r.inputs[1].type.dtype)) return refused_type(r.inputs[1].type.dtype);
  return std::nullopt;
}

// Both operands in the layout that the sum has, where that is dense.
std::vector<Proposal> propose_accumulate(const KernelRequest& r) {
  LayoutConstraint constraint{LayoutConstraint::Kind::row_major, {}};
  const Operand& sum = r.inputs[0];
  if (satisfies({LayoutConstraint::Kind::dense, {}}, sum.layout, sum.type.shape)) {
    constraint = {LayoutConstraint::Kind::exact, sum.layout};
  }
  return {Proposal{.inputs = {constraint, constraint}, .outputs = {constraint}}};
}

}  // namespace

void launch_total(GpuContext& gpu, const TotalOfSums& body, void* queue) {
  gpu.launch(launch_of("total", {.threads = 256}, body), queue);
}

void add_norm_kernels(KernelList& list, const Gpu& gpu) {
  list.push_back({"cuda.sum_of_squares", "SumOfSquares", only_floats({0}),
                  [](const KernelRequest&) {
                    return std::vector<Proposal>{
                        Proposal{.inputs = {{LayoutConstraint::Kind::dense, {}}}, .outputs = {}}};
                  },
                  on(gpu, prepare_sum_of_squares)});
  add_row_major(list, "cuda.clip_scale", "ClipScale", only_float32({0}),
                on(gpu, prepare_clip_scale));
  list.push_back({"cuda.accumulate", "Accumulate", refuse_accumulate, propose_accumulate,
                  on(gpu, prepare_accumulate)});
}

}  // namespace tandem::cuda
