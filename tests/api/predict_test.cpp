// Evaluating and predicting with trained runs: metrics from predictions, raw rows, checkpoints,
// placement, vocabularies, exported models, the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

std::vector<double> numbers(const std::vector<std::string>& lines) {
  std::vector<double> values;
  for (const std::string& line : lines) values.push_back(std::stod(line));
  return values;
}

std::vector<double> labels_of_rows(const std::vector<std::string>& rows) {
  std::vector<double> labels;
  for (const std::string& row : rows) labels.push_back(row[0] - '0');
  return labels;
}

void expect_near_numbers(const std::vector<double>& a, const std::vector<double>& b,
                         double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

class PredictTest : public ::testing::Test {
 protected:
  std::string predict(PredictOptions options) {
    options.to = folder_ / "predicted.tsv";
    report_ = predict_run(run_, options);
    return read_file(options.to);
  }
  std::string predict(const std::string& file) {
    PredictOptions options;
    options.data = {file};
    return predict(options);
  }
  Json evaluate(const TrainedOptions& options = {}) {
    return Json::parse(evaluate_run(run_, options).json);
  }
  std::string write(const std::string& name, const std::vector<std::string>& rows) {
    write_file(folder_ / name, joined(rows));
    return folder_ / name;
  }

  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
  Report report_;
};

class PredictClicksTest : public PredictTest {
 protected:
  PredictClicksTest() {
    write_clicks(folder_);
    testing::train(folder_);
    rows_ = lines_of(read_file(eval_));
  }
  const std::string eval_ = folder_ / "eval.tsv";
  std::vector<std::string> rows_;
};

TEST_F(PredictClicksTest, PredictionsGiveTheMetricsOfEval) {
  const Json evaluated = evaluate();
  EXPECT_EQ(evaluated["samples"], click_samples);
  const std::vector<double> p = numbers(lines_of(predict(eval_))), y = labels_of_rows(rows_);
  ASSERT_THAT(p, SizeIs(click_samples));
  double loss = 0, mean = 0, right = 0, pairs = 0, ordered = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    loss -= y[i] > 0 ? std::log(p[i]) : std::log(1 - p[i]);
    mean += p[i];
    right += (p[i] > 0.5) == (y[i] > 0.5);
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (y[i] <= y[j]) continue;
      ++pairs;
      ordered += p[i] > p[j] ? 1 : p[i] == p[j] ? 0.5 : 0;
    }
  }
  const double positives = std::accumulate(y.begin(), y.end(), 0.0), samples = click_samples;
  const Json& metrics = evaluated["metrics"];
  EXPECT_NEAR(metrics["log_loss"].get<double>(), loss / samples, 1e-6);
  EXPECT_NEAR(metrics["auc"].get<double>(), ordered / pairs, 1e-9);
  EXPECT_NEAR(metrics["calibration"].get<double>(), mean / positives, 1e-6);
  EXPECT_NEAR(metrics["accuracy"].get<double>(), right / samples, 1e-9);
  EXPECT_NEAR(metrics["click"].get<double>(), loss / samples, 1e-5);

  // The numbers must equal those that training has logged for that step.
  Json logged;
  for (const std::string& line : lines_of(read_file(run_ + "/metrics.jsonl"))) {
    const Json json = Json::parse(line);
    if (json.contains("phase") && json["step"] == evaluated["step"]) logged = json;
  }
  for (const char* name : {"loss", "l2", "log_loss", "auc"})
    EXPECT_NEAR(metrics[name].get<double>(), logged[name].get<double>(), 1e-6) << name;
  EXPECT_EQ(Json::parse(report_.json)["step"], evaluated["step"]);
}

TEST_F(PredictClicksTest, RowsKeepTheirOrderInBatchesOfAnySize) {
  const std::vector<double> all = numbers(lines_of(predict(eval_)));
  PredictOptions options;
  options.data = {eval_};
  for (const std::int64_t batch : {1, 7, 1000}) {
    options.batch = batch;
    expect_near_numbers(numbers(lines_of(predict(options))), all, 1e-6);
  }
  // Several files, of which the first ends within a micro-batch.
  const std::vector<std::string> first(rows_.begin(), rows_.begin() + 21),
      second(rows_.begin() + 21, rows_.end());
  options.batch = 0;
  options.data = {write("first.tsv", first), write("second.tsv", second)};
  expect_near_numbers(numbers(lines_of(predict(options))), all, 1e-6);
  std::vector<std::string> backwards(rows_.rbegin(), rows_.rend());
  const std::vector<double> reversed(all.rbegin(), all.rend());
  expect_near_numbers(numbers(lines_of(predict(write("backwards.tsv", backwards)))), reversed,
                      1e-6);
}

