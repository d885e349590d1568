// Trained models in the C library: exporting, evaluating and predicting.
#include <string>
#include <utility>

#include "api/c/guarded.h"
#include "api/c/structs.h"
#include "api/c/texts.h"
#include "tandem/c.h"
#include "tandem/tandem.h"

namespace tandem::c_library {
namespace {

TandemTrainedOptions read_options(const TandemTrainedOptions* options) {
  return options == nullptr ? TandemTrainedOptions{} : read_struct(options, "options");
}

void add_options(const TandemTrainedOptions& from, api::TrainedOptions& to) {
  to.checkpoint = text_or_empty(from.checkpoint);
  to.weights = text_or_empty(from.weights);
  to.accept_changes = from.accept_changes != 0;
  to.config = text_or_empty(from.config);
  to.data = texts_of(from.data, "options.data");
  to.overrides = texts_of(from.overrides, "options.overrides");
  to.place = texts_of(from.place, "options.place");
  to.devices = texts_of(from.devices, "options.devices");
}

/// Keeps a text until this thread's next call.
void give_text(std::string text, const char** to) {
  thread_local std::string kept;
  kept = std::move(text);
  if (to != nullptr) *to = kept.c_str();
}

}  // namespace
}  // namespace tandem::c_library

using namespace tandem::c_library;

TandemStatus tandem_export_run(const char* run, const char* to, const TandemTrainedOptions* options,
                               const char** text) {
  return guarded([&] {
    const TandemTrainedOptions given = read_options(options);
    const tandem::api::ExportSettings settings{.checkpoint = text_or_empty(given.checkpoint),
                                               .weights = text_or_empty(given.weights),
                                               .accept_changes = given.accept_changes != 0};
    give_text(tandem::api::export_run(&required(run, "run"), &required(to, "to"), settings), text);
  });
}

TandemStatus tandem_evaluate_run(const char* run, const TandemTrainedOptions* options,
                                 const char** json) {
  return guarded([&] {
    tandem::api::TrainedOptions wanted;
    add_options(read_options(options), wanted);
    give_text(tandem::api::evaluate_run(&required(run, "run"), wanted).json, json);
  });
}

TandemStatus tandem_predict_run(const char* run, const char* to,
                                const TandemTrainedOptions* options, const char** json) {
  return guarded([&] {
    const TandemTrainedOptions given = read_options(options);
    tandem::api::PredictOptions wanted;
    add_options(given, wanted);
    wanted.to = &required(to, "to");
    wanted.outputs = texts_of(given.outputs, "options.outputs");
    wanted.as = text_or_empty(given.as);
    wanted.header = given.header != 0;
    give_text(tandem::api::predict_run(&required(run, "run"), wanted).json, json);
  });
}
