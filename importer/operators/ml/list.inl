// The operators of ai.onnx.ml that import reads: what skl2onnx writes for linear models, networks and
// what comes before them. TANDEM_IMPORT(NAME, function, …) as in ../all.inl, with functions of the
// namespace `ml`. Inputs 1 and 2 of the linear models are attributes in the file:
// importer/weights/attribute_weights.h.

TANDEM_IMPORT(LinearRegressor, linear_regressor, .weights = {1, 2})
TANDEM_IMPORT(LinearClassifier, linear_classifier, .weights = {1, 2})

// Numbers before a model
TANDEM_IMPORT(Scaler, scaler)
TANDEM_IMPORT(Normalizer, normalizer)
TANDEM_IMPORT(Imputer, imputer)
TANDEM_IMPORT(Binarizer, binarizer)
TANDEM_IMPORT(FeatureVectorizer, feature_vectorizer)

// Classes and categories
TANDEM_IMPORT(ArrayFeatureExtractor, array_feature_extractor)
TANDEM_IMPORT(LabelEncoder, label_encoder)
TANDEM_IMPORT(OneHotEncoder, one_hot_encoder)
TANDEM_IMPORT(ZipMap, zip_map)

#undef TANDEM_IMPORT
