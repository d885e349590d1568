// Paths that lead nowhere, and defaults that a resumed run keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/training/checkpoints/kept_defaults.h"
#include "engine/training/config/run_config.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(KeptDefaults, AResumedRunKeepsItsFormOfEpsilon) {
  const std::string file = "/folder/train.toml";
  const std::string lazy = head + "[optimizer]\nkind = 'lazy_adam'\n";
  const std::string groups =
      head + "[optimizer]\nkind = 'sgd'\ngroups = [ { at = 'a', kind = 'lazy_adam' } ]\n";
  EXPECT_EQ(parse_run_config(lazy, file).optimizer.base.text("epsilon_form"), "onnx");
  const auto resolved = [&](const std::string& text, const std::vector<std::string>& overrides) {
    return to_toml(parse_run_config(text, file, overrides));
  };
  const std::string old = resolved(lazy, {"optimizer.epsilon_form=pytorch"}),
                    old_groups = resolved(groups, {"optimizer.groups.0.epsilon_form=pytorch"});
  EXPECT_THAT(kept_defaults(lazy, file, {}, old), ElementsAre("optimizer.epsilon_form=pytorch"));
  EXPECT_THAT(kept_defaults(groups, file, {}, old_groups),
              ElementsAre("optimizer.groups.0.epsilon_form=pytorch"));
  EXPECT_THAT(kept_defaults(lazy, file, {}, resolved(lazy, {})), IsEmpty());
  EXPECT_THAT(kept_defaults(lazy, file, {"optimizer.epsilon_form=onnx"}, old), IsEmpty());
  EXPECT_THAT(kept_defaults(lazy + "epsilon_form = 'onnx'\n", file, {}, old), IsEmpty());
  const std::string kept = resolved(lazy, kept_defaults(lazy, file, {}, old));
  EXPECT_EQ(kept, old);
  EXPECT_THAT(kept_defaults("no toml", file, {}, old), IsEmpty());
}

}  // namespace
}  // namespace tandem
