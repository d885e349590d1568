// TRANSFORMATION(NAME) is importer/export/NAME.cpp, in the order in which they happen: later ones see
// what earlier ones have made.
TRANSFORMATION(keep_outputs)
TRANSFORMATION(fold_batch_norm)
TRANSFORMATION(half_precision)
TRANSFORMATION(opset_version)
