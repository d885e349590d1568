// `init` and `train MODEL.onnx --data`: guesses can be trained, undecidable choices stay open, and
// existing files are kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::Ended;
using tandem::testing::error_of;
using tandem::testing::run_program;
using tandem::testing::SmallModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string source_tree = source_folder() + "/";
const std::string parity = source_tree + "tests/data/parity/";

/// Cycles through the values from `least` to `most`, so that both occur.
template <class T>
HostTensor round_of(const Shape& shape, int least, int most) {
  HostTensor tensor(TensorType{dtype_of<T>::value, shape});
  int next = least;
  for (T& x : tensor.as<T>()) {
    x = static_cast<T>(next);
    next = next == most ? least : next + 1;
  }
  return tensor;
}

class InitTest : public ::testing::Test {
 protected:
  std::string model(const std::string& from) {
    fs::copy(from, folder_ / "net.onnx");
    return folder_ / "net.onnx";
  }
  std::string model(const SmallModel& of) {
    std::ofstream(folder_ / "net.onnx", std::ios::binary) << of.bytes();
    return folder_ / "net.onnx";
  }
  /// A perceptron of 4 numbers with this many outputs, each in a float column.
  static SmallModel dense(std::int64_t outputs) {
    return SmallModel()
        .input("x", {8, 4})
        .weight("w", {4, outputs}, 0.5f)
        .node("MatMul", "fc", {"x", "w"}, "y_hat")
        .output("y_hat", {8, outputs});
  }
  void npz(const std::string& name, const std::vector<NamedTensor>& arrays) {
    fs::create_directories(data());
    write_npz(data() + "/" + name, arrays);
  }
  std::string data() const { return folder_ / "data"; }
  std::string config() const { return folder_ / "train.toml"; }
  std::string text() const { return read_file(config()); }

