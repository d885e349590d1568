// RnnScan: each step is a product with packed weights and the cells of the units that it gave, cut
// between threads by units.
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "kernels/cpu/products/products.h"
#include "kernels/cpu/rnn/layer.h"
#include "kernels/cpu/rnn/rnn_kernels.h"

namespace tandem {

std::optional<std::string> refuse_rnn(const KernelRequest& request, std::size_t lengths,
                                      std::size_t peepholes) {
  if (auto reason = refuse_unless_float32(request, 1u << lengths)) return reason;
  const RnnSettings settings(request.attributes());
  if (settings.clip != 0) return "clip";
  if (settings.input_forget) return "input_forget";
  if (request.is_present(peepholes)) return "peepholes";
  const bool is_plain = settings.kind == RnnKind::rnn;
  for (const RnnFunctions& functions : settings.functions) {
    const RnnActivation first = functions[0].activation;
    bool is_usual = first == (is_plain ? RnnActivation::tanh : RnnActivation::sigmoid);
    if (is_plain && first == RnnActivation::relu) is_usual = true;
    for (std::size_t i = 1; i < activations_of(settings.kind); ++i) {
      is_usual = is_usual && functions[i].activation == RnnActivation::tanh;
    }
    if (!is_usual) return "activations other than Sigmoid and Tanh, and Relu of an RNN";
    if (first != settings.functions[0][0].activation) return "activations differ by direction";
  }
  return std::nullopt;
}

namespace {

class RnnScanKernel final : public PreparedKernel {
 public:
  explicit RnnScanKernel(const KernelRequest& request)
      : layer_(request, request.outputs[0].type.shape, 3, workspace_),
        cells_(rnn_cells(layer_.isa)),
        gates_(layer_.settings.gates()) {
    panel_floats_ = packed_floats(layer_.isa, layer_.hidden, layer_.hidden);
    packed_at_ = workspace_.floats(layer_.directions * gates_ * panel_floats_);
    for (std::size_t& at : states_at_) at = workspace_.floats(layer_.states());
    const bool resets_first =
        layer_.settings.kind == RnnKind::gru && !layer_.settings.linear_before_reset;
    if (layer_.settings.kind == RnnKind::lstm) cell_at_ = workspace_.floats(layer_.states());
    if (resets_first) {
      kept_at_ = workspace_.floats(layer_.states());
      reset_at_ = workspace_.floats(layer_.states());
    }
    scratch_at_ = workspace_.floats(layer_.parts * layer_.scratch(gates_));
    workspace_bytes = workspace_.total();
    switch (layer_.settings.kind) {
      case RnnKind::rnn:
        cell_ = layer_.settings.functions[0][0].activation == RnnActivation::relu ? cells_.relu
                                                                                  : cells_.tanh;
        break;
      case RnnKind::gru:
        cell_ = resets_first ? cells_.gru_gates : cells_.gru;
        break;
      case RnnKind::lstm:
        cell_ = cells_.lstm;
        break;
    }
    two_phases_ = resets_first;
  }

  void run(const KernelArguments& a) noexcept override {
    const std::int64_t* lengths = layer_.lengths(a, 3);
    pack(a);
    layer_.start(a, 4, states_at_[0]);
    if (layer_.settings.kind == RnnKind::lstm) layer_.start(a, 5, cell_at_);
    for (std::int64_t step = 0; step < layer_.steps; ++step) {
      layer_.each_block(
          [&](const RnnBlock& block, int part) { first_phase(a, block, part, step, lengths); });
      if (!two_phases_) continue;
      layer_.each_block(
          [&](const RnnBlock& block, int part) { second_phase(a, block, part, step, lengths); });
    }
    const auto bytes = static_cast<std::size_t>(layer_.states()) * sizeof(float);
    if (a.outputs[1] != nullptr) {
      std::memcpy(a.outputs[1], floats_at(a, states_at_[layer_.steps % 2]), bytes);
    }
    if (layer_.settings.kind == RnnKind::lstm && a.outputs[4] != nullptr) {
      std::memcpy(a.outputs[4], floats_at(a, cell_at_), bytes);
    }
  }

 private:
  /// R of direction d and one gate.
  float* packed(const KernelArguments& a, std::int64_t d, std::int64_t gate) const {
    return floats_at(a, packed_at_) + (d * gates_ + gate) * panel_floats_;
  }

  void pack(const KernelArguments& a) const {
    const std::int64_t n = layer_.hidden;
    parallel_parts(layer_.parts, [&](int part) {
      const Range range = part_of(layer_.directions * gates_, part, layer_.parts);
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        pack_panels(layer_.isa, {packed(a, i / gates_, i % gates_),
                                 static_cast<const float*>(a.inputs[1]) + i * n * n, 1, n, n, n});
      }
    });
  }

  /// Gates first to last - 1 of `count` samples from `begin` on: x times R, into the scratch.
  float* multiply(const KernelArguments& a, const RnnBlock& block, int part, const float* x,
                  std::int64_t begin, std::int64_t count, std::int64_t first,
                  std::int64_t last) const {
    float* scratch = floats_at(a, scratch_at_) + part * layer_.scratch(gates_);
    const std::int64_t distance = panel_distance(layer_.hidden, layer_.width());
    for (std::int64_t gate = first; gate < last; ++gate) {
      layer_.each_panel(block, [&](std::int64_t panel, std::int64_t unit, std::int64_t units) {
        multiply_panel(layer_.isa, {.m = count,
                                    .k = layer_.hidden,
                                    .columns = units,
                                    .a = x + layer_.state(block.d, begin),
                                    .a_m = layer_.hidden,
                                    .panel = packed(a, block.d, gate) + panel * distance,
                                    .c = scratch + (gate - first) * layer_.scratch(1) + unit,
                                    .c_m = layer_.block_width()});
      });
    }
    return scratch;
  }

