// The forward passes in the order in which they run. TANDEM_FORWARD_PASS(name, run): `Graph run(const
// Graph&, PassContext&)` of engine/passes/, which `--without name` leaves out.

TANDEM_FORWARD_PASS(packed_products, packed_products)
TANDEM_FORWARD_PASS(fold_constants, fold_constants)
TANDEM_FORWARD_PASS(simplify, simplify)
TANDEM_FORWARD_PASS(stable_exponentials, stable_exponentials)
TANDEM_FORWARD_PASS(stable_entropies, stable_entropies)
TANDEM_FORWARD_PASS(stable_logarithms, stable_logarithms)
TANDEM_FORWARD_PASS(stable_cuts, stable_cuts)
TANDEM_FORWARD_PASS(stable_quotients, stable_quotients)
TANDEM_FORWARD_PASS(stable_angles, stable_angles)
TANDEM_FORWARD_PASS(recognise_gelu, recognise_gelu)
TANDEM_FORWARD_PASS(recognise_layer_normalization, recognise_layer_normalization)
TANDEM_FORWARD_PASS(stable_roots, stable_roots)
TANDEM_FORWARD_PASS(recognise_attention, recognise_attention)
TANDEM_FORWARD_PASS(recognise_cross_entropy, recognise_cross_entropy)
TANDEM_FORWARD_PASS(recognise_embedding_bag, recognise_embedding_bag)
TANDEM_FORWARD_PASS(simplify_again, simplify)
#undef TANDEM_FORWARD_PASS
