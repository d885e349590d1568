// BatchNormalization in inference and training, and its gradient, for channels innermost or in
// planes. Statistics take one pass: sums of x - x0 and (x - x0)^2, where x0 is the channel's first
// element.
#include <cmath>
#include <cstring>

#include "engine/device/map_kinds.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"

namespace tandem {
namespace {

constexpr std::int64_t rows_per_flush = 128;

// x as [images, channels, plane] (planes) or [images * plane, channels] (innermost).
struct Geometry {
  std::int64_t images = 1, channels = 1, plane = 1, padded = 16;
  bool innermost = false;
  int parts = 1;

  Geometry(const KernelRequest& request, std::size_t x) {
    const Operand& operand = request.inputs[x];
    const Shape& shape = operand.type.shape;
    images = shape[0], channels = shape[1];
    for (std::size_t i = 2; i < shape.size(); ++i) plane *= shape[i];
    innermost = shape.size() == 2 || !is_row_major(operand.layout, shape) || plane == 1;
    padded = (channels + 15) / 16 * 16;
    const std::int64_t bytes = images * channels * plane * 12;
    parts = parts_for(request.facts->threads, bytes, grain_bytes);
  }
  std::int64_t rows() const { return images * plane; }
  double count() const { return static_cast<double>(images) * static_cast<double>(plane); }
};

// Workspace: coefficients [3][padded] floats, shift [padded] floats, then for each part totals
// [2][padded] doubles and sums [2][padded] floats.
struct Workspace {
  const Geometry& g;
  char* base;

  static std::size_t bytes(const Geometry& g) {
    return static_cast<std::size_t>(g.padded) *
           (4 * sizeof(float) +
            static_cast<std::size_t>(g.parts) * 2 * (sizeof(double) + sizeof(float)));
  }
  float* coefficient(int k) const { return reinterpret_cast<float*>(base) + k * g.padded; }
  float* shift() const { return coefficient(3); }
  double* totals(int part) const {
    return reinterpret_cast<double*>(base + g.padded * (16 + static_cast<std::int64_t>(part) * 24));
  }
  float* sums(int part) const { return reinterpret_cast<float*>(totals(part) + 2 * g.padded); }
  double total(int k, std::int64_t c) const {
    double sum = 0;
    for (int part = 0; part < g.parts; ++part) sum += totals(part)[k * g.padded + c];
    return sum;
  }
};

// Both sums of every channel, by parts. add_rows(row, rows, sums), add_plane(element, channel,
// totals).
template <class Rows, class Plane>
void sum_channels(const Geometry& g, const Workspace& w, const VectorFunctions& functions,
                  Rows add_rows, Plane add_plane) {
  parallel_parts(g.parts, [&](int part) {
    double* totals = w.totals(part);
    std::memset(totals, 0, static_cast<std::size_t>(g.padded) * 24);
    if (g.innermost) {
      float* sums = w.sums(part);
      const Range range = part_of(g.rows(), part, g.parts);
      for (std::int64_t row = range.begin; row < range.end; row += rows_per_flush) {
        add_rows(row, std::min(rows_per_flush, range.end - row), sums);
        functions.flush(sums, totals, 2 * g.padded);
      }
    } else {
      const Range range = part_of(g.images * g.channels, part, g.parts);
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        add_plane(i * g.plane, i % g.channels, totals);
      }
    }
  });
}

// y = x a[c] + b[c]
void apply(const Geometry& g, const VectorFunctions& functions, const float* x, float* y,
           const float* a, const float* b) {
  parallel_parts(g.parts, [&](int part) {
    if (g.innermost) {
      const Range range = part_of(g.rows(), part, g.parts);
      functions.affine_rows(x + range.begin * g.channels, y + range.begin * g.channels,
                            range.size(), g.channels, g.channels, g.channels, a, b);
      return;
    }
    const Range range = part_of(g.images * g.channels, part, g.parts);
    const auto affine = functions.tile[static_cast<int>(TileOp::scale_shift)];
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::int64_t c = i % g.channels;
      affine({x + i * g.plane, nullptr, nullptr, y + i * g.plane, g.plane, a[c], b[c]});
    }
  });
}

std::unique_ptr<PreparedKernel> prepare_inference(const KernelRequest& request) {
  const Geometry g(request, 0);
  const double epsilon = request.attributes().number("epsilon");
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& args) {
        const auto in = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
        const Workspace w{g, static_cast<char*>(args.workspace)};
        for (std::int64_t c = 0; c < g.channels; ++c) {
          const double a =
              static_cast<double>(in(1)[c]) / std::sqrt(static_cast<double>(in(4)[c]) + epsilon);
          w.coefficient(0)[c] = static_cast<float>(a);
          w.coefficient(1)[c] =
              static_cast<float>(static_cast<double>(in(2)[c]) - a * static_cast<double>(in(3)[c]));
        }
        apply(g, functions, in(0), static_cast<float*>(args.outputs[0]), w.coefficient(0),
              w.coefficient(1));
      },
      Workspace::bytes(g));
}

