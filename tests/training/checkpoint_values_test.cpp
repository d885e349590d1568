// Checkpoints with correct hashes and wrong values: none is believed, none is lost.
#include <filesystem>
#include <fstream>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/edited_checkpoint.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using testing::EditedCheckpoint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Trained;
using OrderedJson = EditedCheckpoint::Json;
using Pointer = OrderedJson::json_pointer;

/// Texts of exceptions that no user should see.
constexpr const char* library_texts[] = {
    "json.exception", "filesystem error", "std::",    "basic_string",
    "vector::",       "map::at",          "bad_alloc"};

void expect_clean(const std::string& text, const std::string& where) {
  for (const char* words : library_texts) {
    EXPECT_EQ(text.find(words), std::string::npos) << where << ": " << text;
  }
}

/// A run that stopped at step 5 of 6, with checkpoints of steps 4 and 5.
class CheckpointValues : public testing::TrainingRun {
 protected:
  void SetUp() override {
    eval_ = testing::small_data(7, 9);
    whole_ = run(keys_);
    stopped_ = run(keys_, 5).result.run_dir;
    ASSERT_THAT(list_checkpoints(stopped_ + "/checkpoints"),
                ElementsAre("step-00000002", "step-00000004", "step-00000005"));
  }
  EditedCheckpoint newest() const {
    return EditedCheckpoint(stopped_ + "/checkpoints/step-00000005");
  }
  /// The stopped run with this newest checkpoint.
  std::string with(const EditedCheckpoint& checkpoint, bool as_it_is = false) {
    const std::string copy = folder_ / ("copy-" + std::to_string(++copies_));
    fs::copy(stopped_, copy, fs::copy_options::recursive);
    checkpoint.write(copy + "/checkpoints/step-00000005", as_it_is);
    return copy;
  }
  std::string with(const std::string& file, const std::string& place, const OrderedJson& value) {
    EditedCheckpoint checkpoint = newest();
    set(checkpoint.json(file), Pointer(place), value);
    return with(checkpoint, file == "manifest.json");
  }
  static void set(OrderedJson& json, const Pointer& place, const OrderedJson& value) {
    if (value.is_discarded()) {
      EditedCheckpoint::remove(json, place);
    } else {
      json[place] = value;
    }
  }
  void expect_as_uninterrupted(const Trained& resumed, const std::string& what) {
    EXPECT_EQ(testing::difference(resumed.training->states(), whole_.training->states()), "")
        << what;
  }
  /// Resumes from step 4, and gives the reason why not from step 5.
  void expect_set_aside(const std::string& run_dir, const std::string& reason) {
    const Trained resumed = run(keys_, 0, run_dir);
    EXPECT_THAT(resumed.messages,
                Contains(AllOf(HasSubstr("checkpoint step-00000005 is broken"), HasSubstr(reason))))
        << ::testing::PrintToString(resumed.messages);
    for (const std::string& message : resumed.messages) expect_clean(message, reason);
    EXPECT_THAT(resumed.messages, Contains("resumed at step 4"));
    EXPECT_TRUE(fs::exists(run_dir + "/checkpoints/broken-step-00000005"));
    expect_as_uninterrupted(resumed, reason);
  }
  static nlohmann::json summary_of(const std::string& run_dir) {
    nlohmann::json summary = nlohmann::json::parse(read_file(run_dir + "/summary.json"));
    summary.erase("wall");
    return summary;
  }
  /// All files below a folder with what they hold.
  static std::map<std::string, std::string> content_of(const std::string& folder) {
    std::map<std::string, std::string> content;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      content[entry.path().string()] = entry.is_directory() ? "" : read_file(entry.path().string());
    }
    return content;
  }

  const std::vector<std::string> keys_{"optimizer.momentum=0.9",
                                       "eval.every=\"2 steps\"",
                                       "eval.metrics=[\"accuracy\", \"loss\"]",
                                       "eval.best=loss",
                                       "checkpoint.every=\"2 steps\"",
                                       "checkpoint.keep=0",
                                       "parameters.freeze=[{at=\"fc1\", until=\"2 steps\"}]"};
  Trained whole_;
  std::string stopped_;
  int copies_ = 0;
};