TEST_F(PredictClicksTest, LabelsNeedNotBeThere) {
  const std::string with = predict(eval_);
  std::vector<std::string> bare, unlabelled;
  for (const std::string& row : rows_) {
    bare.push_back(without_label(row));
    unlabelled.push_back("\t" + bare.back());
  }
  EXPECT_EQ(predict(write("bare.tsv", bare)), with);
  EXPECT_EQ(predict(write("unlabelled.tsv", unlabelled)), with);
  TrainedOptions options;
  options.data = {folder_ / "bare.tsv"};
  EXPECT_THAT(error_of([&] { evaluate(options); }, ErrorKind::data),
              HasSubstr("bare.tsv:1:40: the field of `c26`"));
}

TEST_F(PredictClicksTest, UnknownCategoriesAreAllTheSame) {
  std::vector<std::string> rows{rows_[0], rows_[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    rows[i] = rows[i].substr(0, rows[i].rfind('\t')) + "\tnever" + std::to_string(i);
  }
  rows.push_back(rows_[0].substr(0, rows_[0].rfind('\t')) + "\tw0");
  const std::vector<std::string> lines = lines_of(predict(write("unknown.tsv", rows)));
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_NE(lines[0], lines[2]);
}

TEST_F(PredictClicksTest, BadRowsAreNamedOrLeaveGaps) {
  const std::vector<std::string> all = lines_of(predict(eval_));
  std::vector<std::string> rows = rows_;
  rows[19] += "\tmore";
  rows[40] = "1\t2";
  const std::string bad = write("bad.tsv", rows);
  const std::string to = folder_ / "new.tsv";
  const Ended refused = run_program("predict " + run_ + " --data " + bad + " --to " + to + " 2>&1");
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.text, HasSubstr(bad + ":20:41: a field more than there are columns"));
  EXPECT_FALSE(fs::exists(to));
  EXPECT_FALSE(fs::exists(to + ".new"));
  const Ended skipped = run_program("predict " + run_ + " data.on_bad=skip --data " + bad +
                                    " --to " + to + " --json 2>/dev/null");
  EXPECT_EQ(skipped.code, 0);
  EXPECT_EQ(Json::parse(skipped.text)["bad"], 2);
  const std::vector<std::string> lines = lines_of(read_file(to));
  ASSERT_EQ(lines.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 19 || i == 40) {
      EXPECT_EQ(lines[i], "nan");
    } else {
      EXPECT_NEAR(std::stod(lines[i]), std::stod(all[i]), 1e-6) << i;
    }
  }
  const Ended evaluated = run_program("eval " + run_ + " --data " + bad + " 2>&1");
  EXPECT_EQ(evaluated.code, 4);
  EXPECT_THAT(evaluated.text, HasSubstr(bad + ":20:41: "));
  TrainedOptions options;
  options.data = {bad};
  options.overrides = {"data.on_bad=skip"};
  EXPECT_EQ(evaluate(options)["samples"], click_samples - 2);
}

TEST_F(PredictClicksTest, TheBestCheckpointIsUsedUnlessAskedOtherwise) {
  write_file(run_ + "/checkpoints/best", "step-00000005\n");
  const std::string best = predict(eval_);
  EXPECT_EQ(Json::parse(report_.json)["which"], "best");
  PredictOptions options;
  options.data = {eval_};
  options.checkpoint = "5";
  EXPECT_EQ(predict(options), best);
  options.checkpoint = "latest";
  EXPECT_NE(predict(options), best);
  EXPECT_EQ(Json::parse(report_.json)["step"], 10);
  fs::remove(run_ + "/checkpoints/best");
  const std::string latest = predict(options);
  EXPECT_EQ(predict(eval_), latest);
  EXPECT_EQ(Json::parse(report_.json)["which"], "latest");
  const Ended evaluated = run_program("eval " + run_ + " --checkpoint 5 2>/dev/null");
  EXPECT_EQ(evaluated.code, 0);
  EXPECT_THAT(evaluated.text, HasSubstr("/checkpoints/step-00000005 (5)"));
  options.checkpoint = "7";
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage), HasSubstr("step-00000010"));
}

