// Parts of a model file as texts that are equal where their meaning is, for comparisons and for
// people.
#pragma once

#include <string>

#include "engine/graph/text.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// The name in quotes, with characters other than ASCII escaped.
std::string name_text(const std::string& name);
/// Strings of attributes: any bytes.
std::string string_text(const std::string& text);
/// Long texts become their hash.
std::string shortened(std::string text);
/// "[0.5, 1]", of many elements a hash.
std::string values_text(const HostTensor& tensor);
/// Type and elements, however these are stored. Throws where they cannot be read.
std::string tensor_text(const onnx::TensorProto& tensor, const OnnxFile::Content& file);
/// For element types that the engine does not have: the bytes as they are written.
std::string unsupported_text(const onnx::TensorProto& tensor);
/// "float32 [batch, 1, 8, 8]": the first axis and free ones have the extents of a run.
std::string type_text(const onnx::TypeProto& type);
/// The value, without name and documentation; for graphs it only says that there are some.
std::string attribute_text(const onnx::AttributeProto& attribute, const OnnxFile::Content& file);

template <class List, class F>
std::string list_text(const List& items, F text_of) {
  return shortened("[" + joined(items, ", ", text_of) + "]");
}

}  // namespace tandem::importer
