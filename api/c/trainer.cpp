// Trainers of the C library: runs with callbacks.
#include "tandem/trainer.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/c/config_text.h"
#include "api/c/guarded.h"
#include "api/c/policy_source.h"
#include "api/c/program_source.h"
#include "api/c/structs.h"
#include "api/c/texts.h"
#include "api/c/values.h"
#include "tandem/c.h"

struct TandemTrainer {
  tandem::api::StopToken stop;
  tandem::api::Trainer trainer;
  std::string summary;
  tandem::api::TrainResult result = {};
  tandem::c_library::NamedValues evaluation = {};
};

namespace tandem::c_library {
namespace {

/// Ends the run where a callback asks for it.
void obey(int result, const char* callback) {
  if (result == 0) return;
  throw Error(ErrorKind::runtime, Diagnostic{.message = "this callback ended the run",
                                             .path = callback,
                                             .expected = "0",
                                             .got = std::to_string(result)});
}

using ProgressCallback = int (*)(void*, const TandemProgress*);

std::function<void(const api::Progress&)> progress_function(ProgressCallback callback, void* user,
                                                            const char* name) {
  if (callback == nullptr) return nullptr;
  return [=](const api::Progress& from) {
    const NamedValues values(from.values), norms(from.norms);
    const TandemProgress progress{.struct_size = sizeof(TandemProgress),
                                  .step = from.step,
                                  .steps = from.steps,
                                  .epoch = from.epoch,
                                  .epochs = from.epochs,
                                  .values = values.values(),
                                  .norms = norms.values(),
                                  .samples_per_second = from.samples_per_second,
                                  .seconds = from.seconds,
                                  .seconds_left = from.seconds_left};
    obey(callback(user, &progress), name);
  };
}

void add_callbacks(const TandemCallbacks* callbacks, api::TrainOptions& options) {
  if (callbacks == nullptr) return;
  const TandemCallbacks given = read_struct(callbacks, "config.callbacks");
  options.on_step = progress_function(given.on_step, given.user, "on_step");
  options.on_evaluation = progress_function(given.on_evaluation, given.user, "on_evaluation");
  if (given.on_checkpoint != nullptr) {
    options.on_checkpoint = [given](const std::string& path, std::uint64_t step) {
      obey(given.on_checkpoint(given.user, path.c_str(), step), "on_checkpoint");
    };
  }
  if (given.on_message != nullptr) {
    options.on_message = [given](const std::string& text) {
      obey(given.on_message(given.user, text.c_str()), "on_message");
    };
  }
}

/// All options but the samples.
api::TrainOptions train_options(const TandemTrainerConfig& config) {
  api::TrainOptions options;
  options.overrides = texts_of(config.overrides, "config.overrides");
  options.place = texts_of(config.place, "config.place");
  options.devices = texts_of(config.devices, "config.devices");
  options.run_dir = text_or_empty(config.run_dir);
  options.resume = config.resume != 0;
  options.accept_changes = config.accept_changes != 0;
  options.dry_run = config.dry_run != 0;
  options.policy = given_policy(config.policy, config.policy_text, "config");
  add_callbacks(config.callbacks, options);
  return options;
}

api::Trainer made_trainer(const TandemTrainerConfig& config, api::TrainOptions options) {
  if (config.toml == nullptr)
    return api::Trainer(&required(config.path, "config.path"), std::move(options));
  const char* const path = config.path == nullptr ? "train.toml" : config.path;
  return api::Trainer(train_config_of(config.toml, path, options.overrides), std::move(options));
}

TandemTrainResult train_result(const TandemTrainer& trainer) {
  const api::TrainResult& from = trainer.result;
  return {.struct_size = sizeof(TandemTrainResult),
          .run_dir = from.run_dir.c_str(),
          .best_metric = from.best_metric.c_str(),
          .steps = from.steps,
          .best_step = from.best_step,
          .loss = from.loss,
          .best_value = from.best_value,
          .evaluation = trainer.evaluation.values(),
          .interrupted = from.interrupted ? 1 : 0,
          .rank = from.rank};
}

}  // namespace
}  // namespace tandem::c_library

using namespace tandem::c_library;

TandemStatus tandem_trainer_create(const TandemTrainerConfig* config, TandemTrainer** trainer) {
  return guarded([&] {
    TandemTrainer*& result = made(trainer, "trainer");
    const TandemTrainerConfig given = read_struct(config, "config");
    tandem::api::TrainOptions options = train_options(given);
    const auto train = program_source(given.train_samples, "config.train_samples");
    const auto eval = program_source(given.eval_samples, "config.eval_samples");
    options.train = train;
    options.eval = eval;
    const tandem::api::StopToken stop = options.stop;
    tandem::api::Trainer created = made_trainer(given, std::move(options));
    std::string summary = created.summary();
    result = new TandemTrainer{stop, std::move(created), std::move(summary)};
    for (const auto& source : {train, eval}) {
      if (source) source->own();
    }
  });
}

TandemStatus tandem_trainer_run(TandemTrainer* trainer, TandemTrainResult* result) {
  return guarded([&] {
    TandemTrainer& my = required(trainer, "trainer");
    if (result != nullptr) check_struct_size<TandemTrainResult>(result->struct_size, "result");
    my.result = my.trainer.run();
    const auto& evaluation = my.result.evaluation;
    my.evaluation = NamedValues({evaluation.begin(), evaluation.end()});
    if (result != nullptr) write_struct(train_result(my), result, "result");
  });
}

void tandem_trainer_stop(TandemTrainer* trainer) {
  if (trainer != nullptr) trainer->stop.request_stop();
}

const char* tandem_trainer_summary(const TandemTrainer* trainer) {
  return trainer == nullptr ? "" : trainer->summary.c_str();
}

void tandem_trainer_close(TandemTrainer** trainer) {
  if (trainer == nullptr) return;
  delete *trainer;
  *trainer = nullptr;
}
