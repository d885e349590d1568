// Attention and its gradient by cuDNN, for 16-bit floats.
#include <array>

#include "engine/operators/operator.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/networks/attention.h"
#include "kernels/cuda/networks/attention_graph.h"

namespace tandem::cuda {
namespace {

constexpr std::int64_t aligned_elements = 8;  // 16 bytes of 16-bit floats
/// A deterministic gradient keeps the scores of all heads. Beyond this it is computed in tiles.
constexpr std::size_t most_score_bytes = std::size_t{4} << 30;

bool keeps_alignment(std::int64_t elements) { return elements % aligned_elements == 0; }

/// Rows of neighbours that begin at multiples of 16 bytes and do not overlap.
bool has_rows(const Operand& operand) {
  if (!operand.present || !operand.layout.is_strided()) return false;
  const Shape& shape = operand.type.shape;
  const auto& strides = operand.layout.strides;
  if (strides.size() != 4 || strides[3] != 1 || !keeps_alignment(operand.layout.offset))
    return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape[i] > 1 && (strides[i] < shape[3] || !keeps_alignment(strides[i]))) return false;
  }
  return true;
}

LayoutConstraint constraint_of_rows(const Operand& operand) {
  if (has_rows(operand)) return {LayoutConstraint::Kind::exact, operand.layout};
  return {LayoutConstraint::Kind::row_major, {}};
}

/// Keys are neighbours; other axes may be broadcast.
bool is_readable_mask(const Operand& operand) {
  if (!operand.layout.is_strided() || !keeps_alignment(operand.layout.offset)) return false;
  const Shape& shape = operand.type.shape;
  const auto& strides = operand.layout.strides;
  if (shape.empty() || strides.back() != 1) return false;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    if (shape[i] > 1 && strides[i] != 0 && strides[i] < shape.back()) return false;
  }
  return true;
}

/// Strides of [B, H, rows, columns]; axes of extent 1 get those of a dense tensor.
std::vector<std::int64_t> strides_of(const Operand& operand) {
  const Shape& shape = operand.type.shape;
  std::vector<std::int64_t> strides = row_major(shape).strides;
  if (!operand.present) return strides;
  std::int64_t within = 1;  // elements that an axis of extent 1 steps over
  for (std::size_t i = 4; i-- > 0;) {
    strides[i] = shape[i] == 1 ? within : operand.layout.strides[i];
    within = std::max(within, strides[i] * shape[i]);
  }
  return strides;
}

void set_mask(AttentionShape& n, const Operand& mask) {
  const Shape& shape = mask.type.shape;
  n.mask = Shape(4, 1);
  n.mask_strides = std::vector<std::int64_t>(4, 1);
  std::int64_t within = 1;
  for (std::size_t i = 4; i-- > 0;) {
    const std::size_t missing = 4 - shape.size();
    const bool own =
        i >= missing && shape[i - missing] != 1 && mask.layout.strides[i - missing] != 0;
    if (own) n.mask[i] = shape[i - missing];
    n.mask_strides[i] = own ? mask.layout.strides[i - missing] : within;
    within = std::max(within, n.mask_strides[i] * n.mask[i]);
  }
}

AttentionShape shape_of(const KernelRequest& r) {
  const AttentionPorts ports(r);
  const Shape &q = r.inputs[ports.q].type.shape, &v = r.inputs[ports.v].type.shape;
  AttentionShape n;
  n.dtype = r.inputs[ports.q].type.dtype;
  n.batch = q[0], n.heads = q[1], n.queries = q[2], n.key_size = q[3];
  n.keys = v[2], n.value_size = v[3];
  n.q = strides_of(r.inputs[ports.q]);
  n.k = strides_of(r.inputs[ports.k]);
  n.v = strides_of(r.inputs[ports.v]);
  if (r.is_present(ports.mask)) set_mask(n, r.inputs[ports.mask]);
  n.is_causal = r.attributes().flag("causal");
  n.is_deterministic = r.deterministic;
  n.scale = r.attributes().number("scale");
  n.y = strides_of(ports.is_gradient ? r.inputs[ports.y] : r.outputs[0]);
  if (ports.is_gradient) {
    n.dy = strides_of(r.inputs[ports.dy]);
    n.dq = strides_of(r.outputs[0]);
    n.dk = strides_of(r.outputs[1]);
    n.dv = strides_of(r.outputs[2]);
  }
  return n;
}

