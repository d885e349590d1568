// What the settings of a Session say about the model is checked when it is made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using testing::cross_entropy;
using testing::digits_model;
using testing::error_of;
using ::testing::HasSubstr;
using testing::training_digits;

TEST(SessionSettings, WhatTheySayAboutTheModelIsCheckedAtOnce) {
  const auto refusal = [](const std::string& setting, const std::string& loss = cross_entropy) {
    return error_of([&] { Session(digits_model, 8, {loss, "optimizer.kind=sgd", setting}); });
  };
  std::string other = cross_entropy;
  other.replace(other.find("\"logits\""), 8, "\"logit\"");
  EXPECT_THAT(refusal("seed=1", other),
              AllOf(HasSubstr("no value \"logit\""), HasSubstr("did you mean \"logits\"?")));
  EXPECT_THAT(refusal("optimizer.groups=[{ at = \"nope\", lr = 1.0 }]"),
              HasSubstr("\"nope\" matches no parameter"));
  EXPECT_THAT(refusal("parameters.freeze=[{ at = \"nope\" }]"),
              HasSubstr("\"nope\" matches no parameter"));
  EXPECT_THAT(refusal("parameters.freeze=[{ at = \"**\" }]"), HasSubstr("nothing to train"));
  Session predicts(digits_model, 8, {"optimizer.kind=sgd"});  // a loss is needed by steps
  EXPECT_EQ(predicts.predict(training_digits().image(0, 2)).at("logits").shape()[0], 2);
}

}  // namespace
}  // namespace tandem::api
