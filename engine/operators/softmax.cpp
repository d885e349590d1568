// y = exp(x) / sum(exp(x)) along an axis; dx = y * (dy - sum(y * dy)).
#include "engine/operators/operator.h"
#include "engine/operators/softmax_family.h"

namespace tandem::operators {

Operator softmax() { return softmax_operator("Softmax"); }
Operator softmax_grad() { return softmax_grad_operator("Softmax"); }

}  // namespace tandem::operators
