// What the lists of element-wise, network and update kernels are made of.
#pragma once

#include "engine/device/kernel_forms.h"

namespace tandem {

void add_move_kernels(KernelList& list);                 // moves.cpp
void add_pad_kernels(KernelList& list);                  // pad.cpp
void add_float8_kernels(KernelList& list);               // float8.cpp
void add_gather_kernels(KernelList& list);               // gather.cpp
void add_index_kernels(KernelList& list);                // indices.cpp
void add_resize_kernels(KernelList& list);               // resize.cpp
void add_grid_sample_kernels(KernelList& list);          // grid_sample.cpp
void add_typed_kernels(KernelList& list);                // typed.cpp
void add_softmax_kernels(KernelList& list);              // softmax.cpp
void add_loss_kernels(KernelList& list);                 // losses.cpp
void add_ctc_loss_kernels(KernelList& list);             // ctc_loss.cpp
void add_layer_normalization_kernels(KernelList& list);  // layer_normalization.cpp
void add_batch_normalization_kernels(KernelList& list);  // batch_normalization.cpp
void add_dropout_kernels(KernelList& list);              // dropout.cpp
void add_attention_kernels(KernelList& list);            // attention.cpp

}  // namespace tandem