  InitReport guess(const std::string& model) { return init(model, {.data = data()}); }
  /// Trains two steps with the files that were written.
  void train_two_steps() {
    TrainOptions options;
    options.overrides = {"steps=2"};
    options.run_dir = folder_ / "run";
    const TrainResult result = Trainer(config(), options).run();
    EXPECT_EQ(result.steps, 2u);
    EXPECT_TRUE(std::isfinite(result.loss));
  }
  void guess_and_train(const std::string& model) {
    const InitReport report = guess(model);
    ASSERT_THAT(report.open, IsEmpty()) << text();
    train_two_steps();
  }
  std::string open_keys(const InitReport& report) const {
    std::string all;
    for (const Diagnostic& d : report.open) all += d.path + ": " + d.message + "\n";
    return all;
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(InitTest, TrainsImagesInNpzFilesByName) {
  fs::create_directories(data());
  for (const char* file : {"digits_train.npz", "digits_test.npz"})
    fs::copy(source_tree + "models/digits/" + file, data() + "/" + file);
  guess_and_train(model(source_tree + "models/digits/model.onnx"));
  EXPECT_THAT(text(),
              AllOf(HasSubstr("kind = \"softmax_cross_entropy\", logits = \"logits\""),
                    HasSubstr("image = { from = \"images\", as = [ \"scale(1/16)\" ] }"),
                    HasSubstr("files = [ \"data/digits_test.npz\" ]"), HasSubstr("kind = \"adam\""),
                    HasSubstr("\nlr = 1e-3\n"), HasSubstr("best = \"accuracy\"")));
  EXPECT_THAT(read_file(folder_ / "policy.toml"), HasSubstr("policy = 1"));
}

TEST_F(InitTest, GuessesForEveryParityModel) {
  // The arrays of their batches have the names of the inputs, and "labels".
  for (const char* name : {"mlp", "lenet5", "conv_bn", "lstm", "gru", "gpt", "encoder", "tagger"}) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
    fs::create_directories(data());
    fs::copy(parity + name + "_batches.npz", data() + "/all.npz");
    SCOPED_TRACE(name);
    guess_and_train(model(parity + name + "_torchscript.onnx"));
    // The convolutions of lenet5 have no normalisation between them.
    const std::string kind = std::string(name) == "conv_bn" ? "sgd"
                             : std::string(name) == "gpt" || std::string(name) == "encoder"
                                 ? "adamw"
                                 : "adam";
    EXPECT_THAT(text(), HasSubstr("\nkind = \"" + kind + "\"\n"));
    EXPECT_THAT(text(), HasSubstr("fraction = 0.1"));
    if (kind == "sgd") {
      EXPECT_THAT(text(), HasSubstr("arXiv:1512.03385"));
    }
  }
}

TEST_F(InitTest, LeavesTheLossToModelsThatHaveOne) {
  npz("batches.npz", {{"image", round_of<std::uint8_t>({64, 64}, 0, 255)},
                      {"labels", round_of<std::int64_t>({64}, 0, 9)}});
  guess_and_train(model(parity + "mlp_loss_torchscript.onnx"));
  EXPECT_THAT(text(), AllOf(Not(HasSubstr("terms")), HasSubstr("the output \"loss\"")));
}

TEST_F(InitTest, LeavesLossAndOptimizerToTrainingInfo) {
  npz("batches.npz",
      {{"x", round_of<float>({32, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({32}, 0, 2)}});
  guess_and_train(model(source_tree + "tests/data/training_info/adam.onnx"));
  EXPECT_THAT(text(), AllOf(Not(HasSubstr("terms")), Not(HasSubstr("[optimizer]"))));
}

TEST_F(InitTest, TrainsTablesOfIds) {
  npz("clicks.npz", {{"ids", round_of<std::int32_t>({4000, 39}, 0, 4999)},
                     {"label", round_of<float>({4000}, 0, 1)}});
  guess_and_train(model(source_tree + "models/wide_deep/model.onnx"));
  EXPECT_THAT(text(), AllOf(HasSubstr("{ at = \"wide:weight\", kind = \"ftrl\", lr = 0.05 }"),
                            HasSubstr("{ at = \"deep:weight\", kind = \"lazy_adam\" }"),
                            HasSubstr("binary_cross_entropy"), HasSubstr("batch_size = 32")));
  EXPECT_THAT(read_file(folder_ / "policy.toml"), HasSubstr("wide.**"));
}

TEST_F(InitTest, NamesSeveralTablesByOnePattern) {
  npz("clicks.npz", {{"dense", round_of<float>({200, 13}, 0, 9)},
                     {"categories", round_of<std::int64_t>({200, 26}, 0, 99)},
                     {"clicked", round_of<std::int64_t>({200}, 0, 1)}});
  guess_and_train(model(source_tree + "models/dlrm/model.onnx"));
  EXPECT_THAT(text(), HasSubstr("{ at = \"tables.*:weight\", kind = \"lazy_adam\" }"));
}

void write_idx_of(const std::string& path, const HostTensor& tensor) {
  std::string content{0, 0, 8, static_cast<char>(tensor.shape().size())};
  for (const std::int64_t extent : tensor.shape()) {
    for (int shift = 24; shift >= 0; shift -= 8) content += static_cast<char>(extent >> shift);
  }
  content.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  write_file(path, content);
}

TEST_F(InitTest, KnowsTheFourFilesOfMnist) {
  fs::create_directories(data());
  for (const std::string part : {"train", "t10k"}) {
    const std::int64_t count = part == "train" ? 100 : 20;
    write_idx_of(data() + "/" + part + "-images-idx3-ubyte",
                 round_of<std::uint8_t>({count, 28, 28}, 0, 255));
    write_idx_of(data() + "/" + part + "-labels-idx1-ubyte", round_of<std::uint8_t>({count}, 0, 9));
  }
  guess_and_train(model(parity + "lenet5_dynamo.onnx"));
  EXPECT_THAT(text(), AllOf(HasSubstr("as = [ \"reshape(1, 28, 28)\", \"scale(1/255)\" ]"),
                            HasSubstr("data/t10k-images-idx3-ubyte"), HasSubstr("kind = \"idx\"")));
}

TEST_F(InitTest, KnowsTheFilesOfCifar) {
  fs::create_directories(data());
  for (const std::string name : {"data_batch_1", "data_batch_2", "test_batch"}) {
    std::string records;
    for (int i = 0; i < 30; ++i)
      records += static_cast<char>(i % 10) + std::string(3072, static_cast<char>(i * 8));
    write_file(data() + "/" + name + ".bin", records);
  }
  const SmallModel net = SmallModel()
                             .input("pixels", {8, 3, 32, 32})
                             .weight("w", {3072, 10}, 0.01f)
                             .node("Flatten", "flatten", {"pixels"}, "flat")
                             .node("MatMul", "fc", {"flat", "w"}, "logits")
                             .output("logits", {8, 10});
  guess_and_train(model(net));
  EXPECT_THAT(text(), AllOf(HasSubstr("pixels = { from = \"images\", as = [ \"scale(1/255)\" ] }"),
                            HasSubstr("\"data/data_batch_1.bin\", \"data/data_batch_2.bin\" ]"),
                            HasSubstr("files = [ \"data/test_batch.bin\" ]")));
}

TEST_F(InitTest, LeavesArraysForTestingOutOfTraining) {
  npz("all.npz", {{"x_train", round_of<float>({50, 4}, 0, 5)},
                  {"y_train", round_of<std::int64_t>({50}, 0, 2)},
                  {"x_test", round_of<float>({20, 4}, 0, 5)},
                  {"y_test", round_of<std::int64_t>({20}, 0, 2)}});
  guess_and_train(model(dense(3)));
  EXPECT_THAT(text(), AllOf(HasSubstr("x = \"x_train\""), HasSubstr("labels = \"y_train\""),
                            HasSubstr("fraction = 0.1")));
}

TEST_F(InitTest, LeavesOutLabelsThatAreNone) {
  HostTensor labels = round_of<std::int64_t>({50}, 0, 2);
  labels.as<std::int64_t>()[7] = -100;
  npz("a.npz", {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", labels}});
  guess_and_train(model(dense(3)));
  EXPECT_THAT(text(), HasSubstr("ignore_index = -100"));
}

/// Scores of 3 classes for each of [batch, length] tokens, from a table of 9 rows.
std::string free_length_model() {
  using tandem::testing::WireMessage;
  const auto port = [](const std::string& name, std::uint64_t type, bool has_classes) {
    WireMessage shape;
    shape.message(1, WireMessage().bytes(2, "batch")).message(1, WireMessage().bytes(2, "length"));
    if (has_classes) shape.message(1, WireMessage().number(1, 3));
    return WireMessage().bytes(1, name).message(
        2, WireMessage().message(1, WireMessage().number(1, type).message(2, shape)));
  };
  std::vector<float> values(27);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i % 5);
  WireMessage table;
  table.number(1, 9)
      .number(1, 3)
      .number(2, 1)
      .bytes(8, "table")
      .bytes(9, std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
  WireMessage node;
  node.bytes(1, "table").bytes(1, "tokens").bytes(2, "scores").bytes(3, "embedding");
  node.bytes(4, "Gather");
  WireMessage graph;
  graph.message(1, node).message(5, table).message(11, port("tokens", 7, false));
  graph.message(12, port("scores", 1, true)).bytes(2, "graph");
  return WireMessage()
      .number(1, 10)
      .message(7, graph)
      .message(8, WireMessage().number(2, 20))
      .text();
}

TEST_F(InitTest, BindsFreeDimensionsAsLongAsTheSamplesAre) {
  npz("a.npz", {{"tokens", round_of<std::int64_t>({50, 6}, 0, 8)},
                {"labels", round_of<std::int64_t>({50, 6}, 0, 2)}});
  write_file(folder_ / "net.onnx", free_length_model());
  guess_and_train(folder_ / "net.onnx");
  EXPECT_THAT(text(), HasSubstr("bind = { length = 6 }"));
  fs::remove(config());
  fs::remove(folder_ / "policy.toml");
  EXPECT_THAT(open_keys(init(folder_ / "net.onnx")),
              HasSubstr("model.bind: how long is \"length\""));
}

TEST_F(InitTest, ReadsImagesInColumns) {
  fs::create_directories(data());
  std::string rows = "label";
  for (int i = 0; i < 64; ++i) rows += ",pixel" + std::to_string(i);
  for (int row = 0; row < 100; ++row) {
    rows += "\n" + std::to_string(row % 10);
    for (int i = 0; i < 64; ++i) rows += "," + std::to_string((row * 7 + i * 4) % 256);
  }
  write_file(data() + "/digits.csv", rows + "\n");
  guess_and_train(model(parity + "mlp_dynamo.onnx"));
  EXPECT_THAT(text(), AllOf(HasSubstr("from = [ \"pixel{0..63}\" ]"), HasSubstr("scale(1/255)"),
                            HasSubstr("label = { from = \"label\", as = [ \"int64\" ] }")));
}

TEST_F(InitTest, NormalisesEachColumnOfATable) {
  fs::create_directories(data());
  std::string rows = "age\theight\tincome\tscore\ttarget\n";
  for (int i = 0; i < 60; ++i) {
    rows += std::to_string(20 + i) + "\t1." + std::to_string(100 + i) + "\t" +
            std::to_string(1000 * i) + "\t-3\t" + std::to_string(i) + ".25\n";
  }
  write_file(data() + "/people.tsv", rows);
  guess_and_train(model(dense(1)));
  // 20 .. 79 have the mean 49.5 and the population's deviation sqrt((60^2 - 1) / 12).
  EXPECT_THAT(text(), AllOf(HasSubstr("kind = \"mse\", predictions = \"y_hat\", "
                                      "targets = \"target\""),
                            HasSubstr("normalize([49.5, "), HasSubstr("], [17.3181, ")));
}

TEST_F(InitTest, DoesNotChooseBetweenArraysThatFit) {
  npz("a.npz", {{"left", round_of<float>({50, 4}, 0, 5)},
                {"right", round_of<float>({50, 4}, 0, 5)},
                {"labels", round_of<std::int64_t>({50}, 0, 2)}});
  const InitReport report = guess(model(dense(3)));
  EXPECT_THAT(open_keys(report), AllOf(HasSubstr("data.fields.x: several arrays fit"),
                                       HasSubstr("\"left\""), HasSubstr("\"right\"")));
  EXPECT_THAT(text(), HasSubstr("# TODO x: several arrays fit"));
  EXPECT_THAT(report.text, HasSubstr("TODO       data.fields.x"));
}

TEST_F(InitTest, DoesNotTakeLabelsThatAreNoClasses) {
  npz("a.npz",
      {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({50}, 1, 3)}});
  EXPECT_THAT(open_keys(guess(model(dense(3)))),
              HasSubstr("loss.terms: no array that is left goes with an output as labels; "
                        "\"labels\" counts classes from 1 to 3"));
}

TEST_F(InitTest, DoesNotGuessWhatOneOneForEachSampleMeans) {
  HostTensor labels = round_of<float>({50, 3}, 0, 2);
  for (float& x : labels.as<float>()) x = x == 0 ? 1 : 0;
  npz("a.npz", {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", labels}});
  EXPECT_THAT(open_keys(guess(model(dense(3)))), HasSubstr("or a yes or no for each"));
}

TEST_F(InitTest, SeveralAnswersToASampleAreNoClasses) {
  npz("a.npz", {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<float>({50, 3}, 0, 1)}});
  EXPECT_THAT(open_keys(guess(model(dense(3)))), IsEmpty());
  EXPECT_THAT(text(), HasSubstr("kind = \"binary_cross_entropy\", logits = \"y_hat\""));
  train_two_steps();
}

TEST_F(InitTest, DoesNotReadChannelsInAnotherOrder) {
  npz("a.npz", {{"image", round_of<std::uint8_t>({30, 16, 16, 3}, 0, 255)},
                {"labels", round_of<std::int64_t>({30}, 0, 9)}});
  EXPECT_THAT(open_keys(guess(model(parity + "conv_bn_dynamo.onnx"))),
              AllOf(HasSubstr("data.fields.image"), HasSubstr("transpose the array")));
}

TEST_F(InitTest, DoesNotTakeIdsThatNoTableHas) {
  npz("a.npz", {{"ids", round_of<std::int64_t>({200, 39}, 0, 5000)},
                {"label", round_of<float>({200}, 0, 1)}});
  EXPECT_THAT(open_keys(guess(model(source_tree + "models/wide_deep/model.onnx"))),
              HasSubstr("its values go from 0 to 5000, the table has the rows 0 to 4999"));
}

TEST_F(InitTest, SaysWhereArraysHaveOtherNumbersOfSamples) {
  npz("a.npz",
      {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({40}, 0, 2)}});
  EXPECT_THAT(open_keys(guess(model(dense(3)))),
              HasSubstr("\"x\" has 50 samples, \"labels\" has 40"));
}

TEST_F(InitTest, TakesNoLabelsForAnInput) {
  npz("a.npz", {{"labels", round_of<float>({50, 4}, 0, 5)}});
  EXPECT_THAT(open_keys(guess(model(dense(3)))), HasSubstr("data.fields.x: no array fits"));
}

TEST_F(InitTest, ArraysThatAreNoNumbersAreNamed) {
  fs::create_directories(data());
  const std::string labels(16, '\0');
  write_file(data() + "/a.npz",
             tandem::testing::zip_archive(
                 {tandem::testing::stored(
                      "x.npy", tandem::testing::npy_start("<U1", "(2, 4)") + std::string(32, 'a')),
                  tandem::testing::stored("labels.npy",
                                          tandem::testing::npy_start("<i8", "(2,)") + labels)}));
  EXPECT_THAT(open_keys(guess(model(dense(3)))),
              HasSubstr("\"x\" is left out: arrays of texts are not read: expected numbers or "
                        "booleans, got <U1 (np.unique(x"));
}

TEST_F(InitTest, DoesNotChooseBetweenSignsAndNumbers) {
  HostTensor signs = round_of<float>({50}, 0, 1);
  for (float& x : signs.as<float>()) x = 2 * x - 1;
  npz("a.npz", {{"x", round_of<float>({50, 4}, 0, 5)}, {"y", signs}});
  EXPECT_THAT(open_keys(guess(model(dense(1)))), HasSubstr("classes (hinge), or numbers (mse)?"));
}

TEST_F(InitTest, IsACommand) {
  npz("a.npz",
      {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({50}, 0, 2)}});
  const std::string net = model(dense(3)), with_data = " --data " + data();
  Ended ended = run_program("init " + net + with_data + " 2>&1");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(HasSubstr("wrote "), HasSubstr("train.toml --dry-run")));
  ended = run_program("init " + net + with_data + " --json 2>/dev/null");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("\"errors\""), HasSubstr("is there already")));
  ended = run_program("train " + config() + " --dry-run 2>&1");
  EXPECT_EQ(ended.code, 0) << ended.text;
  ended = run_program("train " + net + with_data + " steps=2 2>&1");
  EXPECT_EQ(ended.code, 0) << ended.text;
  // The printed commands can be pasted.
  EXPECT_THAT(ended.text, HasSubstr(tandem::testing::program + " eval " + folder_.path() +
                                    "/runs/net-0001\n" + tandem::testing::program + " export " +
                                    folder_.path() + "/runs/net-0001 --to trained.onnx"));
  EXPECT_EQ(run_program("eval " + folder_.path() + "/runs/net-0001 2>&1").code, 0);
  ended = run_program("train " + config() + with_data + " steps=2 2>&1");
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("data"));
}

