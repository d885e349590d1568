// RnnScanGrad: backwards through the steps, each a product of the gradients of all gates with
// packed weights and the cells' gradients of the units that it gave; dr is one product over all
// steps of a direction.
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "kernels/cpu/products/products.h"
#include "kernels/cpu/rnn/layer.h"
#include "kernels/cpu/rnn/rnn_kernels.h"

namespace tandem {
namespace {

// Inputs: dy, dh, dc_last, r, lengths, h0, c0, peepholes, y, gates, c.
class RnnScanGradKernel final : public PreparedKernel {
 public:
  explicit RnnScanGradKernel(const KernelRequest& request)
      : layer_(request, request.inputs[8].type.shape, 4, workspace_),
        cells_(rnn_cells(layer_.isa)) {
    const std::int64_t n = layer_.hidden, all = layer_.steps * layer_.states();
    kind_ = layer_.settings.kind;
    resets_first_ = kind_ == RnnKind::gru && !layer_.settings.linear_before_reset;
    is_linear_ = layer_.settings.linear_before_reset;
    // In a GRU the candidate's product has another left operand.
    main_rows_ = kind_ == RnnKind::gru ? 2 * n : layer_.rows;
    main_floats_ = packed_floats(layer_.isa, main_rows_, n);
    main_at_ = workspace_.floats(layer_.directions * main_floats_);
    if (kind_ == RnnKind::gru) {
      candidate_floats_ = packed_floats(layer_.isa, n, n);
      candidate_at_ = workspace_.floats(layer_.directions * candidate_floats_);
    }
    if (!request.outputs[0].present) da_at_ = workspace_.floats(all * layer_.settings.gates());
    before_at_ = workspace_.floats(all);
    if (is_linear_) dlinear_at_ = workspace_.floats(all);
    if (resets_first_) reset_at_ = workspace_.floats(all);
    dh_at_ = workspace_.floats(layer_.states());
    if (kind_ == RnnKind::lstm) dc_at_ = workspace_.floats(layer_.states());
    scratch_at_ = workspace_.floats(layer_.parts * layer_.scratch(1));
    sums_at_ = workspace_.bytes(static_cast<std::size_t>(n) * sizeof(double));

    // dr[rows, H] = da^T[rows, T B] before[T B, H]
    GemmShape shape{.n = n,
                    .k = layer_.steps * layer_.batch,
                    .a_m = 1,
                    .a_k = layer_.directions * layer_.rows,
                    .b_k = n,
                    .b_n = 1,
                    .c_m = n,
                    .c_n = 1};
    shape.m = main_rows_;
    main_ = plan_gemm(shape, request.facts->threads, layer_.isa);
    shape.m = n;
    if (is_linear_) shape.a_k = n;
    candidate_ = plan_gemm(shape, request.facts->threads, layer_.isa);
    gemm_at_ = workspace_.bytes(std::max(main_.workspace_bytes(), candidate_.workspace_bytes()));
    workspace_bytes = workspace_.total();
    switch (kind_) {
      case RnnKind::rnn:
        cell_ = layer_.settings.functions[0][0].activation == RnnActivation::relu
                    ? cells_.relu_grad
                    : cells_.tanh_grad;
        break;
      case RnnKind::gru:
        cell_ = resets_first_ ? cells_.gru_candidate_grad : cells_.gru_grad;
        break;
      case RnnKind::lstm:
        cell_ = cells_.lstm_grad;
        break;
    }
  }

  void run(const KernelArguments& a) noexcept override {
    const std::int64_t* lengths = layer_.lengths(a, 4);
    pack(a);
    gather_before(a, lengths);
    layer_.start(a, 1, dh_at_);
    if (kind_ == RnnKind::lstm) layer_.start(a, 2, dc_at_);
    for (std::int64_t step = layer_.steps; step-- > 0;) {
      layer_.each_block(
          [&](const RnnBlock& block, int part) { first_phase(a, block, part, step, lengths); });
      if (!resets_first_) continue;
      layer_.each_block(
          [&](const RnnBlock& block, int part) { second_phase(a, block, part, step, lengths); });
    }
    finish_states(a, lengths);
    if (a.outputs[1] != nullptr) weights(a);
    if (a.outputs[3] != nullptr) biases(a);
    if (kind_ == RnnKind::lstm && a.outputs[5] != nullptr) peepholes(a, lengths);
  }