TEST_F(CheckpointValues, NumbersThatNoRunHasWrittenSetItAside) {
  const std::uint64_t top = std::uint64_t{1} << 63;
  const std::vector<std::tuple<const char*, OrderedJson, const char*>> cases{
      {"/data/epoch", -1, "state.json: data.epoch: "},
      {"/data/epoch", top, "state.json: data.epoch: "},
      {"/data/epoch", 6, "data.epoch: more epochs than steps: expected at most 5, got 6"},
      {"/data/sample", -1, "expected an integer from 0 to 9223372036854775807, got -1"},
      {"/data/sample", 0.5, "state.json: data.sample: "},
      {"/step", -1, "state.json: step: "},
      {"/step", top, "state.json: step: "},
      {"/step", 4,
       "data.sample: not the position after the batches of the run: expected 8, got 16"},
      {"/step", "5", "got \"5\""},
      {"/samples", 4,
       "samples: not a possible number of samples after this many steps: expected at least 17, got "
       "4"},
      {"/samples", 39, "samples: not the samples of the run's batches: expected 38, got 39"},
      {"/data/sample", 15,
       "data.sample: not the position after the batches of the run: expected 16"},
      {"/data/epoch", 0,
       "data.epoch: not the position after the batches of the run: expected 1, got 0"},
      {"/batch_size", 9, "batches: ends with another batch_size: expected 9"},
      {"/batches/0/batch_size", 7, "batches: ends with another batch_size: expected 8"},
      {"/batches/0/samples", 23, "samples: not the samples of the run's batches: expected 39"},
      {"/batches/0/samples", 0, "state.json: batches[0].samples: "},
      {"/batches/0/drop_last", true, "not the position after the batches of the run"},
      {"/batches/0/from_step", 1, "batches[0].from_step: "},
      {"/batches", OrderedJson::array(), "batches: the batch size of the run is missing"},
      {"/evaluated", 6, "state.json: evaluated: "},
      {"/samples", ~std::uint64_t{0}, "state.json: samples: "},
      {"/seed", -1, "state.json: seed: "},
      {"/held_out", 1.0, "held_out: all samples are held out"},
      {"/held_out", -0.5, "expected a number from 0 to 1, got -0.5"},
      {"/batch_size", 0, "state.json: batch_size: "},
      {"/best/step", 6, "best.step: not a value that can be here: expected an integer from 1 to 4"},
      {"/best/step", 0, "state.json: best.step: "},
      {"/best/value", nullptr, "state.json: best.value: "},
      {"/best/better", "most", "expected larger or smaller, got \"most\""},
      {"/best/metric", std::string("lo\0ss", 5), "without control characters"},
      {"/evaluations_without_better", -1, "state.json: evaluations_without_better: "},
      {"/evaluations_without_better", 1, "expected an integer from 0 to 0, got 1"},
      {"/finished", "yes", "finished: not a value that can be here: expected true or false"},
      {"/optimizers/fc1.weight", 3, "state.json: optimizers.fc1.weight: "},
      {"/thawed", OrderedJson::array(), "thawed: not a value that can be here: expected an object"},
      {"/vocabularies", {{"vocabulary.x.tsv", "12"}}, "expected 64 hexadecimal digits, got \"12\""},
      {"/format", nullptr, "state.json: format: not the number of a format: expected 2"},
      {"/format", "2", "state.json: format: "},
      {"/format", OrderedJson(OrderedJson::value_t::discarded),
       "state.json: format: the file lacks this value"},
  };
  for (const auto& [place, value, reason] : cases)
    expect_set_aside(with("state.json", place, value), reason);
}