TEST_F(InitTest, SaysWhichImagesAreOfAnotherSize) {
  npz("a.npz", {{"image", round_of<std::uint8_t>({60, 1, 8, 8}, 0, 255)},
                {"labels", round_of<std::int64_t>({60}, 0, 9)}});
  EXPECT_THAT(open_keys(guess(model(parity + "lenet5_dynamo.onnx"))),
              AllOf(HasSubstr("has the shape [1, 8, 8], the input takes [1, 28, 28]"),
                    HasSubstr("\"resize(28, 28)\"")));
  EXPECT_THAT(text(), HasSubstr("of 54 samples"));
}

TEST_F(InitTest, NamesTheInputOfASoftmax) {
  npz("a.npz",
      {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({50}, 0, 2)}});
  const SmallModel net = SmallModel()
                             .input("x", {8, 4})
                             .weight("w", {4, 3}, 0.5f)
                             .node("MatMul", "fc", {"x", "w"}, "scores")
                             .node("Softmax", "softmax", {"scores"}, "p")
                             .output("p", {8, 3});
  guess_and_train(model(net));
  EXPECT_THAT(text(), HasSubstr("logits = \"scores\""));
}

TEST_F(InitTest, WorksWithoutData) {
  const InitReport report = init(model(source_tree + "models/digits/model.onnx"));
  EXPECT_THAT(open_keys(report),
              AllOf(HasSubstr("loss.terms"), HasSubstr("data.kind"), HasSubstr("data.train.files"),
                    HasSubstr("data.fields.image"), HasSubstr("data.fields.labels")));
  EXPECT_THAT(error_of([&] { Trainer(config(), {}); }), HasSubstr("train.toml"));
}

