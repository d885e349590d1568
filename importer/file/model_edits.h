// Changes to a ModelProto that export makes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "importer/import_graph.h"
#include "onnx/onnx_pb.h"

namespace tandem::importer {

/// BatchNormalization and Dropout in inference form, in graphs inside nodes and in functions too.
/// Outputs that exist in training only go, or become copies of the running statistics where read;
/// constants that nothing reads any more go with what has read them.
void to_inference_form(onnx::ModelProto& model);

/// Ends the graph in these values; removes nodes, inputs and initializers that they do not need.
/// Their first axis is called `batch_name` unless that is empty.
void cut_to_outputs(onnx::ModelProto& model,
                    const std::vector<std::pair<std::string, TensorType>>& outputs,
                    const std::string& batch_name);

/// Replaces constant targets that held the batch, and names axis 0 of the inputs `name`. `other` is
/// the import with another batch, `same` the one with the file's own: outputs whose first extent
/// follows the batch are named too.
void free_batch(onnx::ModelProto& model, const std::string& name, const ImportResult& same,
                const ImportResult& other);

/// The tensor's numbers are `length` bytes of the file `location` from `offset` on; what it held
/// goes.
void refer_to_data(onnx::TensorProto& tensor, const std::string& location, std::uint64_t offset,
                   std::uint64_t length);

}  // namespace tandem::importer
