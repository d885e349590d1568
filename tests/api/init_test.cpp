// `init` and `train MODEL.onnx --data`: known data sets, arrays with odd values, existing files.
// Other arrays: tests/expected/commands/init_arrays.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "api/program/init.h"
#include "api/program/keys.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
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
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string source_tree = source_folder() + "/";
const std::string parity = source_tree + "tests/data/parity/";

/// Cycles through the values from `least` to `most`, so that both occur.
template <class T>
HostTensor round_of(const Shape& shape, int least, int most) {
  HostTensor tensor(TensorType{tandem::dtype_of<T>::value, shape});
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

TEST_F(InitTest, LeavesOutLabelsThatAreNone) {
  HostTensor labels = round_of<std::int64_t>({50}, 0, 2);
  labels.as<std::int64_t>()[7] = -100;
  npz("a.npz", {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", labels}});
  guess_and_train(model(dense(3)));
  EXPECT_THAT(text(), HasSubstr("ignore_index = -100"));
}

TEST_F(InitTest, DoesNotGuessWhatOneOneForEachSampleMeans) {
  HostTensor labels = round_of<float>({50, 3}, 0, 2);
  for (float& x : labels.as<float>()) x = x == 0 ? 1 : 0;
  npz("a.npz", {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", labels}});
  EXPECT_THAT(open_keys(guess(model(dense(3)))), HasSubstr("or a yes or no for each"));
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

TEST_F(InitTest, WritesTheSchemasThatFirstLinesName) {
  npz("a.npz",
      {{"x", round_of<float>({50, 4}, 0, 5)}, {"labels", round_of<std::int64_t>({50}, 0, 2)}});
  const std::string net = model(dense(3));
  const InitReport report = guess(net);
  EXPECT_THAT(report.schemas, ElementsAre(EndsWith("/.tandem/train.schema.json"),
                                          EndsWith("/.tandem/policy.schema.json")));
  EXPECT_THAT(text(), StartsWith("#:schema ./.tandem/train.schema.json\n# How net.onnx"));
  EXPECT_THAT(read_file(folder_ / "policy.toml"),
              StartsWith("#:schema ./.tandem/policy.schema.json\n# Where net.onnx"));
  EXPECT_EQ(read_file(report.schemas[0]), config_schema());
  EXPECT_THAT(read_file(report.schemas[1]), AllOf(HasSubstr("\"fc"), HasSubstr("\"MatMul\"")));

  // A later version replaces them, but no other file.
  write_file(report.schemas[0], "{ \"title\": \"train.toml\" }");
  config_install_schemas(folder_.path());
  EXPECT_EQ(read_file(report.schemas[0]), config_schema());
  EXPECT_EQ(read_file(report.schemas[1]), config_schema(true));
  write_file(report.schemas[0], "mine");
  EXPECT_THAT(error_of([&] { config_install_schemas(folder_.path()); }),
              HasSubstr("train.schema.json"));
  EXPECT_EQ(read_file(report.schemas[0]), "mine");
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

}  // namespace
}  // namespace tandem::api