 private:
  float* da(const KernelArguments& a) const {
    return a.outputs[0] != nullptr ? static_cast<float*>(a.outputs[0]) : floats_at(a, da_at_);
  }
  std::int64_t da_row(std::int64_t t, std::int64_t d, std::int64_t b) const {
    return ((t * layer_.batch + b) * layer_.directions + d) * layer_.rows;
  }
  /// Where the row of a step is in [D, T, B, H] in the workspace.
  std::int64_t step_row(std::int64_t t, std::int64_t d, std::int64_t b) const {
    return ((d * layer_.steps + t) * layer_.batch + b) * layer_.hidden;
  }
  /// Where the row of a sample is in [T, D, B, H].
  std::int64_t sample(std::int64_t t, std::int64_t d, std::int64_t b) const {
    return ((t * layer_.directions + d) * layer_.batch + b) * layer_.hidden;
  }

  void pack(const KernelArguments& a) const {
    const std::int64_t n = layer_.hidden;
    parallel_parts(std::min<int>(layer_.parts, static_cast<int>(layer_.directions)), [&](int part) {
      const int parts = std::min<int>(layer_.parts, static_cast<int>(layer_.directions));
      const Range range = part_of(layer_.directions, part, parts);
      for (std::int64_t d = range.begin; d < range.end; ++d) {
        const float* r = static_cast<const float*>(a.inputs[3]) + d * layer_.rows * n;
        pack_panels(layer_.isa,
                    {floats_at(a, main_at_) + d * main_floats_, r, n, 1, main_rows_, n});
        if (kind_ != RnnKind::gru) continue;
        pack_panels(layer_.isa, {floats_at(a, candidate_at_) + d * candidate_floats_, r + 2 * n * n,
                                 n, 1, n, n});
      }
    });
  }

  /// h before each step; zeros where the step is at or past the length.
  void gather_before(const KernelArguments& a, const std::int64_t* lengths) const {
    const auto bytes = static_cast<std::size_t>(layer_.hidden) * sizeof(float);
    const float* y = static_cast<const float*>(a.inputs[8]);
    const float* h0 = static_cast<const float*>(a.inputs[5]);
    const std::int64_t rows = layer_.directions * layer_.steps * layer_.batch;
    parallel_ranges(
        layer_.parts, rows, rows * layer_.hidden * 8, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t b = row % layer_.batch;
            const std::int64_t t = row / layer_.batch % layer_.steps;
            const std::int64_t d = row / layer_.batch / layer_.steps;
            const bool back = layer_.settings.is_reverse(d);
            const std::int64_t earlier = back ? t + 1 : t - 1;
            const bool is_first =
                earlier < 0 || earlier >= layer_.steps || !is_active(lengths, earlier, b);
            float* to = floats_at(a, before_at_) + row * layer_.hidden;
            if (is_active(lengths, t, b) && !is_first) {
              std::memcpy(to, y + sample(earlier, d, b), bytes);
            } else if (is_active(lengths, t, b) && h0 != nullptr) {
              std::memcpy(to, h0 + layer_.state(d, b), bytes);
            } else {
              std::memset(to, 0, bytes);
            }
          }
        });
  }

