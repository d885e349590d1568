// The option structs of the library, as classes whose members Python sets.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/binding/binding.h"
#include "tandem/tandem.h"
#include "tandem/trained.h"

namespace tandem::python {
namespace {

void add_train_options(nb::module_& module) {
  using api::TrainOptions;
  nb::class_<TrainOptions>(module, "TrainOptions")
      .def(nb::init<>())
      .def_rw("overrides", &TrainOptions::overrides)
      .def_rw("policy", &TrainOptions::policy)
      .def_rw("place", &TrainOptions::place)
      .def_rw("devices", &TrainOptions::devices)
      .def_rw("run_dir", &TrainOptions::run_dir)
      .def_rw("resume", &TrainOptions::resume)
      .def_rw("accept_changes", &TrainOptions::accept_changes)
      .def_rw("dry_run", &TrainOptions::dry_run)
      .def_rw("log_operators", &TrainOptions::log_operators)
      .def_rw("verbose", &TrainOptions::verbose)
      .def_rw("trace_path", &TrainOptions::trace_path)
      .def_rw("trace_first", &TrainOptions::trace_first)
      .def_rw("trace_last", &TrainOptions::trace_last);
}

void add_inspect_options(nb::module_& module) {
  using api::InspectOptions;
  nb::class_<InspectOptions>(module, "InspectOptions")
      .def(nb::init<>())
      .def_rw("bind", &InspectOptions::bind)
      .def_rw("stage", &InspectOptions::stage)
      .def_rw("batch_norm", &InspectOptions::batch_norm)
      .def_rw("without", &InspectOptions::without)
      .def_rw("rows", &InspectOptions::rows)
      .def_rw("parameters", &InspectOptions::parameters);
}

void add_trained_options(nb::module_& module) {
  using api::PredictOptions;
  using api::TrainedOptions;
  nb::class_<TrainedOptions>(module, "TrainedOptions")
      .def(nb::init<>())
      .def_rw("checkpoint", &TrainedOptions::checkpoint)
      .def_rw("weights", &TrainedOptions::weights)
      .def_rw("accept_changes", &TrainedOptions::accept_changes)
      .def_rw("config", &TrainedOptions::config)
      .def_rw("strict_words", &TrainedOptions::strict_words)
      .def_rw("data", &TrainedOptions::data)
      .def_rw("overrides", &TrainedOptions::overrides)
      .def_rw("place", &TrainedOptions::place)
      .def_rw("devices", &TrainedOptions::devices);
  nb::class_<PredictOptions, TrainedOptions>(module, "PredictOptions")
      .def(nb::init<>())
      .def_rw("to", &PredictOptions::to)
      .def_rw("outputs", &PredictOptions::outputs)
      .def_rw("shown_as", &PredictOptions::as)  // `as` is a word of Python
      .def_rw("class_axis", &PredictOptions::class_axis)
      .def_rw("batch", &PredictOptions::batch)
      .def_rw("header", &PredictOptions::header)
      .def_rw("class_names", &PredictOptions::class_names)
      .def_rw("ids", &PredictOptions::ids);
}

void add_export_settings(nb::module_& module) {
  using api::ExportSettings;
  nb::class_<ExportSettings>(module, "ExportSettings")
      .def(nb::init<>())
      .def_rw("checkpoint", &ExportSettings::checkpoint)
      .def_rw("weights", &ExportSettings::weights)
      .def_rw("accept_changes", &ExportSettings::accept_changes)
      .def_rw("overrides", &ExportSettings::overrides);
}

void add_policy_options(nb::module_& module) {
  using api::PolicyAutoOptions;
  using api::PolicyOptions;
  nb::class_<PolicyOptions>(module, "PolicyOptions")
      .def(nb::init<>())
      .def_rw("config", &PolicyOptions::config)
      .def_rw("model", &PolicyOptions::model)
      .def_rw("bind", &PolicyOptions::bind)
      .def_rw("overrides", &PolicyOptions::overrides)
      .def_rw("policy", &PolicyOptions::policy)
      .def_rw("made", &PolicyOptions::made)
      .def_rw("place", &PolicyOptions::place)
      .def_rw("devices", &PolicyOptions::devices)
      .def_rw("profile", &PolicyOptions::profile)
      .def_rw("ranks", &PolicyOptions::ranks)
      .def_rw("network", &PolicyOptions::network);
  nb::class_<PolicyAutoOptions>(module, "PolicyAutoOptions")
      .def(nb::init<>())
      .def_rw("budgets", &PolicyAutoOptions::budgets)
      .def_rw("to", &PolicyAutoOptions::to)
      .def_rw("measure", &PolicyAutoOptions::measure)
      .def_rw("save_profile", &PolicyAutoOptions::save_profile)
      .def_rw("most_plans", &PolicyAutoOptions::most_plans);
}

}  // namespace

void add_options(nb::module_& module) {
  nb::class_<api::Policy>(module, "Policy")
      .def_static("parse", &api::Policy::parse, nb::arg("text"), nb::arg("name"));
  add_train_options(module);
  add_inspect_options(module);
  add_trained_options(module);
  add_export_settings(module);
  add_policy_options(module);
}

}  // namespace tandem::python
