// The list of formats that weights are loaded from, best first, as an ending may be the end of another
// one. TANDEM_WEIGHTS_FORMAT(name): `WeightsFormat name_weights()` of a file in this folder.

TANDEM_WEIGHTS_FORMAT(sharded)
TANDEM_WEIGHTS_FORMAT(safetensors)
TANDEM_WEIGHTS_FORMAT(npz)
TANDEM_WEIGHTS_FORMAT(torch)
#undef TANDEM_WEIGHTS_FORMAT
