// Uses every function of the C library once, compiled as C:  c_api_test DIGITS_FOLDER NEW_FOLDER
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/c.h>

#define SIZED(Type) .struct_size = sizeof(Type)

static void check(int holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: %s\n%s\n", line, text, tandem_error_message());
  exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)
#define OK(call) check((call) == TANDEM_OK, #call, __LINE__)

enum { BATCH = 20, PIXELS = 64, SAMPLES = 200, CLASSES = 10 };

static float images[BATCH * PIXELS];
static int64_t labels[BATCH];
static const int64_t image_shape[] = {BATCH, 1, 8, 8}, label_shape[] = {BATCH};

static float pixel_of(int64_t sample, int pixel) {
  return pixel % 11 == sample % CLASSES ? 1.0f : 0.0f;
}

static TandemTensor tensor(const char* name, int32_t dtype, int32_t rank, const int64_t* shape,
                           const void* data, size_t bytes) {
  const TandemTensor made = {SIZED(TandemTensor), .name = name, .dtype = dtype, .rank = rank,
                             .shape = shape,      .data = data, .bytes = bytes};
  return made;
}

static const char* path_in(const char* folder, const char* name) {
  static char paths[16][512];
  static int next = 0;
  char* const path = paths[next++ % 16];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void test_model(const char* file) {
  TandemModel* model = NULL;
  const char* const bind[] = {"batch=20"};
  const TandemModelOptions options = {SIZED(TandemModelOptions), .bind = {bind, 1}};
  OK(tandem_model_open(file, &options, &model));
  TandemModelInfo info = {SIZED(TandemModelInfo)};
  OK(tandem_model_info(model, &info));
  CHECK(info.inputs == 1 && info.outputs == 1 && info.parameters == 8 && info.problems == 0);
  CHECK(strstr(info.json, "conv1.weight") != NULL);
  TandemPort port = {SIZED(TandemPort)};
  OK(tandem_model_input(model, 0, &port));
  CHECK(strcmp(port.name, "image") == 0 && port.rank == 4 && port.shape[3] == 8);
  OK(tandem_model_output(model, 0, &port));
  CHECK(strcmp(port.name, "logits") == 0 && port.shape[1] == CLASSES);
  TandemParameter parameter = {SIZED(TandemParameter)};
  OK(tandem_model_parameter(model, 7, &parameter));
  CHECK(strcmp(parameter.name, "fc2.bias") == 0 && parameter.trains == 1);
  TandemDiagnostic problem = {SIZED(TandemDiagnostic)};
  CHECK(tandem_model_problem(model, 0, &problem) == TANDEM_USAGE);
  tandem_model_close(&model);
  CHECK(model == NULL);
  CHECK(tandem_model_info(model, &info) == TANDEM_USAGE);
}

static void test_session(const char* file, const char* folder) {
  const char* const cross_entropy =
      "loss.terms=[{ kind = \"softmax_cross_entropy\", logits = \"logits\", labels = \"labels\" }]";
  const char* const settings[] = {"optimizer.kind=adam", "optimizer.lr=0.01", cross_entropy};
  const TandemSessionConfig config = {SIZED(TandemSessionConfig), .model = file,
                                      .batch_size = BATCH, .settings = {settings, 3}};
  TandemSession* session = NULL;
  OK(tandem_session_create(&config, &session));
  TandemTensor feeds[] = {tensor("image", TANDEM_FLOAT32, 4, image_shape, images, sizeof images),
                          tensor("labels", TANDEM_INT64, 1, label_shape, labels, sizeof labels)};
  double first = 0, loss = 0;
  OK(tandem_session_step(session, feeds, 2, &first));
  for (int step = 0; step < 39; ++step) OK(tandem_session_step(session, feeds, 2, &loss));
  CHECK(loss < first / 2);

  // A mistake says what is wrong, and the session goes on.
  feeds[0].dtype = TANDEM_INT32;
  CHECK(tandem_session_step(session, feeds, 2, &loss) == TANDEM_USAGE);
  CHECK(tandem_error_count() == 1 && strstr(tandem_error_message(), "image") != NULL);
  TandemDiagnostic diagnostic = {SIZED(TandemDiagnostic)};
  OK(tandem_error_at(0, &diagnostic));
  CHECK(strcmp(diagnostic.path, "image") == 0);
  feeds[0].dtype = TANDEM_FLOAT32;
  feeds[0].struct_size = 8;
  CHECK(tandem_session_step(session, feeds, 2, &loss) == TANDEM_USAGE);
  feeds[0].struct_size = sizeof(TandemTensor);
  feeds[0].name = "picture";
  CHECK(tandem_session_step(session, feeds, 2, &loss) == TANDEM_USAGE);
  feeds[0].name = "image";

  // From a state that was saved, the same step has the same loss.
  const char* const state = path_in(folder, "state.safetensors");
  OK(tandem_session_save_state(session, state));
  OK(tandem_session_set_learning_rate(session, 0.001));
  OK(tandem_session_step(session, feeds, 2, &loss));
  double again = 0;
  OK(tandem_session_restore_state(session, state));
  OK(tandem_session_step(session, feeds, 2, &again));
  CHECK(loss == again);

  TandemTensors* outputs = NULL;
  OK(tandem_session_predict(session, feeds, 1, &outputs));
  CHECK(tandem_tensors_count(outputs) == 1);
  TandemTensor logits = {SIZED(TandemTensor)};
  OK(tandem_tensors_at(outputs, 0, &logits));
  CHECK(logits.rank == 2 && logits.shape[0] == BATCH && logits.shape[1] == CLASSES);
  for (int i = 0; i < BATCH; ++i) {  // all patterns are recognised
    const float* const row = (const float*)logits.data + i * CLASSES;
    int best = 0;
    for (int class = 1; class < CLASSES; ++class) best = row[class] > row[best] ? class : best;
    CHECK(best == labels[i]);
  }
  struct DLManagedTensor* managed = NULL;
  CHECK(tandem_tensors_dlpack(outputs, 1, &managed) == TANDEM_USAGE);  // there is only one
  CHECK(managed == NULL);
  tandem_tensors_close(&outputs);
  CHECK(outputs == NULL);

  TandemValues values = {NULL, 0};
  OK(tandem_session_evaluate(session, feeds, 2, &values));
  CHECK(values.count >= 1 && strcmp(values.items[0].name, "loss") == 0);
  CHECK(isfinite(values.items[0].value));

  const float bias[CLASSES] = {1, 2, 3};
  const int64_t bias_shape[] = {CLASSES};
  const TandemTensor value = tensor("fc2.bias", TANDEM_FLOAT32, 1, bias_shape, bias, sizeof bias);
  OK(tandem_session_set_parameter(session, &value));
  TandemTensors* parameters = NULL;
  OK(tandem_session_parameters(session, &parameters));
  CHECK(tandem_tensors_count(parameters) == 8);
  TandemTensor read = {SIZED(TandemTensor)};
  OK(tandem_tensors_at(parameters, 6, &read));  // by alphabet, before fc2.weight
  CHECK(strcmp(read.name, "fc2.bias") == 0 && memcmp(read.data, bias, sizeof bias) == 0);
  tandem_tensors_close(&parameters);

  OK(tandem_session_save(session, path_in(folder, "trained.onnx")));
  tandem_session_close(&session);
  CHECK(session == NULL);
  CHECK(tandem_session_step(session, feeds, 2, &loss) == TANDEM_USAGE);
}

typedef struct Heard {
  int steps, evaluations, checkpoints, messages;
} Heard;

static int on_step(void* user, const TandemProgress* progress) {
  ((Heard*)user)->steps += progress->step > 0;
  return 0;
}
static int on_evaluation(void* user, const TandemProgress* progress) {
  ((Heard*)user)->evaluations += progress->values.count > 0;
  return 0;
}
static int on_checkpoint(void* user, const char* path, uint64_t step) {
  ((Heard*)user)->checkpoints += step > 0 && path[0] != 0;
  return 0;
}
static int on_message(void* user, const char* text) {
  ((Heard*)user)->messages += text[0] != 0;
  return 0;
}

static void test_run(const char* digits, const char* folder) {
  Heard heard = {0};
  const TandemCallbacks callbacks = {SIZED(TandemCallbacks),
                                     .user = &heard,
                                     .on_step = on_step,
                                     .on_evaluation = on_evaluation,
                                     .on_checkpoint = on_checkpoint,
                                     .on_message = on_message};
  const char* const overrides[] = {"steps=45"};
  const char* const run_dir = path_in(folder, "run");
  const TandemTrainerConfig config = {
      SIZED(TandemTrainerConfig),  .path = path_in(digits, "train.toml"),
      .overrides = {overrides, 1}, .run_dir = run_dir,
      .callbacks = &callbacks,     .policy = path_in(digits, "policy.toml")};
  TandemTrainer* trainer = NULL;
  OK(tandem_trainer_create(&config, &trainer));
  CHECK(strstr(tandem_trainer_summary(trainer), "38282 parameters") != NULL);
  TandemTrainResult result = {SIZED(TandemTrainResult)};
  OK(tandem_trainer_run(trainer, &result));
  CHECK(result.steps == 45 && strcmp(result.run_dir, run_dir) == 0);
  CHECK(heard.steps > 0 && heard.evaluations > 0 && heard.checkpoints > 0);
  tandem_trainer_close(&trainer);
  CHECK(trainer == NULL);

  const char* text = NULL;
  OK(tandem_export_run(run_dir, path_in(folder, "run.onnx"), NULL, &text));
  CHECK(strstr(text, "run.onnx") != NULL);
  OK(tandem_evaluate_run(run_dir, NULL, &text));
  CHECK(strstr(text, "accuracy") != NULL);
  const char* const data[] = {path_in(digits, "digits_test.npz")};
  const TandemTrainedOptions options = {SIZED(TandemTrainedOptions), .data = {data, 1}};
  OK(tandem_predict_run(run_dir, path_in(folder, "classes.tsv"), &options, &text));
}

static int fill(void* user, size_t field, const int64_t* samples, size_t count, void* to) {
  (void)user;
  for (size_t i = 0; i < count; ++i) {
    if (field == 1) ((int64_t*)to)[i] = samples[i] % CLASSES;
    for (int pixel = 0; field == 0 && pixel < PIXELS; ++pixel)
      ((float*)to)[i * PIXELS + (size_t)pixel] = pixel_of(samples[i], pixel);
  }
  return 0;
}
static void release(void* user) { *(int*)user += 1; }

static void test_samples_of_the_program(const char* digits, const char* folder) {
  const TandemTensor fields[] = {tensor("image", TANDEM_FLOAT32, 3, image_shape + 1, NULL, 0),
                                 tensor("labels", TANDEM_INT64, 0, NULL, NULL, 0)};
  int releases = 0;
  const TandemDataSource samples = {SIZED(TandemDataSource), .user = &releases,  .fields = fields,
                                    .field_count = 2,        .samples = SAMPLES, .fill = fill,
                                    .identity = "stripes",   .release = release};
  const TandemTrainerConfig config = {
      SIZED(TandemTrainerConfig),
      .path = path_in(digits, "stripes.toml"),  // not a file: the model is next to it
      .toml =
          "model = \"model.onnx\"\nbatch_size = 20\nsteps = 40\n"
          "[loss]\nterms = [ { kind = \"softmax_cross_entropy\", logits = \"logits\", "
          "labels = \"labels\" } ]\n"
          "[optimizer]\nkind = \"adam\"\nlr = 0.01\n",
      .run_dir = path_in(folder, "stripes"), .train_samples = &samples};
  TandemTrainer* trainer = NULL;
  OK(tandem_trainer_create(&config, &trainer));
  TandemTrainResult result = {SIZED(TandemTrainResult)};
  OK(tandem_trainer_run(trainer, &result));
  CHECK(result.steps == 40 && result.loss < 1.15);  // half of that of a guess, log(10)
  CHECK(releases == 0);
  tandem_trainer_stop(trainer);
  tandem_trainer_close(&trainer);
  CHECK(releases == 1);
}

static void test_plan(const char* file) {
  const char* const bind[] = {"batch=20"};
  const TandemPlanOptions options = {SIZED(TandemPlanOptions), .model = file, .bind = {bind, 1}};
  TandemPlan* plan = NULL;
  OK(tandem_plan_make(&options, &plan));
  TandemPlanInfo info = {SIZED(TandemPlanInfo)};
  OK(tandem_plan_info(plan, &info));
  CHECK(info.fits == 1 && info.seconds > 0 && info.json[0] == '{');
  tandem_plan_close(&plan);
  CHECK(plan == NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: c_api_test DIGITS_FOLDER NEW_FOLDER\n");
    return 2;
  }
  CHECK(tandem_abi_version() == TANDEM_ABI_VERSION);
  for (int i = 0; i < BATCH; ++i) {
    labels[i] = i % CLASSES;
    for (int pixel = 0; pixel < PIXELS; ++pixel) images[i * PIXELS + pixel] = pixel_of(i, pixel);
  }
  const char* const model = path_in(argv[1], "model.onnx");
  test_model(model);
  test_session(model, argv[2]);
  test_run(argv[1], argv[2]);
  test_samples_of_the_program(argv[1], argv[2]);
  test_plan(model);
  printf("the C library of Tandem %s does all of it\n", tandem_version());
  return 0;
}