  /// Where sample b of this step has its operands and results.
  RnnRow row(const KernelArguments& a, const RnnBlock& block, std::int64_t step,
             std::int64_t b) const {
    const std::int64_t n = layer_.hidden, t = layer_.time(block.d, step), d = block.d;
    const std::int64_t sample = (t * layer_.directions + d) * layer_.batch + b;
    const std::int64_t state = layer_.state(d, b) + block.unit;
    RnnRow r;
    r.n = block.units;
    r.gate = n;
    r.part = layer_.scratch(1);
    r.xw = static_cast<const float*>(a.inputs[0]) +
           ((t * layer_.batch + b) * layer_.directions + d) * layer_.rows + block.unit;
    if (a.inputs[2] != nullptr) {
      r.bias_h = static_cast<const float*>(a.inputs[2]) + d * n + block.unit;
    }
    r.before = floats_at(a, states_at_[step % 2]) + state;
    r.h = floats_at(a, states_at_[(step + 1) % 2]) + state;
    if (a.outputs[2] != nullptr) {
      r.gates =
          static_cast<float*>(a.outputs[2]) + sample * layer_.settings.saved() * n + block.unit;
    }
    r.y =
        a.outputs[0] != nullptr ? static_cast<float*>(a.outputs[0]) + sample * n + block.unit : r.h;
    if (layer_.settings.kind == RnnKind::lstm) r.cell = floats_at(a, cell_at_) + state;
    if (two_phases_) r.kept = floats_at(a, kept_at_) + state;
    return r;
  }

  /// A step at or past the sample's length.
  void pass(const RnnRow& r) const {
    const auto bytes = static_cast<std::size_t>(r.n) * sizeof(float);
    std::memcpy(r.h, r.before, bytes);
    if (r.y != r.h) std::memset(r.y, 0, bytes);
    for (std::int64_t q = 0; r.gates != nullptr && q < layer_.settings.saved(); ++q) {
      std::memset(r.gates + q * r.gate, 0, bytes);
    }
  }

  void keep_cell(const KernelArguments& a, const RnnBlock& block, std::int64_t step, std::int64_t b,
                 const RnnRow& r) const {
    if (layer_.settings.kind != RnnKind::lstm || a.outputs[3] == nullptr) return;
    const std::int64_t t = layer_.time(block.d, step);
    float* to = static_cast<float*>(a.outputs[3]) + t * layer_.states() + layer_.state(block.d, b) +
                block.unit;
    std::memcpy(to, r.cell, static_cast<std::size_t>(r.n) * sizeof(float));
  }

  void first_phase(const KernelArguments& a, const RnnBlock& block, int part, std::int64_t step,
                   const std::int64_t* lengths) const {
    const std::int64_t t = layer_.time(block.d, step);
    const float* before = floats_at(a, states_at_[step % 2]);
    for (std::int64_t begin = 0; begin < layer_.batch; begin += RnnLayer::samples) {
      const std::int64_t end = std::min(begin + RnnLayer::samples, layer_.batch);
      const float* product =
          multiply(a, block, part, before, begin, end - begin, 0, two_phases_ ? 2 : gates_);
      for (std::int64_t b = begin; b < end; ++b, product += layer_.block_width()) {
        RnnRow r = row(a, block, step, b);
        r.product = product;
        if (two_phases_) {
          r.h = floats_at(a, reset_at_) + layer_.state(block.d, b) + block.unit;  // r h
          cell_(r);
        } else if (is_active(lengths, t, b)) {
          cell_(r);
        } else {
          pass(r);
        }
        keep_cell(a, block, step, b, r);
      }
    }
  }

  /// The second phase of a GRU that resets first: the candidate and h.
  void second_phase(const KernelArguments& a, const RnnBlock& block, int part, std::int64_t step,
                    const std::int64_t* lengths) const {
    const std::int64_t t = layer_.time(block.d, step);
    for (std::int64_t begin = 0; begin < layer_.batch; begin += RnnLayer::samples) {
      const std::int64_t end = std::min(begin + RnnLayer::samples, layer_.batch);
      const float* product =
          multiply(a, block, part, floats_at(a, reset_at_), begin, end - begin, 2, 3);
      for (std::int64_t b = begin; b < end; ++b, product += layer_.block_width()) {
        RnnRow r = row(a, block, step, b);
        r.product = product;
        if (is_active(lengths, t, b)) {
          cells_.gru_candidate(r);
        } else {
          pass(r);
        }
      }
    }
  }

  RnnWorkspace workspace_;
  RnnLayer layer_;
  const RnnCells& cells_;
  std::int64_t gates_;
  RnnRowFunction cell_ = nullptr;
  bool two_phases_ = false;
  std::int64_t panel_floats_ = 0;
  std::size_t packed_at_ = 0, states_at_[2] = {}, cell_at_ = 0, kept_at_ = 0, reset_at_ = 0,
              scratch_at_ = 0;
};

}  // namespace

void add_rnn_kernels(KernelList& list) {
  add_row_major(
      list, "cpu.rnn_scan", "RnnScan", [](const KernelRequest& r) { return refuse_rnn(r, 3, 6); },
      makes<RnnScanKernel>());
  add_rnn_grad_kernels(list);
}

}  // namespace tandem
