// What a file shows of an export that took something from the model: training it would be the
// training of another model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "importer/import_graph.h"

namespace tandem {

struct ExportNote {
  std::string kind;  // "for_inference", "padding_row", "untied"
  std::string text;
  std::string fix;        // the export call, or the key, that avoids it
  std::string parameter;  // padding_row, untied: the initializer's name
  std::int64_t row = -1;  // padding_row
};

/// `imported`: of this file, without problems.
///
/// for_inference: PyTorch's exporters fold BatchNormalization, drop Dropout, compute weights from
/// weights and merge equal ones unless they are asked to keep the model trainable. Files of dynamo
/// list the parameters that they should have; those of TorchScript give what they computed a name
/// of their own ("onnx::MatMul_12").
/// padding_row: a table whose row `padding_idx` gets no gradient in PyTorch, which no file says:
/// dynamo's metadata have the call, else the table has one row of zeros.
/// untied: a tensor with the elements of a looked-up table, or its transpose.
std::vector<ExportNote> export_notes(const OnnxFile& file, const ImportResult& imported);

}  // namespace tandem