TEST_F(InitTest, NeverOverwrites) {
  npz("a.npz",
      {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({50}, 0, 2)}});
  const std::string net = model(dense(3));
  write_file(folder_ / "policy.toml", "mine");
  EXPECT_THAT(error_of([&] { guess(net); }),
              AllOf(HasSubstr("policy.toml"), HasSubstr("is there already")));
  EXPECT_EQ(read_file(folder_ / "policy.toml"), "mine");
  EXPECT_FALSE(fs::exists(config()));
  fs::remove(folder_ / "policy.toml");
  guess(net);
  const std::string before = text();
  EXPECT_THAT(error_of([&] { guess(net); }), HasSubstr("is there already"));
  EXPECT_EQ(text(), before);
  EXPECT_THAT(error_of([&] { init(net, {.to = folder_ / "policy.toml"}); }),
              HasSubstr("this is no folder"));
}

TEST_F(InitTest, RefusesDataThatIsNone) {
  const std::string net = model(dense(3));
  EXPECT_THAT(error_of([&] { guess(net); }), HasSubstr("no such file or folder"));
  fs::create_directories(data());
  EXPECT_THAT(error_of([&] { guess(net); }), HasSubstr("no file of a known kind of data"));
  npz("a.npz", {});
  EXPECT_THAT(error_of([&] { guess(net); }, ErrorKind::data), HasSubstr("a.npz"));
  npz("a.npz", {{"x", HostTensor(TensorType{DType::float32, {0, 4}})}});
  EXPECT_THAT(error_of([&] { guess(net); }, ErrorKind::data), HasSubstr("there are no samples"));
  write_file(data() + "/a.npz", "PK broken");
  EXPECT_THAT(error_of([&] { guess(net); }, ErrorKind::data), HasSubstr("a.npz"));
  write_file(data() + "/b.csv", "x,y\n1,2\n");
  EXPECT_THAT(error_of([&] { guess(net); }), HasSubstr("files of two kinds"));
  fs::remove(data() + "/a.npz");
  write_file(data() + "/b.csv", "x,y\n1,2,3\n");
  EXPECT_THAT(error_of([&] { guess(net); }, ErrorKind::data), HasSubstr("b.csv:2"));
  write_file(data() + "/b.csv", "x\xff\x1b,y\n1,2\n");
  EXPECT_THAT(error_of([&] { guess(net); }, ErrorKind::data), HasSubstr("no text"));
  EXPECT_FALSE(fs::exists(config()));
}

