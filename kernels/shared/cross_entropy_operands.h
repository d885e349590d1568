// Where SoftmaxCrossEntropy has its operands, and its gradient, and the node that does both.
#pragma once

namespace tandem {

/// The operands of one of the three operators by place; -1 where it has none.
struct CrossEntropyOperands {
  const char* op;
  const char* kernel;  // name of its kernels after "cpu." and the like
  int dlosses, logits, labels, label_weights, sums;  // inputs; sums: of the loss, log_sum_exp
  int losses, log_sum_exp, dlogits;                  // outputs

  bool makes_gradient() const { return dlogits >= 0; }
  bool makes_losses() const { return losses >= 0; }
};

inline constexpr CrossEntropyOperands cross_entropies[] = {
    {"SoftmaxCrossEntropy", "softmax_cross_entropy", -1, 0, 1, 2, -1, 0, 1, -1},
    {"SoftmaxCrossEntropyGrad", "softmax_cross_entropy_grad", 0, 1, 2, 3, 4, -1, -1, 0},
    {"SoftmaxCrossEntropyWithGrad", "softmax_cross_entropy_with_grad", 0, 1, 2, 3, -1, 0, 1, 2},
};

/// Address in a kernel's arguments; null where the operator has no such operand, it is absent, or
/// it is not read.
template <class T, class Arguments>
const T* input_at(const Arguments& a, int place) {
  return place < 0 ? nullptr : static_cast<const T*>(a.inputs[place]);
}
template <class T, class Arguments>
T* output_at(const Arguments& a, int place) {
  return place < 0 ? nullptr : static_cast<T*>(a.outputs[place]);
}

}  // namespace tandem
