// What the log of a resumed run reports about its configuration.
#include "engine/config/keys/changed_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tandem
