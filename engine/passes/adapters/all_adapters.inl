// The list of kinds of adapters besides the plain ones of lora.cpp, in the order of keys and
// messages. TANDEM_ADAPTER(name): `AdapterKind name()` of a file in this folder, and the key of
// parameters.lora that chooses it.

TANDEM_ADAPTER(rslora)
TANDEM_ADAPTER(dora)
#undef TANDEM_ADAPTER