TEST_F(CheckpointValues, AnotherFormatIsRefusedAndStays) {
  for (const char* file : {"state.json", "manifest.json"}) {
    // 2^64 is a number of another type to the parser.
    for (const OrderedJson& format :
         std::vector<OrderedJson>{0, 1, 3, -1, 1.5, ~std::uint64_t{0}, std::ldexp(1.0, 64)}) {
      const std::string run_dir = with(file, "/format", format);
      const auto before = content_of(run_dir);
      try {
        run(keys_, 0, run_dir);
        ADD_FAILURE() << "no error: " << file << " " << format;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr(std::string(file) + ": format: another version of Tandem"),
                          HasSubstr("expected format 2, got format " + format.dump()),
                          HasSubstr("moved elsewhere, to use the one before it")));
      }
      EXPECT_EQ(content_of(run_dir), before);
      fs::remove_all(run_dir + "/checkpoints/step-00000005");  // as the message says
      expect_as_uninterrupted(run(keys_, 0, run_dir), file);
    }
  }
}

TEST_F(CheckpointValues, AnotherFormatNeedsNoFilesThatThisProgramKnows) {
  const std::string run_dir = with("manifest.json", "/format", 3);
  std::ofstream(run_dir + "/checkpoints/step-00000005/manifest.json") << R"({"format": 3})";
  EXPECT_THAT(testing::error_text([&] { run(keys_, 0, run_dir); }), HasSubstr("another version"));
}

TEST_F(CheckpointValues, APlaceBehindTheDataIsRefusedAndStays) {
  for (const int sample : {22, 1'000'000}) {  // one step of the rest, four of 4 samples
    EditedCheckpoint checkpoint = newest();
    OrderedJson& state = checkpoint.json("state.json");
    state["data"] = {{"epoch", 0}, {"sample", sample}};
    state["samples"] = sample;
    state["batch_size"] = sample - 16;
    state["batches"] = OrderedJson::array();
    for (const auto& [from, size] : {std::pair{0, 4}, std::pair{4, sample - 16}}) {
      state["batches"].push_back({{"from_step", from},
                                  {"batch_size", size},
                                  {"samples", 2'000'000},
                                  {"drop_last", false}});
    }
    const std::string run_dir = with(checkpoint);
    const auto before = content_of(run_dir);
    try {
      run(keys_, 0, run_dir);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("data.sample: the run stopped after the last sample"),
                        HasSubstr("expected a sample below 22, got " + std::to_string(sample))));
    }
    EXPECT_EQ(content_of(run_dir), before);
  }
}

// Step 5 with batches of 8 ends after 16 samples of the second epoch of 22.
TEST_F(CheckpointValues, APlaceBeforeTheSamplesThatWereSeenIsRefusedAndStays) {
  const std::string run_dir = with(newest());
  const auto before = content_of(run_dir);
  train_ = testing::small_data(20, 3);
  EXPECT_THAT(testing::error_text([&] { run(keys_, 0, run_dir); }),
              AllOf(HasSubstr("samples: the run has seen more samples than this training data"),
                    HasSubstr("expected at most 36: 1 epochs of 20 and 16, got 38")));
  EXPECT_EQ(content_of(run_dir), before);
}

// How the run continued is not believed if it contradicts the configuration or the log.
TEST_F(CheckpointValues, ValuesThatConfigurationOrLogContradictAreRefusedAndStay) {
  EditedCheckpoint checkpoint = newest();
  const double best = checkpoint.json("state.json")["best"]["value"];
  const std::vector<std::tuple<const char*, OrderedJson, const char*>> cases{
      {"/best/value", best / 2, "best.value: metrics.jsonl has another loss at step "},
      {"/best/value", best + 1e-9, "best.value: metrics.jsonl has another loss at step "},
      {"/best/better", "larger", "best.better: not the better direction of loss"},
      {"/thawed/fc1 until 2 steps", false, "thawed.fc1 until 2 steps: not possible after 5 steps"},
      {"/thawed/fc1 until 9 steps", true, "thawed.fc1 until 9 steps: not possible after 5 steps"},
  };
  for (const auto& [place, value, reason] : cases) {
    std::vector<std::string> keys = keys_;
    if (std::string(place).ends_with("9 steps"))
      keys.push_back("parameters.freeze=[{at=\"fc1\", until=\"9 steps\"}]");
    const std::string run_dir = with("state.json", place, value);
    const auto before = content_of(run_dir);
    try {
      run(keys, 0, run_dir);
      ADD_FAILURE() << "no error: " << place << " = " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_THAT(error.what(), HasSubstr(std::string("step-00000005/state.json: ") + reason));
    }
    EXPECT_EQ(content_of(run_dir), before);
  }
  checkpoint.json("state.json")["evaluated"] = 5;
  checkpoint.json("state.json")["evaluations_without_better"] = 1;
  checkpoint.json("state.json")["best"]["step"] = 2;
  EXPECT_THAT(testing::error_text([&] { run(keys_, 0, with(checkpoint)); }),
              HasSubstr("best.value: metrics.jsonl has another loss at step 2"));
  // What the log does not have is believed.
  const std::string run_dir = with("state.json", "/best/value", best / 2);
  fs::remove(run_dir + "/metrics.jsonl");
  expect_as_uninterrupted(run(keys_, 0, run_dir), "without a log");
}

