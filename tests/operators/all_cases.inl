// The list of all case tables. TANDEM_CASES(name): `void add_name_cases(Cases&)` of
// tests/operators/name_cases.cpp.

TANDEM_CASES(elementwise)
TANDEM_CASES(typed)
TANDEM_CASES(float8)
TANDEM_CASES(move)
TANDEM_CASES(flat_indices)
TANDEM_CASES(scatter_rows)
TANDEM_CASES(cum_sum)
TANDEM_CASES(top_k)
TANDEM_CASES(resize)
TANDEM_CASES(grid_sample)
TANDEM_CASES(reduction)
TANDEM_CASES(product)
TANDEM_CASES(packed)
TANDEM_CASES(fused)

TANDEM_CASES(convolution)
TANDEM_CASES(pooling)
TANDEM_CASES(region)
TANDEM_CASES(det)
TANDEM_CASES(normalization)
TANDEM_CASES(softmax)
TANDEM_CASES(loss)
TANDEM_CASES(ctc)
TANDEM_CASES(dropout)
TANDEM_CASES(attention)
TANDEM_CASES(rnn)

TANDEM_CASES(update)
TANDEM_CASES(rows)
TANDEM_CASES(absent_id)
TANDEM_CASES(rows_ahead)
TANDEM_CASES(cached_row)
TANDEM_CASES(shard_row)
TANDEM_CASES(collective)

#undef TANDEM_CASES
