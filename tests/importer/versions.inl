// The list of the tables of rows. TANDEM_ROWS(name): `void add_name_rows(std::vector<VersionRow>&)`
// of tests/importer/versions_name.cpp.
TANDEM_ROWS(elementwise)
TANDEM_ROWS(functions)
TANDEM_ROWS(shapes)
TANDEM_ROWS(constants)
TANDEM_ROWS(reductions)
TANDEM_ROWS(products)
TANDEM_ROWS(normalization)
TANDEM_ROWS(instance_normalization)
TANDEM_ROWS(indexing)
TANDEM_ROWS(resize)
TANDEM_ROWS(transformers)
TANDEM_ROWS(recurrent)
TANDEM_ROWS(signal)
TANDEM_ROWS(quantization)
TANDEM_ROWS(float8)
TANDEM_ROWS(control_flow)

#undef TANDEM_ROWS
