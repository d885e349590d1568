// Attention and its gradient by our own tiles.
#include "engine/operators/operator.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/networks/attention.h"

namespace tandem::cuda {

AttentionPorts::AttentionPorts(const KernelRequest& request)
    : is_gradient(request.node->op->name == "AttentionGrad") {
  if (is_gradient) q = 1, k = 2, v = 3, mask = 6;
}

namespace {

HeadMap head_map(const Operand& operand) {
  const Layout plain = row_major(operand.type.shape);
  const auto& strides = operand.present ? operand.layout.strides : plain.strides;
  return {strides[0], strides[1], strides[2], strides[3]};
}

/// The strides of a mask that broadcasts to [B, H, S, T].
HeadMap mask_map(const Operand& operand) {
  std::int64_t strides[4] = {};
  const Shape& shape = operand.type.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) strides[i + 4 - shape.size()] = operand.layout.strides[i];
  }
  return {strides[0], strides[1], strides[2], strides[3]};
}

std::vector<Proposal> propose(const KernelRequest& request) {
  const LayoutConstraint any{}, plain{.kind = LayoutConstraint::Kind::row_major, .layout = {}};
  const AttentionPorts ports(request);
  Proposal p{.inputs = std::vector<LayoutConstraint>(request.inputs.size(), any),
             .outputs = std::vector<LayoutConstraint>(request.outputs.size(), any)};
  if (ports.is_gradient) {
    p.inputs[ports.log_sum_exp] = plain;
  } else if (p.outputs.size() > 1) {
    p.outputs[1] = plain;
  }
  return {p};
}

class PlainForward final : public PreparedKernel {
 public:
  PlainForward(const KernelRequest& request, Networks networks)
      : networks_(std::move(networks)),
        n_(plain_attention_of(request)),
        has_sums_(request.outputs.size() > 1 && request.outputs[1].present) {}

  void run(const KernelArguments& a) noexcept override {
    AttentionAddresses at;
    at.q = a.inputs[0], at.k = a.inputs[1], at.v = a.inputs[2];
    if (n_.is_masked) at.mask = a.inputs[3];
    at.y = a.outputs[0];
    if (has_sums_) at.log_sum_exp = static_cast<float*>(a.outputs[1]);
    run_attention(networks_->gpu(), n_, at, a.queue);
  }

 private:
  Networks networks_;
  PlainAttention n_;
  bool has_sums_;
};

class PlainGradient final : public PreparedKernel {
 public:
  PlainGradient(const KernelRequest& request, Networks networks)
      : networks_(std::move(networks)), n_(plain_attention_of(request)) {
    workspace_bytes =
        static_cast<std::size_t>(n_.batch * n_.heads * n_.queries * row_numbers_of_gradient) *
        sizeof(float);
  }

  void run(const KernelArguments& a) noexcept override {
    AttentionAddresses at;
    at.dy = a.inputs[0], at.q = a.inputs[1], at.k = a.inputs[2], at.v = a.inputs[3];
    at.y_read = a.inputs[4];
    at.log_sum_exp_read = static_cast<const float*>(a.inputs[5]);
    if (n_.is_masked) at.mask = a.inputs[6];
    at.of_rows = static_cast<float*>(a.workspace);
    at.dq = a.outputs[0], at.dk = a.outputs[1], at.dv = a.outputs[2];
    run_attention_gradient(networks_->gpu(), n_, at, a.queue);
  }

 private:
  Networks networks_;
  PlainAttention n_;
};

}  // namespace

PlainAttention plain_attention_of(const KernelRequest& r) {
  const AttentionPorts ports(r);
  PlainAttention n;
  const Shape& q = r.inputs[ports.q].type.shape;
  const Shape& v = r.inputs[ports.v].type.shape;
  n.dtype = r.inputs[ports.q].type.dtype;
  n.batch = q[0], n.heads = q[1], n.queries = q[2], n.key_size = q[3];
  n.keys = v[2], n.value_size = v[3];
  n.q = head_map(r.inputs[ports.q]);
  n.k = head_map(r.inputs[ports.k]);
  n.v = head_map(r.inputs[ports.v]);
  n.is_masked = r.is_present(ports.mask);
  if (n.is_masked) n.mask = mask_map(r.inputs[ports.mask]);
  n.is_causal = r.attributes().flag("causal");
  n.scale = static_cast<float>(r.attributes().number("scale"));
  if (ports.is_gradient) {
    n.dy = head_map(r.inputs[ports.dy]);
    n.y = head_map(r.inputs[ports.y]);
    n.dq = head_map(r.outputs[0]);
    n.dk = head_map(r.outputs[1]);
    n.dv = head_map(r.outputs[2]);
  } else {
    n.y = head_map(r.outputs[0]);
  }
  return n;
}

void add_plain_attention(KernelList& list, const Networks& networks) {
  list.push_back(
      {"cuda.attention", "Attention", refuse_other_types, propose, makes<PlainForward>(networks)});
  list.push_back({"cuda.attention_grad", "AttentionGrad", refuse_other_types, propose,
                  makes<PlainGradient>(networks)});
}

}  // namespace tandem::cuda
