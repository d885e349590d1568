// What the log of a resumed run reports about its configuration.
#include "engine/training/config/changed_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/training/config/run_config.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChangedKeysTest, AreNamedWithBothValues) {
  const char* before = R"(batch_size = 32
model = { file = "/a/model.onnx", bind = { sequence = 128 }, batch_norm = "train" }
[loss]
terms = [ { name = "l2", weight = 0.5 } ]
[data]
drop_last = false
[optimizer]
lr = 0.001
)";
  const char* now = R"([optimizer]
lr = 1e-3
[data]
drop_last = true
[loss]
terms = [
  { name = "l2", weight = 0.25 },
  { name = "ce", weight = 1.0 },
]
[model]
file = '/a/model.onnx'
batch_norm = "inference"
bind.sequence = 256
)";
  EXPECT_THAT(
      changed_keys(before, now),
      ElementsAre("batch_size: 32, now not set", "data.drop_last: false, now true",
                  "loss.terms.0.weight: 0.5, now 0.25", "loss.terms.1.name: not set, now \"ce\"",
                  "loss.terms.1.weight: not set, now 1.0",
                  "model.batch_norm: \"train\", now \"inference\"",
                  "model.bind.sequence: 128, now 256"));
  EXPECT_THAT(changed_keys(before, before), IsEmpty());
  EXPECT_THAT(changed_keys("not [ toml", now), IsEmpty());
}

// Numbers that are no longer written, and keys that older files lack, count as unchanged.
TEST(ChangedKeysTest, AreThoseOfWhatIsResolved) {
  const std::string path = "/run/train.resolved.toml";
  const auto resolved = [&](const std::string& keys) {
    return to_toml(parse_run_config(
        "model = \"/m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"adam\"\n" + keys, path));
  };
  const std::string init = "[[parameters.init]]\nat = \"a\"\nkind = \"zeros\"\n";
  const std::string now = resolved("lr = 0.25\n" + init);
  const std::string before =
      "model = \"/m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"adam\"\n"
      "lr = 0.5\n" +
      init + "value = 0.0\nmean = 0.0\nstd = 1.0\nlow = 0.0\nhigh = 1.0\n";
  EXPECT_THAT(changed_keys(before, now), ::testing::SizeIs(::testing::Gt(5u)));
  EXPECT_THAT(changed_keys(resolved_again(before, path), now),
              ElementsAre("optimizer.lr: 0.5, now 0.25"));
  EXPECT_EQ(resolved_again(now, path), now);
  EXPECT_EQ(resolved_again("not [ toml", path), "not [ toml");
  EXPECT_EQ(resolved_again("steps = 'many'\n", path), "steps = 'many'\n");
}

}  // namespace
}  // namespace tandem
