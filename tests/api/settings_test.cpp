// Which words of a command line are keys. Where they may be, and runs whose project was moved:
// tests/expected/commands/moved_project.txt.
#include <gtest/gtest.h>

#include "api/program/keys.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

TEST(IsSetting, TellsKeysFromArraysAndFiles) {
  const tandem::testing::TemporaryFolder folder;
  write_file(folder / "x.npz", "");
  for (const std::string key : {"model.file=x", "policy=p.toml", "model=m.onnx", "batch_size=4",
                                "eval.metrics=[\"auc\"]", "optimizer.groups.0.lr=0.1"})
    EXPECT_TRUE(is_setting(key)) << key;
  for (const std::string& file :
       {std::string("rows.tsv"), "images=" + folder / "x.npz", std::string("-"),
        "data=" + folder / "x.npz", "seed=" + folder / "x.npz", "loss=" + folder / "x.npz",
        folder / "x.npz"})
    EXPECT_FALSE(is_setting(file)) << file;
}

}  // namespace
}  // namespace tandem::api
