// The list of losses, in the order of messages and docs. TANDEM_LOSS(name): `LossKind name()` of a
// file in engine/losses/.

TANDEM_LOSS(softmax_cross_entropy)
TANDEM_LOSS(mse)
TANDEM_LOSS(binary_cross_entropy)
TANDEM_LOSS(sum_of_squares)
TANDEM_LOSS(nll)
TANDEM_LOSS(softmax_focal)
TANDEM_LOSS(sigmoid_focal)
TANDEM_LOSS(hinge)
TANDEM_LOSS(multi_margin)
TANDEM_LOSS(mae)
TANDEM_LOSS(huber)
TANDEM_LOSS(smooth_l1)
TANDEM_LOSS(kl_div)
TANDEM_LOSS(gaussian_kl)
TANDEM_LOSS(cosine_embedding)
TANDEM_LOSS(triplet_margin)
TANDEM_LOSS(info_nce)
TANDEM_LOSS(dice)
TANDEM_LOSS(ctc)
TANDEM_LOSS(distillation)
#undef TANDEM_LOSS
