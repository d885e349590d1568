#include "importer/file/onnx_weights.h"

#include "importer/file/initializers.h"
#include "importer/tied_names.h"

namespace tandem {

OnnxWeights onnx_weights(const OnnxFile& file) {
  const OnnxFile::Content& content = file.content();
  const onnx::GraphProto& graph = content.model->graph();
  std::vector<std::string> outputs;
  for (const onnx::ValueInfoProto& output : graph.output()) outputs.push_back(output.name());
  const auto roles = importer::initializer_roles(content, importer::needed_nodes(graph, outputs));
  const auto shared = importer::shared_initializers(content, roles);
  OnnxWeights weights;
  for (const onnx::TensorProto& initializer : graph.initializer()) {
    const std::string& name = initializer.name();
    const auto role = roles.find(name);
    if (role == roles.end() || !role->second.is_state || role->second.is_packed) continue;
    if (const auto first = shared.find(name); first != shared.end())
      weights.aliases[name] = first->second;
    else
      weights.tensors.push_back({name, content.initializers.at(name)});
  }
  return weights;
}

}  // namespace tandem
