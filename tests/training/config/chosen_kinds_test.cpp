// Kinds chosen on the command line: what the file says for another kind is left out and noted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/config/run_config.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const char* const with_sgd = R"(model = "m.onnx"
epochs = 2
[optimizer]
kind = "sgd"
)";

RunConfig with_kind(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text, "/folder/train.toml", overrides);
}

std::string refused_kind(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    with_kind(text, overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ChosenKinds, AnOverrideRulesOutOptionsOfTheFile) {
  const std::string momentum =
      std::string(with_sgd) +
      "lr = 0.1\nmomentum = 0.9\ngroups = [ { at = 'a', momentum = 0.5, weight_decay = 0.1 } ]\n";
  const RunConfig adam = with_kind(momentum, {"optimizer.kind=adam"});
  EXPECT_EQ(
      adam.optimizer.base,
      with_kind(std::string(with_sgd) + "lr = 0.1\n", {"optimizer.kind=adam"}).optimizer.base);
  ASSERT_EQ(adam.optimizer.groups.size(), 1u);
  EXPECT_EQ(adam.optimizer.groups[0].options.kind, adam.optimizer.base.kind);
  EXPECT_EQ(adam.optimizer.groups[0].options.number("weight_decay"), 0.1);
  EXPECT_EQ(with_kind(to_toml(adam)), adam);
  std::vector<std::string> notes;
  for (const Diagnostic& note : adam.notes) notes.push_back(to_string(note));
  EXPECT_THAT(notes,
              UnorderedElementsAre(
                  "/folder/train.toml:6:12: optimizer.momentum: not an option of adam, which "
                  "the command line sets: this is left out",
                  AllOf(HasSubstr("train.toml:7:"),
                        HasSubstr("optimizer.groups.0.momentum: not an option of adam"))));
  EXPECT_THAT(with_kind(momentum).notes, IsEmpty());
  EXPECT_THAT(with_kind(momentum, {"optimizer={ kind = 'adam', lr = 0.1 }"}).notes, IsEmpty());

  const std::string steps =
      std::string(with_sgd) + "schedule = { kind = 'step', step_size = '1 epoch', gamma = 0.5 }\n";
  const RunConfig cosine = with_kind(steps, {"optimizer.schedule.kind=cosine"});
  EXPECT_EQ(
      cosine.optimizer.schedule,
      with_kind(std::string(with_sgd) + "schedule = { kind = 'cosine' }\n").optimizer.schedule);
  EXPECT_EQ(cosine.notes.size(), 2u);

  // An option on the command line must belong to the kind that is given there, or to the file's
  // own.
  EXPECT_THAT(refused_kind(momentum, {"optimizer.kind=adam", "optimizer.momentum=0.5"}),
              HasSubstr("command line: optimizer.momentum: not an option of adam"));
  EXPECT_THAT(refused_kind(momentum, {"optimizer.betas=[0.9, 0.99]"}),
              HasSubstr("command line: optimizer.betas: not an option of sgd"));
}

}  // namespace
}  // namespace tandem
