// The list of ONNX's operators that import reads. TANDEM_IMPORT(NAME, function, .settings = ...):
// `void function(NodeContext&)` of importer/operators/function.cpp, or of a file for its family, and
// what struct Lowering says of the inputs. Scalar functions of the engine that are not named here
// are read as they are. tests/scripts/pack_onnx_node_tests.py reads the names.

// Element by element
TANDEM_IMPORT(Max, max)
TANDEM_IMPORT(Min, min)
TANDEM_IMPORT(Sum, sum)
TANDEM_IMPORT(Mean, mean)
TANDEM_IMPORT(Clip, clip, .settings = {1, 2})
TANDEM_IMPORT(Mod, mod)
TANDEM_IMPORT(Pow, pow)
TANDEM_IMPORT(Where, where)
TANDEM_IMPORT(PRelu, scalar_function, .weights = {1, 1})

// Constants
TANDEM_IMPORT(Constant, constant)
TANDEM_IMPORT(ConstantOfShape, constant_of_shape, .settings = {0, 0})
TANDEM_IMPORT(Shape, shape)
TANDEM_IMPORT(Size, size)
TANDEM_IMPORT(Range, range, .settings = {0, 2})
TANDEM_IMPORT(NonZero, non_zero)

// Views and moves
TANDEM_IMPORT(Identity, identity)
TANDEM_IMPORT(Reshape, reshape, .settings = {1, 1})
TANDEM_IMPORT(Flatten, flatten)
TANDEM_IMPORT(Squeeze, squeeze, .settings = {1, 1})
TANDEM_IMPORT(Unsqueeze, unsqueeze, .settings = {1, 1})
TANDEM_IMPORT(Transpose, transpose)
TANDEM_IMPORT(Concat, concat)
TANDEM_IMPORT(Expand, expand, .settings = {1, 1})
TANDEM_IMPORT(Tile, tile, .settings = {1, 1})
TANDEM_IMPORT(DepthToSpace, depth_to_space)
TANDEM_IMPORT(SpaceToDepth, space_to_depth)
TANDEM_IMPORT(Cast, cast)
TANDEM_IMPORT(CastLike, cast_like)
TANDEM_IMPORT(Trilu, trilu, .settings = {1, 1})
TANDEM_IMPORT(Slice, slice, .settings = {1, 4})
TANDEM_IMPORT(Split, split, .settings = {1, 1})
TANDEM_IMPORT(Pad, pad, .settings = {1, 3})

// Control flow, sequences, optionals: gone after import
TANDEM_IMPORT(If, if_else, .settings = {0, 0})
TANDEM_IMPORT(Loop, loop, .settings = {0, 1})
TANDEM_IMPORT(Scan, scan)
TANDEM_IMPORT(SplitToSequence, split_to_sequence, .settings = {1, 1})
TANDEM_IMPORT(SequenceAt, sequence_at, .settings = {1, 1})
TANDEM_IMPORT(SequenceConstruct, sequence_construct)
TANDEM_IMPORT(SequenceEmpty, sequence_empty)
TANDEM_IMPORT(SequenceInsert, sequence_insert, .settings = {2, 2})
TANDEM_IMPORT(SequenceErase, sequence_erase, .settings = {1, 1})
TANDEM_IMPORT(SequenceLength, sequence_length)
TANDEM_IMPORT(SequenceMap, sequence_map)
TANDEM_IMPORT(ConcatFromSequence, concat_from_sequence)
TANDEM_IMPORT(Optional, optional)
TANDEM_IMPORT(OptionalHasElement, optional_has_element)
TANDEM_IMPORT(OptionalGetElement, optional_get_element)

