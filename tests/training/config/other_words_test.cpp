// Paths that lead nowhere, and defaults that a resumed run keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config/run_config.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string head = "model = 'm.onnx'\nsteps = 4\n";
const std::string sgd = "optimizer = { kind = 'sgd' }\n";

TEST(OtherWords, PathsThatLeadNowhereAreToldWithOtherMistakes) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "train.toml";
  const std::string data =
      "data = { kind = 'npz', train = { files = 'gone.npz' }, fields = { x = 'x' } }\n";
  replace_file(path, head + "accumulate = 4\n" + sgd + data);
  try {
    read_run_config(path);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("accumulate: unknown key"), HasSubstr("m.onnx"),
                                    HasSubstr("gone.npz"), HasSubstr("no such file")));
    EXPECT_EQ(error.diagnostics().size(), 3u);
  }
  const std::string sources =
      "data = { kind = 'npz', train = { sources = [ { files = 'gone.npz' } ] } }\n";
  replace_file(path, head + "accumulate = 4\n" + sgd + sources);
  try {
    read_run_config(path);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.train.sources.0.files: no such file"));
    EXPECT_EQ(error.diagnostics().size(), 3u);
  }
  replace_file(path, head + sgd + data);
  EXPECT_NO_THROW(read_run_config(path)) << "whoever opens them says more";
}

}  // namespace
}  // namespace tandem
