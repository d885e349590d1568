// The library for C and for every language that can call C: models, sessions, runs and plans.
#pragma once

#include "tandem/c_values.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------- models

typedef struct TandemModel TandemModel;

typedef struct TandemModelOptions {
  size_t struct_size;
  TandemTexts bind;        // sizes of free dimensions: "batch=32"
  const char* batch_norm;  // "train", "inference" or "file"; NULL: "train"
} TandemModelOptions;
typedef struct TandemModelInfo {
  size_t struct_size;
  size_t inputs, outputs, parameters;
  size_t problems;          // what blocks training; 0: it can be trained
  const char *text, *json;  // for people; for programs, as `tandem inspect --json` prints it
} TandemModelInfo;
/// An input or an output: an extent for each axis, or -1 and the name of a free dimension.
typedef struct TandemPort {
  size_t struct_size;
  const char* name;
  const int64_t* shape;
  const char* const* dimensions;  // NULL for each axis with an extent
  int32_t dtype, rank;            // dtype -1: an output that could not be imported
} TandemPort;
typedef struct TandemParameter {
  size_t struct_size;
  const char *name, *path;  // the initializer's; by the module that reads it, as selectors match
  const char* reason;       // why it trains, or does not
  const int64_t* shape;
  int32_t dtype, rank;
  int32_t trains, is_buffer;  // 0 or 1; a buffer is a running statistic
} TandemParameter;

/// Reads an ONNX file. `options` may be NULL. TANDEM_USAGE where it cannot be read as a model.
TANDEM_API TandemStatus tandem_model_open(const char* path, const TandemModelOptions* options, TandemModel** model);
// What these write is valid until the model is closed; an index that is not there is TANDEM_USAGE.
TANDEM_API TandemStatus tandem_model_info(const TandemModel* model, TandemModelInfo* info);
TANDEM_API TandemStatus tandem_model_input(const TandemModel* model, size_t index, TandemPort* input);
TANDEM_API TandemStatus tandem_model_output(const TandemModel* model, size_t index, TandemPort* output);
TANDEM_API TandemStatus tandem_model_parameter(const TandemModel* model, size_t index, TandemParameter* parameter);
TANDEM_API TandemStatus tandem_model_problem(const TandemModel* model, size_t index, TandemDiagnostic* problem);
TANDEM_API void tandem_model_close(TandemModel** model);

// ---------------------------------------------------------------- sessions

/// A model in training, which is fed step by step.
typedef struct TandemSession TandemSession;

typedef struct TandemSessionConfig {
  size_t struct_size;
  const char* model;                 // an ONNX file
  int64_t batch_size;                // most samples of a step, at least 1
  const char* toml;                  // NULL, or the text of a train.toml without data, eval, checkpoint, log, ...
  TandemTexts settings;              // keys over it: "optimizer.lr=0.01"
  const char *policy, *policy_text;  // as for a trainer
} TandemSessionConfig;

TANDEM_API TandemStatus tandem_session_create(const TandemSessionConfig* config, TandemSession** session);
/// Forward, backward and update on `count` tensors: each input of the model and of the loss, with
/// batch_size samples or fewer on axis 0. `loss` may be NULL. TANDEM_USAGE or TANDEM_DATA: no step
/// was taken. TANDEM_DIVERGED: the loss is not finite; the step counts, and its update was made.
TANDEM_API TandemStatus tandem_session_step(TandemSession* session, const TandemTensor* feeds, size_t count,
                                            double* loss);
/// Loss, its terms and eval.metrics over all samples that are fed, in inference form. The values
/// are there until the session's next evaluation.
TANDEM_API TandemStatus tandem_session_evaluate(TandemSession* session, const TandemTensor* feeds, size_t count,
                                                TandemValues* values);
/// Outputs of the model in inference form. The caller closes `outputs`.
TANDEM_API TandemStatus tandem_session_predict(TandemSession* session, const TandemTensor* feeds, size_t count,
                                               TandemTensors** outputs);
