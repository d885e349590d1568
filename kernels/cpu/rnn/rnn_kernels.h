// The lists of recurrent layers' kernels.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

void add_rnn_kernels(KernelList& list);       // scan.cpp, and those of the gradient
void add_rnn_grad_kernels(KernelList& list);  // scan_grad.cpp

}  // namespace tandem