TEST_F(PredictClicksTest, RowsComeFromStandardInput) {
  const std::string from_file = predict(eval_);
  const Ended piped =
      run_program("predict " + run_ + " --data - 2>/dev/null", "cut -f2- " + eval_ + " | ");
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.text, from_file);
  const Ended packed =
      run_program("predict " + run_ + " --data - 2>/dev/null", "gzip -c " + eval_ + " | ");
  EXPECT_EQ(packed.text, from_file);
  const Ended device =
      run_program("predict " + run_ + " --data " + eval_ + " --to /dev/stdout 2>/dev/null | cat");
  EXPECT_EQ(device.text, from_file);
  const Ended bad = run_program("predict " + run_ + " --data - 2>&1", "echo 1 | ");
  EXPECT_EQ(bad.code, 4);
  EXPECT_THAT(bad.text, HasSubstr("<stdin>:1:2: "));
}

TEST_F(PredictClicksTest, AnotherVocabularyIsRefused) {
  const std::string path = run_ + "/vocabulary.ids.tsv", text = read_file(path);
  const auto refusal = [&] { return error_of([&] { predict(eval_); }, ErrorKind::data); };
  std::vector<std::string> words = lines_of(text);
  std::swap(words[3], words[4]);
  write_file(path, joined(words));
  EXPECT_THAT(refusal(), HasSubstr("not the vocabulary that the checkpoint was trained with"));
  EXPECT_THAT(error_of([&] { evaluate(); }, ErrorKind::data), HasSubstr("vocabulary.ids.tsv"));
  fs::remove(path);
  EXPECT_THAT(refusal(), HasSubstr("the vocabulary \"ids\" is not there"));
  write_file(path, text);
  EXPECT_THAT(predict(eval_), Not(HasSubstr("nan")));
}

TEST_F(PredictClicksTest, AnExportedModelPredictsTheSame) {
  const std::string expected = predict(eval_), model = folder_ / "out.onnx";
  export_run(run_, model, {.checkpoint = "best"});
  PredictOptions options;
  options.data = {eval_};
  options.config = folder_ / "train.toml";
  options.to = folder_ / "exported.tsv";
  predict_run(model, options);
  expect_near_numbers(numbers(lines_of(read_file(options.to))), numbers(lines_of(expected)), 1e-6);
  const Json metrics = Json::parse(evaluate_run(model, options).json)["metrics"];
  EXPECT_NEAR(metrics["log_loss"].get<double>(), evaluate()["metrics"]["log_loss"].get<double>(),
              1e-6);

  options.as = "values";
  predict_run(model, options);
  const std::string values = read_file(options.to);
  options.config.clear();  // the file itself defines its columns, but not its loss
  predict_run(model, options);
  EXPECT_EQ(read_file(options.to), values);
}

TEST_F(PredictClicksTest, OutputsAndFormsAreChosen) {
  PredictOptions options;
  options.data = {eval_};
  options.header = true;
  options.outputs = {"logits"};
  const std::vector<std::string> p = lines_of(predict(options));
  EXPECT_EQ(p[0], "probability");
  options.as = "values";
  const std::vector<std::string> logits = lines_of(predict(options));
  EXPECT_EQ(logits[0], "logits");
  options.as = "class";
  const std::vector<std::string> classes = lines_of(predict(options));
  for (std::size_t i = 1; i < p.size(); ++i) {
    const double x = std::stof(logits[i]);
    EXPECT_NEAR(std::stod(p[i]), 1 / (1 + std::exp(-x)), 1e-12);
    EXPECT_EQ(classes[i], x > 0 ? "1" : "0");
  }
  options.as = "values";
  options.outputs = {"logits", "deep_rows"};
  const std::string first = lines_of(predict(options))[0];
  EXPECT_THAT(first, ::testing::StartsWith("logits\tdeep_rows[0]\tdeep_rows[1]\t"));
  options.outputs = {"logit"};
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage),
              HasSubstr("did you mean \"logits\"?"));
  options.outputs = {"deep_rows"};
  options.as = "class";
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage), HasSubstr("--as values"));
  options.data = {folder_ / "predicted.tsv"};
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage),
              HasSubstr("this file is read"));
}

