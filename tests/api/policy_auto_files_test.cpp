// Which files `policy auto --to` writes: another one is refused before the search, an earlier
// result stays where the new one differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(PolicyAutoFiles, AnotherFileIsRefusedBeforeTheSearchAndAnotherListAfterIt) {
  const testing::TemporaryFolder folder;
  const auto text_of = [](const std::string& path) { return read_file(path, 10000); };
  replace_file(folder / "mine.toml", "policy = 1\n");
  PolicyOptions options;
  options.config = testing::digits + "train.toml";
  options.policy = folder / "mine.toml";
  options.devices = {"gpu=emulated:0,memory=256MiB"};
  PolicyAutoOptions automatic;
  automatic.most_plans = 60;
  int searched = 0;
  automatic.on_progress = [&](int, int, double) { ++searched; };
  const auto write = [&](const std::string& to) {
    automatic.to = folder / to;
    policy_auto(options, automatic);
  };

  replace_file(folder / "train.toml", "model = \"m.onnx\"\n");
  replace_file(folder / "other.toml", "policy = 1\nrules = [ { at = \"**\", on = \"cpu\" } ]\n");
  for (const char* taken : {"train.toml", "other.toml"})
    EXPECT_THAT(error_of([&] { write(taken); }), HasSubstr("there is another file of this name"));
  EXPECT_THAT(error_of([&] { write("no_folder/new.toml"); }, ErrorKind::runtime),
              HasSubstr("no_folder"));
  EXPECT_EQ(searched, 0);

  write("new.toml");
  EXPECT_GT(searched, 0);
  const std::string found = text_of(folder / "new.toml");
  write("new.toml");  // the same once more
  EXPECT_EQ(text_of(folder / "new.toml"), found);

  const std::string older = "policy = 1\nauto = [\n  { at = \"fc1.**\", on = \"cpu\" },\n]\n";
  replace_file(folder / "new.toml", older);
  const std::string message = error_of([&] { write("new.toml"); });
  EXPECT_EQ(text_of(folder / "new.toml"), older);
  const std::string says = "the policy that was found is in ";
  ASSERT_THAT(message, HasSubstr(says));
  std::string beside = message.substr(message.find(says) + says.size());
  beside.erase(beside.find(')'));
  EXPECT_EQ(text_of(beside), found);
}

}  // namespace
}  // namespace tandem::api
