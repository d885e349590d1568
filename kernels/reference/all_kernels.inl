// The list of all reference kernels. TANDEM_REFERENCE(name): `void add_name(KernelList&)` of
// kernels/reference/name.cpp.

TANDEM_REFERENCE(elementwise)
TANDEM_REFERENCE(moves)
TANDEM_REFERENCE(pad)
TANDEM_REFERENCE(gather)
TANDEM_REFERENCE(flat_indices)
TANDEM_REFERENCE(scatter_rows)
TANDEM_REFERENCE(cum_sum)
TANDEM_REFERENCE(top_k)
TANDEM_REFERENCE(resize)
TANDEM_REFERENCE(reductions)
TANDEM_REFERENCE(products)
TANDEM_REFERENCE(other_types)  // integers, bool and the 16-bit floats, where element types matter
TANDEM_REFERENCE(fused)

TANDEM_REFERENCE(convolution)
TANDEM_REFERENCE(pooling)
TANDEM_REFERENCE(roi_align)
TANDEM_REFERENCE(max_roi_pool)
TANDEM_REFERENCE(det)
TANDEM_REFERENCE(batch_normalization)
TANDEM_REFERENCE(layer_normalization)
TANDEM_REFERENCE(softmax)
TANDEM_REFERENCE(losses)
TANDEM_REFERENCE(dropout)
TANDEM_REFERENCE(grid_sample)
TANDEM_REFERENCE(random)
TANDEM_REFERENCE(attention)
TANDEM_REFERENCE(rnn_scan)

TANDEM_REFERENCE(updates)
TANDEM_REFERENCE(row_indices)
TANDEM_REFERENCE(row_updates)
TANDEM_REFERENCE(rows_ahead)
TANDEM_REFERENCE(embedding_bag)
TANDEM_REFERENCE(cached_rows)
TANDEM_REFERENCE(collectives)

#undef TANDEM_REFERENCE