TEST_F(PredictTest, ThePolicyOfTheRunIsUsed) {
  write_clicks(folder_, "policy = \"policy.toml\"\n");
  write_file(folder_ / "policy.toml",
             "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" }, { at = \"{wide,deep}.**\", on = "
             "\"cpu\" } ]\n");
  TrainOptions how;
  how.devices = {"gpu=emulated:0,memory=1GiB"};
  testing::train(folder_, how);
  fs::remove(folder_ / "policy.toml");  // the run has its own

  const std::string eval = folder_ / "eval.tsv";
  PredictOptions options;
  options.data = {eval};
  const std::vector<double> placed = numbers(lines_of(predict(options)));
  options.place = {"{ at = \"**\", on = \"cpu\" }"};
  expect_near_numbers(numbers(lines_of(predict(options))), placed, 1e-5);
  TrainedOptions on_host;
  on_host.place = options.place;
  EXPECT_NEAR(evaluate()["metrics"]["log_loss"].get<double>(),
              evaluate(on_host)["metrics"]["log_loss"].get<double>(), 1e-5);
  options.place.clear();
  options.devices = {"gpu=memory=4KiB"};
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::does_not_fit),
              HasSubstr("does not fit into gpu"));
}

TEST_F(PredictTest, HeldOutFractionsAreEvaluated) {
  write_clicks(folder_);
  std::string toml = read_file(folder_ / "train.toml");
  toml.replace(toml.find("files   = [ \"eval.tsv\" ]"), 24, "fraction = 0.25");
  write_file(folder_ / "train.toml", toml);
  testing::train(folder_);
  TrainedOptions latest;
  latest.checkpoint = "latest";
  const Json evaluated = evaluate(latest);
  EXPECT_EQ(evaluated["samples"], 40);
  const std::vector<std::string> log = lines_of(read_file(run_ + "/metrics.jsonl"));
  EXPECT_NEAR(evaluated["metrics"]["log_loss"].get<double>(),
              Json::parse(log.back())["log_loss"].get<double>(), 1e-6);
  const std::string rows = read_file(folder_ / "train.tsv");
  write_file(folder_ / "train.tsv", rows + rows.substr(0, rows.find('\n') + 1));
  EXPECT_THAT(error_of([&] { evaluate(latest); }, ErrorKind::data),
              HasSubstr("make another vocabulary"));
}

TEST_F(PredictTest, RawRowsGoThroughFunctionsOfNumbers) {
  std::ofstream(folder_ / "model.onnx") << SmallModel()
                                               .input("logs", {4, 2})
                                               .input("buckets", {4, 2})
                                               .input("t", {4, 1})
                                               .weight("w", {2, 1}, 0.5f)
                                               .node("Add", "sum", {"logs", "buckets"}, "sums")
                                               .node("MatMul", "product", {"sums", "w"}, "y")
                                               .node("Sub", "difference", {"y", "t"}, "d")
                                               .node("Mul", "square", {"d", "d"}, "squares")
                                               .node("ReduceMean", "mean", {"squares"}, "means")
                                               .node("Squeeze", "scalar", {"means"}, "loss")
                                               .output("loss", {})
                                               .output("sums", {4, 2})
                                               .output("y", {4, 1})
                                               .bytes();
  write_file(folder_ / "train.tsv", "1\t3\t5\n0\t\t20\n1\t200\t0\n0\t1\t1\n");
  write_file(folder_ / "new.tsv", "0\t3\n6\t100\n\t-5\n12.5\t1\n0\t0\n");
  write_file(folder_ / "train.toml", R"toml(model = "model.onnx"
batch_size = 4
steps = 1
[loss]
output = "loss"
[optimizer]
kind = "sgd"
[data]
kind = "tsv"
columns = [ "t", "a", "b" ]
[data.train]
files = [ "train.tsv" ]
[data.fields]
logs    = { from = [ "a", "b" ], as = [ "missing(0)", "log1p" ] }
buckets = { from = [ "a", "b" ], as = [ "missing(0)", "bucketize(1, 10, 100)", "float32" ] }
t       = { from = [ "t" ] }
)toml");
  testing::train(folder_);
  PredictOptions options;
  options.data = {folder_ / "new.tsv"};
  options.outputs = {"sums", "y"};
  const std::vector<std::string> lines = lines_of(predict(options));
  // log(1 + a), log(1 + b), and how many of 1, 10 and 100 they reach.
  const double expected[5][2] = {{0 + 0, 1.386294361 + 1},
                                 {1.945910149 + 1, 4.615120517 + 3},
                                 {0 + 0, 0 + 0},
                                 {2.602689685 + 2, 0.693147181 + 1},
                                 {0 + 0, 0 + 0}};
  ASSERT_THAT(lines, SizeIs(5));
  for (std::size_t row = 0; row < 5; ++row) {
    const std::size_t tab = lines[row].find('\t');
    ASSERT_NE(tab, std::string::npos) << lines[row];
    EXPECT_NEAR(std::stod(lines[row]), expected[row][0], 1e-6) << row;
    EXPECT_NEAR(std::stod(lines[row].substr(tab + 1)), expected[row][1], 1e-6) << row;
  }
}