  /// What step `step` passes on to its own h before through the gates: for `count` samples from
  /// `begin` on, into the scratch.
  float* multiply(const KernelArguments& a, const RnnBlock& block, int part, std::int64_t step,
                  std::int64_t begin, std::int64_t count) const {
    const std::int64_t n = layer_.hidden, t = layer_.time(block.d, step);
    float* scratch = floats_at(a, scratch_at_) + part * layer_.scratch(1);
    layer_.each_panel(block, [&](std::int64_t panel, std::int64_t unit, std::int64_t units) {
      PanelProduct product{.m = count,
                           .k = main_rows_,
                           .columns = units,
                           .a = da(a) + da_row(t, block.d, begin),
                           .a_m = layer_.directions * layer_.rows,
                           .panel = floats_at(a, main_at_) + block.d * main_floats_ +
                                    panel * panel_distance(main_rows_, layer_.width()),
                           .c = scratch + unit,
                           .c_m = layer_.block_width()};
      multiply_panel(layer_.isa, product);
      if (!is_linear_) return;
      product.k = n;
      product.a = floats_at(a, dlinear_at_) + step_row(t, block.d, begin);
      product.a_m = n;
      product.panel = candidate_panel(a, block.d, panel);
      product.accumulate = true;
      multiply_panel(layer_.isa, product);
    });
    return scratch;
  }

  const float* candidate_panel(const KernelArguments& a, std::int64_t d, std::int64_t panel) const {
    return floats_at(a, candidate_at_) + d * candidate_floats_ +
           panel * panel_distance(layer_.hidden, layer_.width());
  }