// EIO, which the system reports for its own memory, and a disk for a sector.
TEST_F(CheckpointValues, WhatCannotBeReadIsNotSetAside) {
  for (const char* file : {"/model.safetensors", "/state.json", "/manifest.json"}) {
    const std::string run_dir = with(newest());
    const std::string path = run_dir + "/checkpoints/step-00000005" + file;
    fs::rename(path, path + ".kept");
    fs::create_symlink("/proc/self/mem", path);
    try {
      run(keys_, 0, run_dir);
      ADD_FAILURE() << "no error: " << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::runtime) << error.what();
      EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("Input/output error")));
    }
    EXPECT_EQ(testing::metrics_of(run_dir).size(), testing::metrics_of(stopped_).size());
    fs::rename(path + ".kept", path);  // the disk is read again
    expect_as_uninterrupted(run(keys_, 0, run_dir), file);
  }
}

TEST_F(CheckpointValues, MoreEpochsThanCanBeCountedAreRefused) {
  constexpr std::uint64_t step = 1'000'000'000'000'000;
  EditedCheckpoint checkpoint = newest();
  OrderedJson& state = checkpoint.json("state.json");
  state["step"] = step;
  state["data"] = {{"epoch", step}, {"sample", 0}};
  state["samples"] = step;
  state["batches"][0]["samples"] = 1;  // each step is an epoch
  const std::string run_dir = with(newest());
  checkpoint.write(run_dir + "/checkpoints/" + checkpoint_name(step));
  // That many steps are possible with these data; with more samples an epoch they are not.
  EXPECT_EQ(run(keys_, 0, run_dir).result.steps, step);
  train_ = testing::small_data(40'000, 3);
  const std::vector<std::string> one_by_one{"batch_size=1", "steps=6", "parameters.freeze=[]"};
  EXPECT_THAT(testing::error_text([&] { run(one_by_one, 0, run_dir); }),
              HasSubstr("data.epoch: more epochs of this data than a run can make"));
}

TEST_F(CheckpointValues, ListsOfFilesAreChecked) {
  EditedCheckpoint elsewhere = newest();
  OrderedJson& files = elsewhere.json("manifest.json")["files"];
  files[std::string("a\0b", 3)] = files["state.json"];
  expect_set_aside(with(elsewhere, true), "lists a file elsewhere");
  const OrderedJson rows{
      {"part", "model"}, {"tensor", "fc1.weight"}, {"first_row", 0}, {"rows", 8}};
  EditedCheckpoint of_rows = newest();
  of_rows.json("manifest.json")["files"]["state.json"].update(rows);
  expect_set_aside(with(of_rows, true), "not a file of rows");
  expect_set_aside(with("manifest.json", "/files/state.json/bytes", -1), "files.state.json.bytes");
  expect_set_aside(with("manifest.json", "/files/state.json/sha256", "no hash"),
                   "64 hexadecimal digits");
}

TEST_F(CheckpointValues, ATensorOfTwoFilesIsNoTensor) {
  EditedCheckpoint checkpoint = newest();
  OrderedJson& header = checkpoint.json("optimizer.safetensors");
  OrderedJson renamed = OrderedJson::object();
  for (const auto& [name, entry] : header.items())
    renamed[name == "fc1.weight/momentum_buffer" ? "fc1.weight" : name] = entry;
  ASSERT_TRUE(renamed.contains("fc1.weight"));
  header = renamed;
  expect_set_aside(with(checkpoint), "fc1.weight: two tensors have this name");
}

TEST_F(CheckpointValues, FoldersOfOtherNamesAreNoCheckpoints) {
  const std::string run_dir = with(newest()), checkpoints = run_dir + "/checkpoints/";
  for (const char* name : {"step-00000005-copy", "step-", "step-9", "step-0000000x",
                           "step--0000009", "step-00000009 "}) {
    fs::copy(checkpoints + "step-00000005", checkpoints + name, fs::copy_options::recursive);
  }
  EXPECT_THAT(list_checkpoints(checkpoints),
              ElementsAre("step-00000002", "step-00000004", "step-00000005"));
  const Trained resumed = run(keys_, 0, run_dir);
  EXPECT_THAT(resumed.messages, Contains("resumed at step 5"));
  EXPECT_TRUE(fs::exists(checkpoints + "step-00000005-copy"));
}

TEST_F(CheckpointValues, ManyEntriesAreRead) {
  constexpr int entries = 300'000;
  EditedCheckpoint checkpoint = newest();
  OrderedJson::object_t& optimizers =
      checkpoint.json("state.json")["optimizers"].get_ref<OrderedJson::object_t&>();
  for (int i = 0; i < entries; ++i)  // appended without looking for the name
    optimizers.Container::emplace_back("other." + std::to_string(i), "sgd");
  const std::string run_dir = with(checkpoint);
  EXPECT_GT(read_checkpoint(run_dir + "/checkpoints/step-00000005").position.optimizers.size(),
            static_cast<std::size_t>(entries));
  expect_as_uninterrupted(run(keys_, 0, run_dir), "many entries");
}

TEST_F(CheckpointValues, EveryValueIsCheckedOrChangesNothing) {
  const std::vector<std::string> files{"state.json", "manifest.json", "model.safetensors",
                                       "optimizer.safetensors"};
  const std::string scratch = folder_ / "step-00000005";
  int refused = 0, resumed = 0;
  for (const std::string& file : files) {
    const auto places = EditedCheckpoint::places(newest().json(file));
    ASSERT_GT(places.size(), 10u) << file;
    for (const Pointer& place : places) {
      auto values = testing::hostile_values();
      for (auto& near : testing::near_values(newest().json(file)[place]))
        values.push_back(std::move(near));
      for (const auto& [name, value] : values) {
        const std::string what = file + place.to_string() + " = " + name;
        EditedCheckpoint checkpoint = newest();
        set(checkpoint.json(file), place, value);
        const bool as_it_is = file == "manifest.json";
        checkpoint.write(scratch, as_it_is);
        try {
          read_checkpoint(scratch);
        } catch (const Error& error) {
          const bool is_format = place.to_string() == "/format";
          EXPECT_TRUE(error.kind() == ErrorKind::data ||
                      (is_format && error.kind() == ErrorKind::usage))
              << what << ": " << error.what();
          EXPECT_THAT(error.what(), HasSubstr(scratch)) << what;
          expect_clean(error.what(), what);
          ++refused;
          continue;
        }
        const std::string run_dir = with(checkpoint, as_it_is);
        try {
          const Trained again = run(keys_, 0, run_dir);
          expect_as_uninterrupted(again, what);
          EXPECT_EQ(summary_of(run_dir), summary_of(whole_.result.run_dir)) << what;
          ++resumed;
        } catch (const Error& error) {
          EXPECT_TRUE(error.kind() == ErrorKind::usage || error.kind() == ErrorKind::data)
              << what << ": " << error.what();
          EXPECT_TRUE(fs::exists(run_dir + "/checkpoints/step-00000005")) << what;
          expect_clean(error.what(), what);
        }
        fs::remove_all(run_dir);
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(resumed, 20);
}

}  // namespace
}  // namespace tandem
