#include "api/export/onnx_adapter.h"

#include "api/export/frozen_weights.h"
#include "engine/graph/error.h"

namespace tandem::api {
OnnxAdapter onnx_adapter(CheckpointContent content, ConfiguredModel& model) {
  if (model.adapted().empty())
    throw Error(ErrorKind::usage, Diagnostic{.message = "the run has no adapters",
                                             .expected = "a run with parameters.lora",
                                             .fix = "write an .onnx"});
  OnnxAdapter result;
  for (const WeightAdapters& adapters : take_adapters(content, model.adapted(), true)) {
    for (const AdapterOperand& operand : adapters.operands)
      result.tensors.push_back({adapters.name_of(operand), operand.value});
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
