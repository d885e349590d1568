// y = x - log(sum(exp(x))) along an axis; dx = dy - exp(y) * sum(dy).
#include "engine/operators/operator.h"
#include "engine/operators/softmax_family.h"

namespace tandem::operators {

Operator log_softmax() { return softmax_operator("LogSoftmax"); }
Operator log_softmax_grad() { return softmax_grad_operator("LogSoftmax"); }

}  // namespace tandem::operators