/// All parameters with their present values, by the names of the file. The caller closes them.
TANDEM_API TandemStatus tandem_session_parameters(const TandemSession* session, TandemTensors** parameters);
/// Sets the parameter that the tensor names; shape and type have to be the parameter's.
TANDEM_API TandemStatus tandem_session_set_parameter(TandemSession* session, const TandemTensor* value);
/// Replaces optimizer.lr from the next step on; schedules multiply it.
TANDEM_API TandemStatus tandem_session_set_learning_rate(TandemSession* session, double rate);
/// Writes all that the next steps depend on into one .safetensors file.
TANDEM_API TandemStatus tandem_session_save_state(const TandemSession* session, const char* path);
/// Continues from such a file, bit by bit like the session that wrote it.
TANDEM_API TandemStatus tandem_session_restore_state(TandemSession* session, const char* path);
/// Writes the model as .onnx, .safetensors or .npz.
TANDEM_API TandemStatus tandem_session_save(const TandemSession* session, const char* path);
TANDEM_API void tandem_session_close(TandemSession** session);

// ---------------------------------------------------------------- runs

/// A whole run: training, evaluations, checkpoints and a run directory.
typedef struct TandemTrainer TandemTrainer;

/// What a logged step or an evaluation reports; valid during the callback.
typedef struct TandemProgress {
  size_t struct_size;
  uint64_t step, steps;  // steps 0: not known
  double epoch, epochs;
  TandemValues values, norms;                        // loss, terms, metrics, lr; norms as log.norms asks for them
  double samples_per_second, seconds, seconds_left;  // seconds_left negative: not known
} TandemProgress;
/// Functions that are called in the thread of tandem_trainer_run or tandem_trainer_create; each may
/// be NULL. A result other than 0 ends the run with TANDEM_RUNTIME.
typedef struct TandemCallbacks {
  size_t struct_size;
  void* user;                                                        // handed to each of them
  int (*on_step)(void* user, const TandemProgress* progress);        // each log.every
  int (*on_evaluation)(void* user, const TandemProgress* progress);  // each eval.every, at the end
  int (*on_checkpoint)(void* user, const char* path, uint64_t step);
  int (*on_message)(void* user, const char* text);  // notes for people
} TandemCallbacks;

/// Samples that the program gives. tandem_trainer_create copies fields and texts; `fill` is called
/// by several threads at a time until the trainer is closed.
typedef struct TandemDataSource {
  size_t struct_size;
  void* user;                  // handed to each function
  const TandemTensor* fields;  // name, dtype, rank and shape of one sample, without the batch axis
  size_t field_count;
  int64_t samples;
  /// Writes `count` samples of a field one after the other. Not 0: the run ends with TANDEM_DATA.
  int (*fill)(void* user, size_t field, const int64_t* samples, size_t count, void* to);
  const char* identity;         // tells these samples from others: a run resumes only with the same
  void (*release)(void* user);  // NULL, or called once by the end of tandem_trainer_close
} TandemDataSource;

typedef struct TandemTrainerConfig {
  size_t struct_size;
  const char* path;                         // to a train.toml
  const char* toml;                         // its text, in place of the file; relative paths are next to `path`
  TandemTexts overrides, place, devices;    // "steps=100"; rules; "gpu=emulated:0,memory=2GiB"
  const char* run_dir;                      // NULL: next to the file, runs/NAME-0001, numbered up
  int32_t resume, accept_changes, dry_run;  // 0 or 1, as the flags of `tandem train`
  int32_t reserved;
  const TandemCallbacks* callbacks;                      // NULL: none
  const TandemDataSource *train_samples, *eval_samples;  // NULL: the files of [data]
  const char* policy;                                    // a policy.toml, "" for none; NULL: the configuration's
  const char* policy_text;  // its text, in place of the file. A run is resumed with the same policy
} TandemTrainerConfig;
typedef struct TandemTrainResult {
  size_t struct_size;
  const char *run_dir, *best_metric;  // best_metric "": no best checkpoint
  uint64_t steps, best_step;
  double loss, best_value;    // loss of the last step; NaN: no step was left
  TandemValues evaluation;    // last values of the metrics
  int32_t interrupted, rank;  // interrupted 1: saved, and ended by tandem_trainer_stop
} TandemTrainResult;

