// Another version of ai.onnx, by ONNX's own converter.
#include <exception>
#include <limits>

#include "importer/export/transformation.h"
#include "onnx/defs/schema.h"
#include "onnx/version_converter/convert.h"

namespace tandem::importer::transformations {
namespace {

/// The version of ai.onnx; 0 where the model does not give one.
int opset_of(const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (domain_of(import.domain()).empty()) return static_cast<int>(import.version());
  }
  return 0;
}

bool has_other_domains(const onnx::ModelProto& model, std::string& which) {
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (domain_of(node.domain()).empty()) continue;
    which = node.domain() + "::" + node.op_type();
    return true;
  }
  return false;
}

/// The message without the place in ONNX's own source that its assertions begin with.
std::string reason_of(const std::exception& error) {
  const std::string text = error.what();
  constexpr std::string_view mark = "failed: ";
  const std::size_t at = text.rfind(mark);
  return at == std::string::npos ? text : text.substr(at + mark.size());
}

/// The converter goes through a form of its own, which forgets what is not of the graph.
void return_facts(const onnx::ModelProto& from, onnx::ModelProto& to) {
  *to.mutable_metadata_props() = from.metadata_props();
  to.set_producer_name(from.producer_name());
  to.set_producer_version(from.producer_version());
  to.set_domain(from.domain());
  to.set_model_version(from.model_version());
  to.set_doc_string(from.doc_string());
  to.mutable_graph()->set_name(from.graph().name());
  to.mutable_graph()->set_doc_string(from.graph().doc_string());
  if (to.ir_version() < from.ir_version()) to.set_ir_version(from.ir_version());
}

void convert_version(ExportedModel& model, const ExportOptions& options) {
  const int now = opset_of(model.proto);
  if (now == options.opset) return;
  constexpr int least = 7;  // before it, operators broadcast in another way
  const auto& ranges = onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
  const int most = ranges.Map().at("").second;
  const std::string got = std::to_string(options.opset);
  if (options.opset < least || options.opset > most)
    refuse(model.content.path, "", "ONNX's converter does not know this opset",
           std::to_string(least) + " to " + std::to_string(most), got);
  if (model.proto.functions_size() > 0)
    refuse(model.content.path, model.proto.functions(0).name(),
           "ONNX's converter takes no functions", "opset " + std::to_string(now), got,
           "leave --opset out");
  if (std::string which; has_other_domains(model.proto, which))
    refuse(model.content.path, which, "ONNX's converter takes only operators of ai.onnx",
           "opset " + std::to_string(now), got, "leave --opset out");
  try {
    onnx::ModelProto converted =
        onnx::version_conversion::ConvertVersion(model.proto, options.opset);
    return_facts(model.proto, converted);
    model.proto = std::move(converted);
  } catch (const std::exception& error) {
    refuse(model.content.path, "",
           "ONNX's converter cannot bring the model to this opset: " + reason_of(error),
           "opset " + std::to_string(now), got, "choose one that is nearer");
  }
  model.notes.push_back("opset " + std::to_string(now) + " became " + got);
}

}  // namespace

extern const Transformation opset_version;
const Transformation opset_version{
    "opset", [](const ExportOptions& options) { return options.opset != 0; }, convert_version};

}  // namespace tandem::importer::transformations
