// The parts of the network operators' reference list, one function for each file.
#pragma once

#include "engine/runtime/kernel.h"

namespace tandem::reference {

void add_convolution_kernels(KernelList& list);          // convolution.cpp
void add_pooling_kernels(KernelList& list);              // pooling.cpp
void add_batch_normalization_kernels(KernelList& list);  // batch_normalization.cpp
void add_layer_normalization_kernels(KernelList& list);  // layer_normalization.cpp
void add_softmax_kernels(KernelList& list);              // softmax.cpp
void add_loss_kernels(KernelList& list);                 // losses.cpp
void add_dropout_kernels(KernelList& list);              // dropout.cpp
void add_grid_sample_kernels(KernelList& list);          // grid_sample.cpp
void add_random_kernels(KernelList& list);               // random.cpp
void add_attention_kernels(KernelList& list);            // attention.cpp
void add_rnn_scan_kernels(KernelList& list);             // rnn_scan.cpp
void add_update_kernels(KernelList& list);               // updates.cpp
void add_row_index_kernels(KernelList& list);            // row_indices.cpp
void add_row_update_kernels(KernelList& list);           // row_updates.cpp
void add_rows_ahead_kernels(KernelList& list);           // rows_ahead.cpp
void add_embedding_bag_kernels(KernelList& list);        // embedding_bag.cpp
void add_cached_row_kernels(KernelList& list);           // cached_rows.cpp

}  // namespace tandem::reference