/// Row-major strides, for asking before layouts are chosen.
KernelRequest with_plain_layouts(KernelRequest r) {
  for (std::vector<Operand>* operands : {&r.inputs, &r.outputs}) {
    for (Operand& operand : *operands) operand.layout = row_major(operand.type.shape);
  }
  return r;
}

std::size_t score_bytes(const AttentionShape& n) {
  return static_cast<std::size_t>(n.batch * n.heads * n.queries * n.keys) * size_of(n.dtype);
}

std::optional<std::string> refuse(NetworkGpu& networks, const KernelRequest& request) {
  const AttentionPorts ports(request);
  const DType dtype = request.inputs[ports.q].type.dtype;
  if (dtype != DType::float16 && dtype != DType::bfloat16) return "takes 16-bit floats only";
  for (const Operand& operand : request.inputs) {
    if (operand.present && operand.type.elements() == 0) return "an operand is empty";
  }
  if (!ports.is_gradient && !request.outputs[0].present) return "nothing reads y";
  const KernelRequest plain = with_plain_layouts(request);
  const AttentionShape n = shape_of(plain);
  if (n.is_causal && n.queries != n.keys) return "causal, but not as many queries as keys";
  if (!n.mask.empty() && n.mask[3] != n.keys) return "a mask that is the same for all keys";
  if (ports.is_gradient && n.is_deterministic && score_bytes(n) > most_score_bytes) {
    return "a deterministic gradient would keep more than 4 GiB of scores";
  }
  return networks.refuse(ports.is_gradient ? attention_gradient_graph(n) : attention_graph(n),
                         networks.rules(request.deterministic));
}

std::vector<Proposal> propose(const KernelRequest& r) {
  const AttentionPorts ports(r);
  Proposal p;
  for (std::size_t i = 0; i < r.inputs.size(); ++i) {
    if (i == ports.mask) {
      const Operand& mask = r.inputs[i];
      p.inputs.push_back(mask.present && is_readable_mask(mask)
                             ? LayoutConstraint{LayoutConstraint::Kind::exact, mask.layout}
                             : LayoutConstraint{LayoutConstraint::Kind::row_major, {}});
    } else if (ports.is_gradient && i == ports.log_sum_exp) {
      p.inputs.push_back({LayoutConstraint::Kind::row_major, {}});
    } else {
      p.inputs.push_back(constraint_of_rows(r.inputs[i]));
    }
  }
  for (std::size_t i = 0; i < r.outputs.size(); ++i) {
    const bool sums = !ports.is_gradient && i == 1;
    p.outputs.push_back(sums ? LayoutConstraint{LayoutConstraint::Kind::row_major, {}}
                             : constraint_of_rows(r.outputs[i]));
  }
  return {p};
}

/// Parts of the workspace, each from a multiple of 256 bytes on.
class Parts {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += padded(bytes);
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

void* part_at(const KernelArguments& a, std::size_t at) {
  return static_cast<char*>(a.workspace) + at;
}

class CudnnForward final : public PreparedKernel {
 public:
  CudnnForward(const KernelRequest& r, const Networks& networks)
      : networks_(networks),
        n_(plain_attention_of(r)),
        kernel_(networks, attention_graph(shape_of(r)), networks->rules(r.deterministic)) {
    Parts parts;
    plan_at_ = parts.add(kernel_.workspace_bytes());
    has_sums_ = r.outputs.size() > 1 && r.outputs[1].present;
    if (!has_sums_) {
      sums_at_ =
          parts.add(static_cast<std::size_t>(n_.batch * n_.heads * n_.queries) * sizeof(float));
    }
    workspace_bytes = parts.bytes();
  }

