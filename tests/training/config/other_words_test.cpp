// Words of other programs in a train.toml; and all its errors are reported at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/training/config/run_config.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string head = "model = 'm.onnx'\nsteps = 4\n";
const std::string sgd = "optimizer = { kind = 'sgd' }\n";

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_run_config(text, "/folder/train.toml", overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OtherWords, LeadToKeys) {
  const std::pair<const char*, const char*> words[] = {
      {"early_stopping = 3", "`eval.patience`"},
      {"accumulate = 4", "`micro_batch`"},
      {"gradient_accumulation_steps = 4", "`micro_batch`"},
      {"parallel_mode = 'data'", "docs/processes.md"},
      {"lr_scheduler = 'cosine'", "`optimizer.schedule`"}};
  for (const auto& [line, key] : words)
    EXPECT_THAT(refusal(head + line + "\n" + sgd), HasSubstr(key)) << line;
}

TEST(OtherWords, ValuesInCapitalsOrCutShort) {
  EXPECT_THAT(refusal(head + "optimizer = { kind = 'adamW' }\n"),
              HasSubstr("did you mean \"adamw\"?"));
  EXPECT_THAT(refusal(head + sgd + "eval = { metrics = ['acc'] }\n"),
              HasSubstr("did you mean \"accuracy\"?"));
  EXPECT_THAT(refusal(head + "optimizer = { kind = 'ada' }\n"), Not(HasSubstr("\"adamw\"?")));
}

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

TEST(OtherWords, AnEmptyPolicyTakesBackTheFiles) {
  const std::string text = head + sgd + "policy = 'p.toml'\n";
  EXPECT_EQ(parse_run_config(text, "/folder/train.toml").policy, "/folder/p.toml");
  for (const char* nothing : {"policy=", "policy=\"\""})
    EXPECT_EQ(parse_run_config(text, "/folder/train.toml", {nothing}).policy, "") << nothing;
  EXPECT_THAT(refusal(head + sgd + "run_dir = ''\n"), HasSubstr("an empty path"));
}

}  // namespace
}  // namespace tandem
