#include "api/export/onnx_adapter.h"

#include <utility>

#include "api/export/frozen_weights.h"
#include "engine/graph/error.h"
#include "importer/file/adapter_operands.h"

namespace tandem::api {
OnnxAdapter onnx_adapter(CheckpointContent content, ConfiguredModel& model) {
  if (model.adapted().empty())
    throw Error(ErrorKind::usage, Diagnostic{.message = "the run has no adapters",
                                             .expected = "a run with parameters.lora",
                                             .fix = "write an .onnx"});
  OnnxAdapter result;
  for (const WeightAdapters& adapters : take_adapters(content, model.adapted(), true)) {
    AdapterOperands operands = adapter_operands(adapters);
    result.tensors.push_back({std::move(operands.a_name), std::move(operands.a)});
    result.tensors.push_back({std::move(operands.b_name), std::move(operands.b)});
  }
  if (!content.model.empty())
    result.warnings.push_back(
        "the training changed more than adapters (" + content.model.front().name +
        (content.model.size() > 1 ? " and others" : "") +
        "), which an .onnx_adapter does not contain: use it with the .onnx that --lora inputs "
        "writes of this run");
  return result;
}

}  // namespace tandem::api
