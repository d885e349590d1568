// The ordered list of the CPU's kernels: best first, reference last.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

KernelList cpu_kernels();

// The parts, each best first.
void add_product_kernels(
    KernelList& list);  // MatMul, Gemm, GemmSgd, Conv and its gradients, pooling
void add_elementwise_kernels(
    KernelList& list);  // Fused and single scalar operators, Copy, Concat, Pad, Gather, reductions
void add_network_kernels(KernelList& list);  // normalisation, softmax, losses, attention, dropout
void add_update_kernels(KernelList& list);   // optimizers, clipping
void add_tensor_update_kernels(KernelList& list);    // optimizers that need norms of tensors
void add_factored_update_kernels(KernelList& list);  // those with factored statistics
void add_byte_update_kernels(KernelList& list);      // those with states of 8 bits
void add_row_kernels(KernelList& list);              // lookups in tables
void add_rows_ahead_kernels(KernelList& list);       // rows of the next step
void add_bag_kernels(KernelList& list);              // sums of looked-up rows
void add_row_update_kernels(KernelList& list);       // updates of looked-up rows
void add_mark_kernels(KernelList& list);        // rows that occurred in the micro-batches of a step
void add_cached_row_kernels(KernelList& list);  // lookups in a table and a cache of its rows
void add_shard_row_kernels(KernelList& list);   // who owns a row, where ranks share a table

}  // namespace tandem