std::unique_ptr<PreparedKernel> prepare_training(const KernelRequest& request) {
  const Geometry g(request, 0);
  const double epsilon = request.attributes().number("epsilon");
  const double momentum = request.attributes().number("momentum");
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& args) {
        const auto in = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
        const auto out = [&](int i) { return static_cast<float*>(args.outputs[i]); };
        const Workspace w{g, static_cast<char*>(args.workspace)};
        const float* x = in(0);
        float* shift = w.shift();
        for (std::int64_t c = 0; c < g.channels; ++c) shift[c] = x[g.innermost ? c : c * g.plane];
        sum_channels(
            g, w, functions,
            [&](std::int64_t row, std::int64_t rows, float* sums) {
              functions.moments_rows(x + row * g.channels, rows, g.channels, g.channels, shift,
                                     sums, sums + g.padded);
            },
            [&](std::int64_t at, std::int64_t c, double* totals) {
              functions.moments_plane(x + at, g.plane, shift[c], totals + c, totals + g.padded + c);
            });
        for (std::int64_t c = 0; c < g.channels; ++c) {
          const double from_shift = w.total(0, c) / g.count();
          const double mean = static_cast<double>(shift[c]) + from_shift;
          const double var = std::max(w.total(1, c) / g.count() - from_shift * from_shift, 0.0);
          const double rstd = 1 / std::sqrt(var + epsilon);
          const double a = static_cast<double>(in(1)[c]) * rstd;
          w.coefficient(0)[c] = static_cast<float>(a);
          w.coefficient(1)[c] = static_cast<float>(static_cast<double>(in(2)[c]) - a * mean);
          const double before_mean = static_cast<double>(in(3)[c]),
                       before_var = static_cast<double>(in(4)[c]);
          if (out(1))
            out(1)[c] = static_cast<float>(momentum * before_mean + (1 - momentum) * mean);
          if (out(2)) out(2)[c] = static_cast<float>(momentum * before_var + (1 - momentum) * var);
          if (out(3)) out(3)[c] = static_cast<float>(mean);
          if (out(4)) out(4)[c] = static_cast<float>(rstd);
        }
        if (out(0)) apply(g, functions, x, out(0), w.coefficient(0), w.coefficient(1));
      },
      Workspace::bytes(g));
}

// dx = dy A + x B + D with A = scale rstd, B = -A rstd dscale / M, D = -A dbias / M - B mean
std::unique_ptr<PreparedKernel> prepare_grad(const KernelRequest& request) {
  const Geometry g(request, 1);
  return prepared(
      [=, &functions = vector_functions(request)](const KernelArguments& args) {
        const auto in = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
        const auto out = [&](int i) { return static_cast<float*>(args.outputs[i]); };
        const Workspace w{g, static_cast<char*>(args.workspace)};
        const float *dy = in(0), *x = in(1), *mean = in(3);
        sum_channels(
            g, w, functions,
            [&](std::int64_t row, std::int64_t rows, float* sums) {
              functions.grad_sums_rows(dy + row * g.channels, x + row * g.channels, rows,
                                       g.channels, g.channels, mean, sums, sums + g.padded);
            },
            [&](std::int64_t at, std::int64_t c, double* totals) {
              functions.grad_sums_plane(dy + at, x + at, g.plane, mean[c], totals + c,
                                        totals + g.padded + c);
            });
        for (std::int64_t c = 0; c < g.channels; ++c) {
          const double rstd = static_cast<double>(in(4)[c]);
          const double dbias = w.total(0, c), dscale = w.total(1, c) * rstd;
          if (out(1)) out(1)[c] = static_cast<float>(dscale);
          if (out(2)) out(2)[c] = static_cast<float>(dbias);
          const double a = static_cast<double>(in(2)[c]) * rstd, b = -a * rstd * dscale / g.count();
          w.coefficient(0)[c] = static_cast<float>(a);
          w.coefficient(1)[c] = static_cast<float>(b);
          w.coefficient(2)[c] =
              static_cast<float>(-a * dbias / g.count() - b * static_cast<double>(mean[c]));
        }
        float* dx = out(0);
        if (dx == nullptr) return;
        parallel_parts(g.parts, [&](int part) {
          if (g.innermost) {
            const Range range = part_of(g.rows(), part, g.parts);
            const std::int64_t at = range.begin * g.channels;
            functions.affine2_rows(dy + at, x + at, dx + at, range.size(), g.channels, g.channels,
                                   w.coefficient(0), w.coefficient(1), w.coefficient(2));
            return;
          }
          const Range range = part_of(g.images * g.channels, part, g.parts);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            const std::int64_t c = i % g.channels, at = i * g.plane;
            functions.affine2_plane(dy + at, x + at, dx + at, g.plane, w.coefficient(0)[c],
                                    w.coefficient(1)[c], w.coefficient(2)[c]);
          }
        });
      },
      Workspace::bytes(g));
}

// Channels-last or row-major for all maps, as they come; vectors row-major.
std::vector<Proposal> propose(const KernelRequest& request, std::size_t x, std::size_t maps) {
  std::vector<Proposal> proposals;
  for (LayoutConstraint::Kind kind : map_kinds(request.inputs[x])) {
    Proposal proposal;
    proposal.inputs.assign(maps, LayoutConstraint{kind, {}});
    proposal.outputs.assign(1, LayoutConstraint{kind, {}});
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

}  // namespace

void add_batch_normalization_kernels(KernelList& list) {
  const auto refuse = only_float32({0, 1, 2, 3, 4});
  const auto propose_forward = [](const KernelRequest& r) { return propose(r, 0, 1); };
  const auto propose_grad = [](const KernelRequest& r) { return propose(r, 1, 2); };
  list.push_back({"cpu.batch_normalization", "BatchNormalization", refuse, propose_forward,
                  prepare_inference});
  list.push_back({"cpu.batch_normalization_training", "BatchNormalizationTraining", refuse,
                  propose_forward, prepare_training});
  list.push_back({"cpu.batch_normalization_grad", "BatchNormalizationGrad", refuse, propose_grad,
                  prepare_grad});
}

}  // namespace tandem
