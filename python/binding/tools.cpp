// Functions of the library that make a report, which becomes a dict.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "api/program/fragments.h"
#include "api/program/policy_files.h"
#include "python/binding/binding.h"
#include "python/binding/computing.h"
#include "tandem/tandem.h"
#include "tandem/trained.h"

namespace tandem::python {
namespace {

nb::dict report_of(const std::string& text, const std::string& json,
                   const std::vector<std::string>& warnings = {}) {
  nb::list list;
  for (const std::string& warning : warnings) list.append(text_object(warning));
  nb::dict fields;
  fields["text"] = text_object(text);
  fields["json"] = text_object(json);
  fields["warnings"] = list;
  return fields;
}
nb::dict report_of(const api::Report& report) {
  return report_of(report.text, report.json, report.warnings);
}

Named inspect(const std::string& model, const api::InspectOptions& options) {
  const api::InspectReport report = compute([&] { return api::inspect(model, options); });
  return report_of(report.text, report.json);
}

Named evaluate(const std::string& run, api::TrainedOptions options) {
  options.stop = api::StopToken();
  const api::EvaluationReport report =
      compute_stoppable(options.stop, [&] { return api::evaluate_run(run, options); });
  nb::dict fields = report_of(report);
  fields["html"] = text_object(api::evaluation_html(report));
  return fields;
}

Named predict(const std::string& run, api::PredictOptions options) {
  options.stop = api::StopToken();
  return report_of(compute_stoppable(options.stop, [&] { return api::predict_run(run, options); }));
}

nb::str export_run(const std::string& run, const std::string& to,
                   const api::ExportSettings& settings) {
  return text_object(compute([&] { return api::export_run(run, to, settings); }));
}

Named policy_plan(const api::PolicyOptions& options) {
  const api::Plan plan = compute([&] { return api::policy_plan(options); });
  nb::dict fields = report_of(plan);
  fields["fits"] = plan.fits;
  fields["html"] = text_object(api::plan_html(plan));
  return fields;
}

Named policy_names(const api::PolicyOptions& options, const std::string& at) {
  return report_of(compute([&] { return api::policy_names(options, at); }));
}

Named policy_explain(const api::PolicyOptions& options, const std::string& name,
                     const std::string& phase) {
  const api::Explanation explanation =
      compute([&] { return api::policy_explain(options, name, api::phase_of(phase)); });
  nb::dict fields = report_of(explanation);
  fields["html"] = text_object(api::explanation_html(explanation));
  return fields;
}

Named policy_auto(const api::PolicyOptions& options, api::PolicyAutoOptions automatic) {
  automatic.stop = api::StopToken();
  const api::Report found =
      compute_stoppable(automatic.stop, [&] { return api::policy_auto(options, automatic); });
  nb::dict fields = report_of(found);
  fields["html"] = text_object(api::found_policy_html(found));
  return fields;
}

}  // namespace

void add_tools(nb::module_& module) {
  module.def("inspect", &inspect, nb::arg("model"), nb::arg("options"));
  module.def("evaluate", &evaluate, nb::arg("run"), nb::arg("options"));
  module.def("predict", &predict, nb::arg("run"), nb::arg("options"));
  module.def("export_run", &export_run, nb::arg("run"), nb::arg("to"), nb::arg("settings"));
  module.def("policy_plan", &policy_plan, nb::arg("options"));
  module.def("policy_names", &policy_names, nb::arg("options"), nb::arg("at"));
  module.def("policy_explain", &policy_explain, nb::arg("options"), nb::arg("name"),
             nb::arg("phase"));
  module.def("policy_auto", &policy_auto, nb::arg("options"), nb::arg("automatic"));
}

}  // namespace tandem::python
