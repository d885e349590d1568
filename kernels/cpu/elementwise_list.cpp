// The CPU's kernels for fused bodies, single scalar operators, reductions and moves of data.
#include "engine/operators/operator.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/fused.h"
#include "kernels/cpu/pointwise.h"

namespace tandem {

void add_elementwise_kernels(KernelList& list) {
  for (const auto& [name, op] : std::initializer_list<std::pair<const char*, const char*>>{
           {"fused", "Fused"},
           {"neg", "Neg"},
           {"abs", "Abs"},
           {"sign", "Sign"},
           {"exp", "Exp"},
           {"log", "Log"},
           {"sqrt", "Sqrt"},
           {"reciprocal", "Reciprocal"},
           {"erf", "Erf"},
           {"tanh", "Tanh"},
           {"sigmoid", "Sigmoid"},
           {"softplus", "Softplus"},
           {"relu", "Relu"},
           {"not", "Not"},
           {"leaky_relu", "LeakyRelu"},
           {"clip", "Clip"},
           {"gelu", "Gelu"},
           {"cast", "Cast"},
           {"add", "Add"},
           {"sub", "Sub"},
           {"mul", "Mul"},
           {"div", "Div"},
           {"pow", "Pow"},
           {"max", "Max"},
           {"min", "Min"},
           {"equal", "Equal"},
           {"less", "Less"},
           {"greater", "Greater"},
           {"less_or_equal", "LessOrEqual"},
           {"greater_or_equal", "GreaterOrEqual"},
           {"and", "And"},
           {"or", "Or"},
           {"xor", "Xor"},
           {"where", "Where"},
           {"relu_grad", "ReluGrad"},
           {"leaky_relu_grad", "LeakyReluGrad"},
           {"clip_grad", "ClipGrad"},
           {"gelu_grad", "GeluGrad"},
           {"tanh_grad", "TanhGrad"},
           {"sigmoid_grad", "SigmoidGrad"},
           {"reduce_sum", "ReduceSum"},
           {"reduce_mean", "ReduceMean"},
           {"reduce_max", "ReduceMax"},
           {"sum_of_squares", "SumOfSquares"}}) {
    list.push_back(tile_kernel(name, op));
  }
  add_move_kernels(list);
  add_gather_kernels(list);
}

}  // namespace tandem
