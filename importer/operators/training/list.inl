// The operators of ai.onnx.preview.training that are read wherever they stand. TANDEM_IMPORT(NAME,
// function, …) as in ../all.inl, with functions of the namespace `training`. Gradient is no node of
// its own: importer/training_info has it.

TANDEM_IMPORT(Adam, adam)
TANDEM_IMPORT(Adagrad, adagrad)
TANDEM_IMPORT(Momentum, momentum)

#undef TANDEM_IMPORT