// Lookups, updates, places
TANDEM_IMPORT(Gather, gather, .weights = {0, 0})
TANDEM_IMPORT(GatherND, gather_nd)
TANDEM_IMPORT(GatherElements, gather_elements)
TANDEM_IMPORT(ScatterND, scatter_nd)
TANDEM_IMPORT(ScatterElements, scatter_elements)
TANDEM_IMPORT(Scatter, scatter_elements)
TANDEM_IMPORT(CumSum, cum_sum, .settings = {1, 1})
TANDEM_IMPORT(TopK, top_k, .settings = {1, 1})
TANDEM_IMPORT(ArgMax, arg_max)
TANDEM_IMPORT(ArgMin, arg_min)
TANDEM_IMPORT(Hardmax, hardmax)
TANDEM_IMPORT(OneHot, one_hot, .settings = {1, 1})
TANDEM_IMPORT(EyeLike, eye_like)
TANDEM_IMPORT(Resize, resize, .settings = {1, 3})
TANDEM_IMPORT(Upsample, resize, .settings = {1, 1})
TANDEM_IMPORT(GridSample, grid_sample)

// Reductions
TANDEM_IMPORT(ReduceSum, reduce, .settings = {1, 1})
TANDEM_IMPORT(ReduceMean, reduce, .settings = {1, 1})
TANDEM_IMPORT(ReduceMax, reduce, .settings = {1, 1})
TANDEM_IMPORT(ReduceMin, reduce_min, .settings = {1, 1})
TANDEM_IMPORT(ReduceProd, reduce, .settings = {1, 1})
TANDEM_IMPORT(ReduceSumSquare, reduce_sum_square, .settings = {1, 1})
TANDEM_IMPORT(ReduceL1, reduce_l1, .settings = {1, 1})
TANDEM_IMPORT(ReduceL2, reduce_l2, .settings = {1, 1})
TANDEM_IMPORT(ReduceLogSum, reduce_log_sum, .settings = {1, 1})
TANDEM_IMPORT(ReduceLogSumExp, reduce_log_sum_exp, .settings = {1, 1})
TANDEM_IMPORT(GlobalAveragePool, global_average_pool)
TANDEM_IMPORT(GlobalMaxPool, global_max_pool)

// Products, windows
TANDEM_IMPORT(MatMul, matmul, .weights = {0, 1}, .weight_rank = 2)
TANDEM_IMPORT(Gemm, gemm, .weights = {1, 2})
TANDEM_IMPORT(Einsum, einsum)
TANDEM_IMPORT(Conv, conv, .weights = {1, 2})
TANDEM_IMPORT(ConvTranspose, conv_transpose, .weights = {1, 2})
TANDEM_IMPORT(MaxPool, max_pool)
TANDEM_IMPORT(AveragePool, average_pool)

// Normalisation. The scales of InstanceNormalization and GroupNormalization are not its weights:
// exporters fill them with ones and zeros, and leave the weights to operators behind.
TANDEM_IMPORT(BatchNormalization, batch_normalization, .weights = {1, 2}, .statistics = {3, 4})
TANDEM_IMPORT(LayerNormalization, layer_normalization, .weights = {1, 2})
TANDEM_IMPORT(InstanceNormalization, instance_normalization)
TANDEM_IMPORT(GroupNormalization, group_normalization)
TANDEM_IMPORT(MeanVarianceNormalization, mean_variance_normalization)
TANDEM_IMPORT(LpNormalization, lp_normalization)
TANDEM_IMPORT(LRN, local_response_normalization)

// Softmax, losses, random numbers, attention
TANDEM_IMPORT(Softmax, softmax)
TANDEM_IMPORT(LogSoftmax, softmax)
TANDEM_IMPORT(SoftmaxCrossEntropyLoss, softmax_cross_entropy_loss)
TANDEM_IMPORT(NegativeLogLikelihoodLoss, negative_log_likelihood_loss)
TANDEM_IMPORT(Dropout, dropout, .settings = {1, 2})
TANDEM_IMPORT(RandomUniform, random_uniform)
TANDEM_IMPORT(RandomNormal, random_normal)
TANDEM_IMPORT(RandomUniformLike, random_uniform_like)
TANDEM_IMPORT(RandomNormalLike, random_normal_like)
TANDEM_IMPORT(Attention, attention)

// Recurrent layers: W, R and B; the peepholes of LSTM
TANDEM_IMPORT(RNN, rnn, .weights = {1, 3})
TANDEM_IMPORT(GRU, gru, .weights = {1, 3})
TANDEM_IMPORT(LSTM, lstm, .weights = {1, 3}, .more_weights = {7, 7})

#undef TANDEM_IMPORT
