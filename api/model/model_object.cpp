// A model as a value of the public library.
#include <charconv>
#include <utility>

#include "api/model/engine.h"
#include "api/model/inspected.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/types.h"
#include "placement/report/json.h"
#include "tandem/model.h"

namespace tandem::api {
namespace {

/// A number where the text is one, else the text.
std::variant<std::int64_t, std::string> dimension_of(const std::string& text) {
  std::int64_t extent = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, extent);
  if (error == std::errc() && stop == end) return extent;
  return text;
}

}  // namespace

std::vector<ModelPort> ports_of(const std::vector<PortSummary>& summaries) {
  std::vector<ModelPort> ports;
  for (const PortSummary& summary : summaries) {
    ModelPort& port = ports.emplace_back();
    port.name = summary.name;
    port.dtype = dtype_from_name(summary.dtype);
    for (const std::string& dimension : summary.dims) port.dims.push_back(dimension_of(dimension));
  }
  return ports;
}

std::vector<Diagnostic> problems_of(const Inspected& inspected) {
  std::vector<Diagnostic> problems;
  for (const Problem& problem : inspected.problems) {
    Diagnostic& d = problems.emplace_back();
    d.message = problem.op.empty() ? problem.reason : problem.op + ": " + problem.reason;
    d.path = problem.path;
    d.fix = problem.fix;
  }
  return problems;
}

inline namespace v1 {

struct Model::Impl {
  std::string path;
  ModelOptions options;
  std::vector<ModelPort> inputs, outputs;
  std::vector<ModelParameter> parameters;
  std::vector<Diagnostic> problems;
  std::string text, text_with_parameters, json;
};

Model::Model(const std::string& path, const ModelOptions& options) {
  check_passes(options.without);
  const Engine engine;
  const Inspected inspected = open_for_inspection(engine, path, options);
  const ModelSummary& summary = inspected.imported.summary;
  auto impl = std::make_shared<Impl>();
  impl->path = normal_path(path);
  impl->options = options;
  impl->inputs = ports_of(summary.inputs);
  impl->outputs = ports_of(summary.outputs);
  impl->parameters = parameters_of(inspected);
  impl->problems = problems_of(inspected);
  impl->text = to_text(inspected, path, false);
  impl->text_with_parameters = to_text(inspected, path, true);
  impl->json = json_text(to_json(inspected));
  impl_ = std::move(impl);
}

const std::vector<ModelPort>& Model::inputs() const& { return impl_->inputs; }
const std::vector<ModelPort>& Model::outputs() const& { return impl_->outputs; }
const std::vector<ModelParameter>& Model::parameters() const& { return impl_->parameters; }
const std::vector<Diagnostic>& Model::problems() const& { return impl_->problems; }
const std::string& Model::text(bool list_parameters) const {
  return list_parameters ? impl_->text_with_parameters : impl_->text;
}
const std::string& Model::json() const& { return impl_->json; }
const std::string& Model::path() const { return impl_->path; }
const ModelOptions& Model::options() const { return impl_->options; }

}  // namespace v1
}  // namespace tandem::api