TEST_F(InitTest, TrainTakesAModelAndData) {
  fs::create_directories(data());
  fs::copy(parity + "mlp_batches.npz", data() + "/all.npz");
  const std::string net = model(parity + "mlp_torchscript.onnx");
  TrainOptions options;
  options.overrides = {"steps=2", "batch_size=16", "data=" + data()};
  const TrainResult result = Trainer(net, options).run();
  EXPECT_EQ(result.steps, 2u);
  EXPECT_EQ(result.run_dir, folder_ / "runs/net-0001");
  EXPECT_THAT(read_file(result.run_dir + "/train.resolved.toml"), HasSubstr("batch_size = 16"));
  EXPECT_FALSE(fs::exists(config()));
  options.overrides = {"steps=4", "batch_size=16", "data=" + data()};
  options.run_dir = result.run_dir;
  options.resume = true;
  EXPECT_EQ(Trainer(net, options).run().steps, 4u);
}

TEST_F(InitTest, TrainNamesWhatIsOpenUnlessAKeySaysIt) {
  npz("a.npz", {{"left", round_of<float>({50, 4}, 0, 5)},
                {"right", round_of<float>({50, 4}, 0, 5)},
                {"labels", round_of<std::int64_t>({50}, 0, 2)}});
  const std::string net = model(dense(3));
  TrainOptions options;
  options.overrides = {"steps=2", "data=" + data()};
  EXPECT_THAT(error_of([&] { Trainer(net, options); }),
              AllOf(HasSubstr("data.fields.x: cannot be guessed: several arrays fit"),
                    HasSubstr("tandem init")));
  options.overrides.emplace_back("data.fields.x=left");
  EXPECT_EQ(Trainer(net, options).run().steps, 2u);
  EXPECT_THAT(error_of([&] { Trainer(net, {}); }), HasSubstr("data.train.files"));
}

}  // namespace
}  // namespace tandem::api