TEST_F(PredictTest, AModelWithItsOwnLossGivesItsOutputs) {
  std::ofstream(folder_ / "model.onnx") << SmallModel()
                                               .input("x", {4, 3})
                                               .input("t", {4, 2})
                                               .weight("w", {3, 2}, 0.5f)
                                               .node("MatMul", "product", {"x", "w"}, "y")
                                               .node("Sub", "difference", {"y", "t"}, "d")
                                               .node("Mul", "square", {"d", "d"}, "squares")
                                               .node("ReduceMean", "mean", {"squares"}, "means")
                                               .node("Squeeze", "scalar", {"means"}, "loss")
                                               .output("loss", {})
                                               .output("y", {4, 2})
                                               .bytes();
  std::vector<float> x;
  for (int i = 0; i < 18; ++i) x.push_back(static_cast<float>(i % 5) - 2);
  const HostTensor inputs = HostTensor::from<float>({6, 3}, x);
  write_npz(folder_ / "train.npz",
            {{"x", inputs}, {"t", HostTensor::from<float>({6, 2}, std::vector<float>(12, 1))}});
  write_npz(folder_ / "new.npz", {{"x", inputs}});
  write_file(folder_ / "train.toml",
             "model = \"model.onnx\"\nbatch_size = 4\nsteps = 3\n[loss]\noutput = \"loss\"\n"
             "[optimizer]\nkind = \"sgd\"\n[data]\nkind = \"npz\"\n[data.train]\n"
             "files = [ \"train.npz\" ]\n");
  testing::train(folder_);
  export_run(run_, folder_ / "w.npz");
  const HostTensor w = read_npz(folder_ / "w.npz")[0].tensor;
  const std::vector<std::string> lines = lines_of(predict(folder_ / "new.npz"));
  ASSERT_EQ(lines.size(), 6u);
  for (std::size_t row = 0; row < 6; ++row) {
    double y[2] = {0, 0};
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t c = 0; c < 2; ++c)
        y[c] += double{x[3 * row + k]} * w.number(static_cast<std::int64_t>(2 * k + c));
    }
    const std::size_t tab = lines[row].find('\t');
    EXPECT_NEAR(std::stod(lines[row]), y[0], 1e-5);
    EXPECT_NEAR(std::stod(lines[row].substr(tab + 1)), y[1], 1e-5);
  }
  PredictOptions options;
  options.data = {folder_ / "new.npz"};
  options.outputs = {"loss"};
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage),
              HasSubstr("does not have one entry a sample"));
  options.outputs = {"d"};
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage),
              HasSubstr("data.fields.t: no data field feeds this input"));
}

class PredictDigitsTest : public PredictTest {
 protected:
  PredictDigitsTest() : labels_(write_digits(folder_)) { testing::train(folder_); }
  const std::string images_ = folder_ / "test-images";
  std::vector<std::int64_t> labels_;
};

