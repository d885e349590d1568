// Trains a model on made-up samples for some steps and writes it:  train MODEL.onnx TRAINED.onnx
#include <stdio.h>
#include <tandem/c.h>

enum { BATCH = 20, PIXELS = 64, STEPS = 40 };

static const char* const settings =
    "[loss]\n"
    "terms = [ { kind = \"softmax_cross_entropy\", logits = \"logits\", labels = \"labels\" } ]\n"
    "[optimizer]\n"
    "kind = \"adam\"\n"
    "lr   = 0.01\n";

/// Ten patterns of stripes, one a class.
static void make_samples(float* images, int64_t* labels) {
  for (int i = 0; i < BATCH; ++i) {
    labels[i] = i % 10;
    for (int pixel = 0; pixel < PIXELS; ++pixel)
      images[i * PIXELS + pixel] = pixel % 11 == i % 10 ? 1.0f : 0.0f;
  }
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tandem_error_message());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: train MODEL.onnx TRAINED.onnx\n");
    return 2;
  }
  TandemSession* session = NULL;
  const TandemSessionConfig config = {
      .struct_size = sizeof config, .model = argv[1], .batch_size = BATCH, .toml = settings};
  if (tandem_session_create(&config, &session) != TANDEM_OK) return failed("create");

  static float images[BATCH * PIXELS];
  static int64_t labels[BATCH];
  make_samples(images, labels);
  const int64_t image_shape[] = {BATCH, 1, 8, 8}, label_shape[] = {BATCH};
  const TandemTensor feeds[] = {{.struct_size = sizeof(TandemTensor),
                                 .name = "image",
                                 .dtype = TANDEM_FLOAT32,
                                 .rank = 4,
                                 .shape = image_shape,
                                 .data = images,
                                 .bytes = sizeof images},
                                {.struct_size = sizeof(TandemTensor),
                                 .name = "labels",
                                 .dtype = TANDEM_INT64,
                                 .rank = 1,
                                 .shape = label_shape,
                                 .data = labels,
                                 .bytes = sizeof labels}};
  double first = 0, last = 0;
  TandemStatus status = TANDEM_OK;
  for (int step = 0; step < STEPS && status == TANDEM_OK; ++step) {
    status = tandem_session_step(session, feeds, 2, &last);
    if (step == 0) first = last;
  }
  if (status == TANDEM_OK) status = tandem_session_save(session, argv[2]);
  tandem_session_close(&session);
  if (status != TANDEM_OK) return failed("train");
  printf("Tandem %s: loss %.4f -> %.4f, written to %s\n", tandem_version(), first, last, argv[2]);
  return last < first / 2 ? 0 : 1;
}
