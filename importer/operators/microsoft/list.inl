// The operators of com.microsoft that import reads: onnxruntime writes them into models that it
// optimised. TANDEM_IMPORT(NAME, function, …) as in ../all.inl, with functions of the namespace
// `microsoft`. What no function reads of a node, input or attribute, is refused.

// Element by element
TANDEM_IMPORT(Gelu, gelu)
TANDEM_IMPORT(BiasGelu, gelu)
TANDEM_IMPORT(FastGelu, fast_gelu)
TANDEM_IMPORT(QuickGelu, quick_gelu)
TANDEM_IMPORT(BiasAdd, bias_add)

// Products
TANDEM_IMPORT(FusedMatMul, fused_matmul, .weights = {0, 1}, .weight_rank = 2)
TANDEM_IMPORT(TransposeMatMul, fused_matmul, .weights = {0, 1}, .weight_rank = 2)
TANDEM_IMPORT(FusedGemm, fused_gemm, .weights = {1, 2})
TANDEM_IMPORT(FusedConv, fused_conv, .weights = {1, 2})

// Weights of few bits
TANDEM_IMPORT(MatMulNBits, matmul_nbits, .weights = {1, 1}, .weight_rank = 1)
TANDEM_IMPORT(MatMulBnb4, matmul_bnb4, .weights = {1, 1}, .weight_rank = 1)
TANDEM_IMPORT(GatherBlockQuantized, gather_block_quantized, .weights = {0, 0}, .weight_rank = 1)

// Normalization. Those with `extends_onnx` stand in the domain ai.onnx.
TANDEM_IMPORT(LayerNormalization, layer_normalization, .weights = {1, 2}, .extends_onnx = true)
TANDEM_IMPORT(SimplifiedLayerNormalization, simplified_layer_normalization, .weights = {1, 1}, .extends_onnx = true)
TANDEM_IMPORT(SkipLayerNormalization, skip_layer_normalization, .weights = {2, 4})
TANDEM_IMPORT(SkipSimplifiedLayerNormalization, skip_simplified_layer_normalization, .weights = {2, 3})
TANDEM_IMPORT(EmbedLayerNormalization, embed_layer_normalization, .weights = {2, 6})

// Attention
TANDEM_IMPORT(Attention, attention, .weights = {1, 2})
TANDEM_IMPORT(MultiHeadAttention, multi_head_attention, .weights = {3, 3})
TANDEM_IMPORT(GroupQueryAttention, group_query_attention, .settings = {5, 6})
TANDEM_IMPORT(RotaryEmbedding, rotary_embedding)

#undef TANDEM_IMPORT
