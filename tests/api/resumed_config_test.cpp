// Command lines of several starts of a run: later ones override earlier ones. How runs continue:
// tests/expected/commands/resumed_start.txt and resumed_length.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config/resume/resumed_config.h"
#include "engine/formats/files.h"
#include "engine/optimizers/optimizer.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using ::testing::HasSubstr;

// A choice on the new command line drops options of the first one, as it does those of a file.
TEST(ResumedConfig, LaterCommandLinesOverrideEarlierOnes) {
  const tandem::testing::TemporaryFolder folder;
  write_file(folder / "m.onnx", "");
  write_file(folder / "train.toml",
             "model = \"m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"adam\"\nlr = 0.1\n");
  StartRecord started;
  started.commands = {{{"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.lr=0.2"}, "/"},
                      {{"optimizer.lr=0.3"}, "/"}};
  const auto read = [&](const std::vector<std::string>& now) {
    return read_resumed_config(folder / "train.toml", started, MovedPaths(), now).optimizer.base;
  };
  EXPECT_EQ(read({}).lr, 0.3);
  EXPECT_EQ(read({}).number("momentum"), 0.9);
  EXPECT_EQ(read({"optimizer.lr=0.4"}).lr, 0.4);
  EXPECT_EQ(read({"optimizer.kind=adamw"}).kind->name, "adamw");  // adamw has no momentum
  started.commands.push_back({{"optimizer.kind=adamw"}, "/"});
  EXPECT_EQ(read({}).kind->name, "adamw");
  EXPECT_EQ(read({}).lr, 0.3);
  started.commands = {{{"optimizer.lrr=1"}, "/"}};
  EXPECT_THAT(error_of([&] { read({}); }), HasSubstr("command line that started the run"));
}

}  // namespace
}  // namespace tandem::api
