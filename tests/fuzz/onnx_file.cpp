// Fuzz target: any bytes as an ONNX file, through import, passes, gradient and shape inference. The
// result is a graph or a typed error; anything else is a defect.
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/operators/operator.h"
#include "engine/passes/pass.h"
#include "importer/file/onnx_file.h"
#include "importer/import_graph.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

// The gradient of the sum of the first float output with respect to all trainable parameters.
void differentiate(const OperatorSet& operators, const Graph& forward) {
  std::vector<ValueId> wanted;
  for (const State& state : forward.states) {
    if (state.trainable) wanted.push_back(state.initial);
  }
  for (const NamedValue& output : forward.outputs) {
    const TensorType type = forward.type(output.value);
    if (type.dtype != DType::float32 || type.elements() > 4096) continue;
    GraphBuilder g(operators, forward);
    const GradientSeed seed{output.value, g.filled(1.0, type)};
    add_gradients(g, std::span(&seed, 1), wanted);
    verify(g.graph());
    return;
  }
}

void import_bytes(const std::string& bytes) {
  static const OperatorSet operators = all_operators();
  FileLimits limits;
  limits.file_bytes = 1 << 16;
  ImportOptions options = testing::with_evaluator();
  options.training = true;
  const ImportResult imported =
      import_graph(OnnxFile::from_bytes(bytes, {}, limits), operators, options);
  verify(imported.graph);
  PassContext context{operators, options.evaluate, {}, {}};
  differentiate(operators, run_passes(imported.graph, context));
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tandem::import_bytes(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const tandem::Error&) {
  }
  return 0;
}
