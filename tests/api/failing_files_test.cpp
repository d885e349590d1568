// The `tandem` program where files fail by a signal: truncated while mapped, or above a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "tests/api/trained_runs.h"
#include "tests/api/waiting_program.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FailingFiles : public ::testing::Test {
 protected:
  FailingFiles() { write_clicks(folder_); }
  /// The folder of the only table, or "".
  std::string table() const {
    std::string path = folder_ / "runs/data";
    for (int i = 0; i < 2; ++i) {
      if (!is_directory(path) || list_directory(path).size() != 1) return "";
      path += "/" + list_directory(path)[0];
    }
    return path;
  }

  std::string run_name() const {
    for (const std::string& name : list_directory(folder_ / "runs")) {
      if (name != "data") return name;
    }
    return "";
  }

  TemporaryFolder folder_;
  const std::string config_ = folder_ / "train.toml", said_ = folder_ / "said";
};

TEST_F(FailingFiles, AnArrayThatIsCutInUseIsNamed) {
  WaitingProgram train({"train", config_, "epochs=1000000", "checkpoint.every=5 epochs",
                        "eval.every=1000000 epochs", "--run-dir", folder_ / "run"},
                       "", folder_ / "", said_);
  const auto is_training = [&] { return path_exists(folder_ / "run/checkpoints/step-00000050"); };
  const int code = train.end_by([&] { truncate_file(table() + "/train-0.0", 0); }, is_training);
  EXPECT_EQ(code, 4);
  EXPECT_THAT(read_file(said_), HasSubstr("tandem: " + table() + "/train-0.0: the file was cut"));
}

TEST_F(FailingFiles, AboveTheLimitOfTheShellNothingIsLeft) {
  const Ended ended =
      run_program("data prepare " + config_ + " 2> " + said_, "ulimit -f 8; ");  // 4 KiB
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(read_file(said_), HasSubstr("cannot write: File too large (raise the limit of a "
                                          "file's size (ulimit -f), or name another folder: "
                                          "data.cache = "));
  EXPECT_THAT(list_directory(folder_ / ("runs/data/" + list_directory(folder_ / "runs/data")[0])),
              IsEmpty());
}

TEST_F(FailingFiles, RowsThatEvalEncodesMayLieElsewhere) {
  ASSERT_EQ(run_program("train " + config_ + " 2> /dev/null").code, 0);
  const Ended ended = run_program("eval " + (folder_ / "runs/") + run_name() + " 2> " + said_,
                                  "ulimit -f 8; TMPDIR=" + (folder_ / "") + " ");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(read_file(said_), HasSubstr(", or name another folder for the encoded rows: TMPDIR"));
}

}  // namespace
}  // namespace tandem::api