TEST_F(PredictDigitsTest, ClassesGiveTheAccuracyOfEval) {
  const Json metrics = evaluate()["metrics"];
  EXPECT_GT(metrics["accuracy"].get<double>(), 0.7);
  const std::vector<std::string> lines = lines_of(predict(images_));
  ASSERT_EQ(lines.size(), labels_.size());
  double right = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) right += std::stoll(lines[i]) == labels_[i];
  EXPECT_EQ(metrics["accuracy"], right / static_cast<double>(labels_.size()));

  PredictOptions options;
  options.data = {"images=" + images_, "labels=" + (folder_ / "test-labels")};
  EXPECT_EQ(lines_of(predict(options)), lines);
  TrainedOptions files;
  files.data = options.data;
  EXPECT_EQ(evaluate(files)["metrics"], metrics);
  files.data = {images_};
  EXPECT_THAT(error_of([&] { evaluate(files); }, ErrorKind::usage),
              HasSubstr("write --data images=" + images_));
  options.data = {"-"};
  EXPECT_THAT(error_of([&] { predict(options); }, ErrorKind::usage),
              HasSubstr("rows of text tables only"));
}

TEST_F(PredictDigitsTest, ArraysAreWritten) {
  PredictOptions options;
  options.data = {images_};
  options.to = folder_ / "all.npz";
  predict_run(run_, options);
  const std::vector<NamedTensor> arrays = read_npz(options.to);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "class");
  EXPECT_EQ(arrays[1].name, "probability");
  const auto samples = static_cast<std::int64_t>(labels_.size());
  EXPECT_EQ(arrays[0].tensor.type(), (TensorType{DType::int64, {samples}}));

  options.as = "probability";
  options.to = folder_ / "p.npy";
  predict_run(run_, options);
  const HostTensor p = read_npy(options.to);
  ASSERT_EQ(p.type(), (TensorType{DType::float64, {samples, 10}}));
  for (std::int64_t i = 0; i < samples; ++i) {
    double sum = 0, greatest = 0;
    for (std::int64_t c = 0; c < 10; ++c) {
      sum += p.number(10 * i + c);
      greatest = std::max(greatest, p.number(10 * i + c));
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(greatest, arrays[1].tensor.number(i));
    EXPECT_EQ(greatest, p.number(10 * i + arrays[0].tensor.as<std::int64_t>()[i]));
  }
  options.as = "";
  EXPECT_THAT(error_of([&] { predict_run(run_, options); }, ErrorKind::usage),
              HasSubstr("an .npy file holds one array"));
  options.to = folder_ / "classes.csv";
  options.header = true;
  predict_run(run_, options);
  const std::vector<std::string> lines = lines_of(read_file(options.to));
  ASSERT_EQ(lines.size(), labels_.size() + 1);
  EXPECT_EQ(lines[0], "class,probability");
  const std::size_t comma = lines[1].find(',');
  EXPECT_EQ(std::stoll(lines[1]), arrays[0].tensor.as<std::int64_t>()[0]);
  EXPECT_EQ(std::stod(lines[1].substr(comma + 1)), arrays[1].tensor.number(0));
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_THAT(entry.path().string(), Not(HasSubstr(".new")));
}

TEST_F(PredictDigitsTest, MistakesOfTheCommandLineSayWhatToDo) {
  const auto refused = [&](const std::string& arguments, const char* why) {
    const Ended ended = run_program(arguments + " 2>&1");
    EXPECT_EQ(ended.code, 2) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(why));
  };
  const std::string data = " --data " + images_;
  refused("predict " + run_, "--data");
  refused("predict " + run_ + data + " --json", "add --to predictions.tsv");
  refused("predict " + run_ + data + " --to x.txt", ".tsv, .csv, .jsonl, .npy or .npz");
  refused("predict " + run_ + data + " --as logits", "values, class or probability");
  refused("predict " + run_ + data + " --class-axis 2", "no such axis of classes");
  refused("predict " + (folder_ / "none") + data, "neither a run directory nor a checkpoint");
  refused("eval " + run_ + " --checkpoint best", "no best checkpoint");
  const Ended missing =
      run_program("predict " + run_ + " --data images=" + (folder_ / "none") + " 2>&1");
  EXPECT_EQ(missing.code, 4);
  EXPECT_THAT(missing.text, HasSubstr("no such file"));
  EXPECT_THAT(run_program("predict --help").text, HasSubstr("tandem predict runs/"));
  EXPECT_THAT(run_program("eval --help").text, HasSubstr("tandem eval runs/"));
}

}  // namespace
}  // namespace tandem::api