/// Reads and checks configuration, model and data.
TANDEM_API TandemStatus tandem_trainer_create(const TandemTrainerConfig* config, TandemTrainer** trainer);
/// Trains, once. `result` may be NULL; its texts are valid until the trainer is closed.
TANDEM_API TandemStatus tandem_trainer_run(TandemTrainer* trainer, TandemTrainResult* result);
/// Lets the run save after the current step and end; from any thread or signal handler.
TANDEM_API void tandem_trainer_stop(TandemTrainer* trainer);
/// One paragraph for people; "" for NULL.
TANDEM_API const char* tandem_trainer_summary(const TandemTrainer* trainer);
TANDEM_API void tandem_trainer_close(TandemTrainer** trainer);

/// How a trained model is used. NULL stands for the defaults.
typedef struct TandemTrainedOptions {
  size_t struct_size;
  const char* checkpoint;                       // "best", "latest" or a step; NULL: the best one, else the latest
  const char* weights;                          // "trained", "ema" or "swa"; NULL: those that the run evaluates
  const char* config;                           // train.toml of an exported model
  TandemTexts data, overrides, place, devices;  // data: files in place of those held out
  TandemTexts outputs;                          // predictions: of these outputs or values; none: those of the loss
  const char* as;                  // predictions: "values", "class" or "probability"; NULL: as the loss says
  int32_t accept_changes, header;  // 0 or 1; header: predictions begin with the columns' names
} TandemTrainedOptions;
// `run`: a run directory, checkpoint or ONNX file. `options` and the last argument may be NULL; the
// text is valid until the thread's next call of one of the three.
/// Writes the weights as .onnx, .safetensors or .npz. `text` says what was written.
TANDEM_API TandemStatus tandem_export_run(const char* run, const char* to, const TandemTrainedOptions* options,
                                          const char** text);
/// Loss and metrics over held-out data, as `tandem eval --json` prints them.
TANDEM_API TandemStatus tandem_evaluate_run(const char* run, const TandemTrainedOptions* options, const char** json);
/// Writes a prediction for each row of options.data: .tsv, .csv, .jsonl, .npy, .npz.
TANDEM_API TandemStatus tandem_predict_run(const char* run, const char* to, const TandemTrainedOptions* options,
                                           const char** json);

// ---------------------------------------------------------------- plans

/// What a training step takes under a policy.
typedef struct TandemPlan TandemPlan;

typedef struct TandemPlanOptions {
  size_t struct_size;
  const char *config, *model;                   // a train.toml, or an ONNX file
  const char *policy, *policy_text;             // a policy.toml or its text; NULL: the configuration's
  TandemTexts bind, overrides, place, devices;  // bind: free dimensions of `model`, "batch=32"
  const char *profile, *network;                // for the cost model, as for `tandem policy plan`
  int32_t ranks, reserved;                      // ranks 0: 1
} TandemPlanOptions;
typedef struct TandemPlanInfo {
  size_t struct_size;
  double seconds;           // a step takes, by the cost model
  const char *text, *json;  // for people; for programs, as `tandem policy plan --json` prints it
  int32_t fits, ranks;      // fits: 0 or 1
} TandemPlanInfo;

/// Compiles a step without taking device memory. A plan that does not fit is no error.
TANDEM_API TandemStatus tandem_plan_make(const TandemPlanOptions* options, TandemPlan** plan);
/// Texts are valid until the plan is closed.
TANDEM_API TandemStatus tandem_plan_info(const TandemPlan* plan, TandemPlanInfo* info);
TANDEM_API void tandem_plan_close(TandemPlan** plan);

#ifdef __cplusplus
}  // extern "C"
#endif