  void run(const KernelArguments& a) noexcept override {
    void* const sums = has_sums_ ? a.outputs[1] : part_at(a, sums_at_);
    std::array<const void*, 6> addresses{a.inputs[0], a.inputs[1], a.inputs[2]};
    std::size_t count = 3;
    if (n_.is_masked) addresses[count++] = a.inputs[3];
    addresses[count++] = a.outputs[0];
    addresses[count++] = sums;
    kernel_.run(addresses.data(), part_at(a, plan_at_), a.queue);
    if (!n_.is_masked) return;
    AttentionAddresses at;
    at.mask = a.inputs[3];
    at.y = a.outputs[0];
    at.log_sum_exp = static_cast<float*>(sums);
    mend_blind_queries(networks_->gpu(), n_, at, a.queue);
  }

 private:
  Networks networks_;
  PlainAttention n_;
  PlanKernel kernel_;
  bool has_sums_ = true;
  std::size_t plan_at_ = 0, sums_at_ = 0;
};

class CudnnGradient final : public PreparedKernel {
 public:
  CudnnGradient(const KernelRequest& r, const Networks& networks)
      : networks_(networks),
        n_(plain_attention_of(r)),
        is_deterministic_(r.deterministic),
        kernel_(networks, attention_gradient_graph(shape_of(r)), networks->rules(r.deterministic)) {
    Parts parts;
    plan_at_ = parts.add(kernel_.workspace_bytes());
    rows_ = n_.batch * n_.heads * n_.queries;
    if (n_.is_masked) sums_at_ = parts.add(static_cast<std::size_t>(rows_) * sizeof(float));
    if (!is_deterministic_) {
      dq_bytes_ = static_cast<std::size_t>(rows_ * n_.key_size) * sizeof(float);
      dq_at_ = parts.add(dq_bytes_);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      is_wanted_[i] = r.outputs[i].present;
      if (!is_wanted_[i]) unread_at_[i] = parts.add(r.outputs[i].type.bytes());
    }
    workspace_bytes = parts.bytes();
  }

  void run(const KernelArguments& a) noexcept override {
    GpuContext& gpu = networks_->gpu();
    const void* sums = a.inputs[5];
    if (n_.is_masked) {
      float* const mended = static_cast<float*>(part_at(a, sums_at_));
      mend_blind_sums(gpu, rows_, static_cast<const float*>(sums), mended, a.queue);
      sums = mended;
    }
    std::array<const void*, 11> addresses{a.inputs[0], a.inputs[1], a.inputs[2],
                                          a.inputs[3], a.inputs[4], sums};
    std::size_t count = 6;
    if (n_.is_masked) addresses[count++] = a.inputs[6];
    for (std::size_t i = 0; i < 3; ++i) {
      addresses[count++] = is_wanted_[i] ? a.outputs[i] : part_at(a, unread_at_[i]);
    }
    if (!is_deterministic_) {
      void* const dq = part_at(a, dq_at_);
      zero_bytes(gpu, dq, dq_bytes_, a.queue);
      addresses[count++] = dq;
    }
    kernel_.run(addresses.data(), part_at(a, plan_at_), a.queue);
  }

 private:
  Networks networks_;
  PlainAttention n_;
  bool is_deterministic_;
  PlanKernel kernel_;
  std::int64_t rows_ = 0;
  bool is_wanted_[3] = {};
  std::size_t plan_at_ = 0, sums_at_ = 0, dq_at_ = 0, dq_bytes_ = 0, unread_at_[3] = {};
};

}  // namespace

void add_cudnn_attention(KernelList& list, const Networks& networks) {
  const auto refusal = [networks](const KernelRequest& r) { return refuse(*networks, r); };
  list.push_back({"cudnn.attention", "Attention", refusal, propose, makes<CudnnForward>(networks)});
  list.push_back(
      {"cudnn.attention_grad", "AttentionGrad", refusal, propose, makes<CudnnGradient>(networks)});
}

}  // namespace tandem::cuda