  /// dh += product, but of samples for which the step that made the product did nothing.
  static void add(float* dh, const float* product, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) dh[i] += product[i];
  }

  RnnRow row(const KernelArguments& a, const RnnBlock& block, std::int64_t step, std::int64_t b,
             const std::int64_t* lengths) const {
    const std::int64_t d = block.d, t = layer_.time(d, step), u = block.unit;
    RnnRow r;
    r.n = block.units;
    r.gate = layer_.hidden;
    r.before = floats_at(a, before_at_) + step_row(t, d, b) + u;
    r.gates = const_cast<float*>(static_cast<const float*>(a.inputs[9])) +
              sample(t, d, b) * layer_.settings.saved() + u;
    if (a.inputs[0] != nullptr) {
      r.dy = static_cast<const float*>(a.inputs[0]) + sample(t, d, b) + u;
    }
    r.dh = floats_at(a, dh_at_) + layer_.state(d, b) + u;
    r.da = da(a) + da_row(t, d, b) + u;
    if (is_linear_) r.dlinear = floats_at(a, dlinear_at_) + step_row(t, d, b) + u;
    if (resets_first_) r.reset = floats_at(a, reset_at_) + step_row(t, d, b) + u;
    if (kind_ == RnnKind::lstm) {
      r.dc = floats_at(a, dc_at_) + layer_.state(d, b) + u;
      const float* c = static_cast<const float*>(a.inputs[10]);
      r.cell_behind = c + sample(t, d, b) + u;
      r.cell_before = cell_before(a, d, step, b, lengths);
      if (r.cell_before != nullptr) r.cell_before += u;
    }
    return r;
  }

  /// c before an active step; null where that is 0.
  const float* cell_before(const KernelArguments& a, std::int64_t d, std::int64_t step,
                           std::int64_t b, const std::int64_t* lengths) const {
    const std::int64_t earlier = step > 0 ? layer_.time(d, step - 1) : 0;
    if (step > 0 && is_active(lengths, earlier, b)) {
      return static_cast<const float*>(a.inputs[10]) + sample(earlier, d, b);
    }
    const float* c0 = static_cast<const float*>(a.inputs[6]);
    return c0 == nullptr ? nullptr : c0 + layer_.state(d, b);
  }

  /// A step at or past the sample's length: dh and dc go on as they are.
  void pass(const RnnRow& r) const {
    const auto bytes = static_cast<std::size_t>(r.n) * sizeof(float);
    for (std::int64_t q = 0; q < layer_.settings.gates(); ++q) {
      std::memset(r.da + q * r.gate, 0, bytes);
    }
    if (r.dlinear != nullptr) std::memset(r.dlinear, 0, bytes);
    if (r.reset != nullptr) std::memset(r.reset, 0, bytes);
  }

  void first_phase(const KernelArguments& a, const RnnBlock& block, int part, std::int64_t step,
                   const std::int64_t* lengths) const {
    const bool is_last = step == layer_.steps - 1;
    const std::int64_t t = layer_.time(block.d, step);
    const std::int64_t behind = is_last ? t : layer_.time(block.d, step + 1);
    for (std::int64_t begin = 0; begin < layer_.batch; begin += RnnLayer::samples) {
      const std::int64_t end = std::min(begin + RnnLayer::samples, layer_.batch);
      const float* product =
          is_last ? nullptr : multiply(a, block, part, step + 1, begin, end - begin);
      for (std::int64_t b = begin; b < end; ++b) {
        RnnRow r = row(a, block, step, b, lengths);
        if (product != nullptr && is_active(lengths, behind, b)) {
          r.product = product + (b - begin) * layer_.block_width();
        }
        if (is_active(lengths, t, b)) {
          cell_(r);
        } else {
          if (r.product != nullptr) add(r.dh, r.product, r.n);
          pass(r);
        }
      }
    }
  }

  /// The second phase of a GRU that resets first: what the candidate's product gives to r h.
  void second_phase(const KernelArguments& a, const RnnBlock& block, int part, std::int64_t step,
                    const std::int64_t* lengths) const {
    const std::int64_t n = layer_.hidden, t = layer_.time(block.d, step);
    float* scratch = floats_at(a, scratch_at_) + part * layer_.scratch(1);
    for (std::int64_t begin = 0; begin < layer_.batch; begin += RnnLayer::samples) {
      const std::int64_t end = std::min(begin + RnnLayer::samples, layer_.batch);
      layer_.each_panel(block, [&](std::int64_t panel, std::int64_t unit, std::int64_t units) {
        multiply_panel(layer_.isa, {.m = end - begin,
                                    .k = n,
                                    .columns = units,
                                    .a = da(a) + da_row(t, block.d, begin) + 2 * n,
                                    .a_m = layer_.directions * layer_.rows,
                                    .panel = candidate_panel(a, block.d, panel),
                                    .c = scratch + unit,
                                    .c_m = layer_.block_width()});
      });
      for (std::int64_t b = begin; b < end; ++b) {
        if (!is_active(lengths, t, b)) continue;
        RnnRow r = row(a, block, step, b, lengths);
        r.product = scratch + (b - begin) * layer_.block_width();
        cells_.gru_reset_grad(r);
      }
    }
  }

  void finish_states(const KernelArguments& a, const std::int64_t* lengths) const {
    const auto bytes = static_cast<std::size_t>(layer_.states()) * sizeof(float);
    if (kind_ == RnnKind::lstm && a.outputs[4] != nullptr) {
      std::memcpy(a.outputs[4], floats_at(a, dc_at_), bytes);
    }
    if (a.outputs[2] == nullptr) return;
    layer_.each_block([&](const RnnBlock& block, int part) {
      const std::int64_t t = layer_.time(block.d, 0);
      for (std::int64_t begin = 0; begin < layer_.batch; begin += RnnLayer::samples) {
        const std::int64_t end = std::min(begin + RnnLayer::samples, layer_.batch);
        const float* product = multiply(a, block, part, 0, begin, end - begin);
        for (std::int64_t b = begin; b < end; ++b, product += layer_.block_width()) {
          if (!is_active(lengths, t, b)) continue;
          add(floats_at(a, dh_at_) + layer_.state(block.d, b) + block.unit, product, block.units);
        }
      }
    });
    std::memcpy(a.outputs[2], floats_at(a, dh_at_), bytes);
  }

  void weights(const KernelArguments& a) const {
    const std::int64_t n = layer_.hidden;
    void* gemm = static_cast<char*>(a.workspace) + gemm_at_;
    for (std::int64_t d = 0; d < layer_.directions; ++d) {
      float* dr = static_cast<float*>(a.outputs[1]) + d * layer_.rows * n;
      GemmArguments x;
      x.a = da(a) + d * layer_.rows;
      x.b = floats_at(a, before_at_) + step_row(0, d, 0);
      x.c = dr;
      run_gemm(main_, x, gemm);
      if (kind_ != RnnKind::gru) continue;
      x.a = is_linear_ ? floats_at(a, dlinear_at_) + step_row(0, d, 0) : x.a + 2 * n;
      if (resets_first_) x.b = floats_at(a, reset_at_) + step_row(0, d, 0);
      x.c = dr + 2 * n * n;
      run_gemm(candidate_, x, gemm);
    }
  }

  void biases(const KernelArguments& a) const {
    const std::int64_t n = layer_.hidden;
    float* to = static_cast<float*>(a.outputs[3]);
    double* sums = reinterpret_cast<double*>(static_cast<char*>(a.workspace) + sums_at_);
    for (std::int64_t d = 0; d < layer_.directions; ++d) {
      std::fill(sums, sums + n, 0.0);
      for (std::int64_t row = 0; is_linear_ && row < layer_.steps * layer_.batch; ++row) {
        const float* from = floats_at(a, dlinear_at_) + step_row(0, d, 0) + row * n;
        for (std::int64_t j = 0; j < n; ++j) sums[j] += from[j];
      }
      for (std::int64_t j = 0; j < n; ++j) to[d * n + j] = static_cast<float>(sums[j]);
    }
  }

  /// dpeepholes of absent peepholes: only tests read it.
  void peepholes(const KernelArguments& a, const std::int64_t* lengths) const {
    const std::int64_t n = layer_.hidden;
    float* to = static_cast<float*>(a.outputs[5]);
    double* sums = reinterpret_cast<double*>(static_cast<char*>(a.workspace) + sums_at_);
    for (std::int64_t d = 0; d < layer_.directions; ++d) {
      for (std::int64_t gate = 0; gate < 3; ++gate) {  // i, o, f
        std::fill(sums, sums + n, 0.0);
        for (std::int64_t step = 0; step < layer_.steps; ++step) {
          const std::int64_t t = layer_.time(d, step);
          for (std::int64_t b = 0; b < layer_.batch; ++b) {
            if (!is_active(lengths, t, b)) continue;
            const float* c = gate == 1 ? static_cast<const float*>(a.inputs[10]) + sample(t, d, b)
                                       : cell_before(a, d, step, b, lengths);
            const float* slope = da(a) + da_row(t, d, b) + gate * n;
            for (std::int64_t j = 0; j < n; ++j) {
              sums[j] += static_cast<double>(slope[j]) * (c == nullptr ? 0.0 : c[j]);
            }
          }
        }
        for (std::int64_t j = 0; j < n; ++j) {
          to[(d * 3 + gate) * n + j] = static_cast<float>(sums[j]);
        }
      }
    }
  }

  RnnWorkspace workspace_;
  RnnLayer layer_;
  const RnnCells& cells_;
  RnnKind kind_ = RnnKind::lstm;
  bool resets_first_ = false, is_linear_ = false;
  RnnRowFunction cell_ = nullptr;
  std::int64_t main_rows_ = 0, main_floats_ = 0, candidate_floats_ = 0;
  GemmPlan main_, candidate_;
  std::size_t main_at_ = 0, candidate_at_ = 0, da_at_ = 0, before_at_ = 0, dlinear_at_ = 0,
              reset_at_ = 0, dh_at_ = 0, dc_at_ = 0, scratch_at_ = 0, sums_at_ = 0, gemm_at_ = 0;
};

}  // namespace

void add_rnn_grad_kernels(KernelList& list) {
  add_row_major(
      list, "cpu.rnn_scan_grad", "RnnScanGrad",
      [](const KernelRequest& r) { return refuse_rnn(r, 4, 7); }, makes<RnnScanGradKernel>());
}

}  // namespace tandem
