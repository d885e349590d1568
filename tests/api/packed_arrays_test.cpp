// Archives whose contents exceed the machine's memory: every command only reads what fields name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/arrays/npy_array.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PackedArrays : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!counts_allocations()) GTEST_SKIP() << "sanitizers take addresses of their own";
    const std::string digits = source_folder() + "/models/digits/";
    std::vector<ZipMember> members;
    for (const NamedTensor& array : read_npz(digits + "digits_test.npz")) {
      const std::string content(static_cast<const char*>(array.tensor.data()),
                                array.tensor.bytes());
      members.push_back(packed(array.name + ".npy", npy_header(array.tensor.type()) + content));
    }
    members.push_back(bomb("bomb.npy"));
    write_file(folder_ / "digits.npz", zip_archive(members));
    configure("");
  }
  void configure(const std::string& field) {
    write_file(folder_ / "train.toml",
               "model = \"" + source_folder() + R"toml(/models/digits/model.onnx"
batch_size = 32
steps = 2
threads = 2
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr   = 1e-3
[data]
kind = "npz"
[data.train]
files = [ "digits.npz" ]
[data.eval]
files = [ "digits.npz" ]
[data.fields]
image  = { from = "images", as = [ "reshape(1, 8, 8)", "scale(1/16)" ] }
labels = "labels"
)toml" + field);
  }
  /// Runs with 1.5 GiB of addresses; the result includes standard error.
  Ended run(const std::string& arguments) {
    return run_program(arguments + " 2>&1", "OMP_WAIT_POLICY=passive; ulimit -v 1572864; ");
  }
  const TemporaryFolder folder_;
};

TEST_F(PackedArrays, EveryCommandReadsWhatFieldsName) {
  const std::string toml = folder_ / "train.toml", to = folder_ / "run",
                    npz = folder_ / "digits.npz";
  for (const std::string& arguments :
       {"data check " + toml, "train " + toml + " --run-dir " + to, "eval " + to,
        "eval " + to + " --data " + npz,
        "predict " + to + " --data " + npz + " --to " + to + ".npz"}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 0) << arguments << "\n" << ended.text;
  }
  EXPECT_EQ(read_npz(to + ".npz").at(0).tensor.shape()[0], 360);
}

TEST_F(PackedArrays, AFieldThatIsTooLargeIsRefusedWithItsBytes) {
  const std::string toml = folder_ / "train.toml", to = folder_ / "run",
                    npz = folder_ / "digits.npz";
  ASSERT_EQ(run("train " + toml + " --run-dir " + to).code, 0);
  configure("bomb = \"bomb\"\n");
  for (const std::string& arguments : {"data check " + toml, "train " + toml}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, static_cast<int>(ErrorKind::does_not_fit)) << arguments;
    EXPECT_THAT(ended.text, AllOf(HasSubstr("digits.npz: bomb: "), HasSubstr("float32[536870912]"),
                                  HasSubstr("2147483648"), Not(HasSubstr("batch"))))
        << arguments;
  }
  // For predictions and evaluations the archive contains the run's own array.
  write_file(npz, zip_archive({bomb("images.npy"), bomb("labels.npy")}));
  for (const std::string& arguments :
       {"predict " + to + " --data " + npz, "eval " + to + " --data " + npz}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, static_cast<int>(ErrorKind::does_not_fit)) << arguments;
    EXPECT_THAT(ended.text, AllOf(HasSubstr("digits.npz: "), HasSubstr("float32[536870912]"),
                                  Not(HasSubstr("batch"))))
        << arguments;
  }
}

}  // namespace
}  // namespace tandem
