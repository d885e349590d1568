// tandem/error.h can be included first.
#include "tandem/error.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ErrorHeaderTest, IsSelfContained) {
  Diagnostic d;
  d.message = "the learning rate";
  d.file = "train.toml";
  d.line = 3;
  d.column = 6;
  d.path = "optimizer.lr";
  d.expected = "a number";
  d.got = "\"fast\"";
  d.fix = "write lr = 0.1";
  EXPECT_EQ(to_string(d),
            "train.toml:3:6: optimizer.lr: the learning rate: expected a number, got \"fast\" "
            "(write lr = 0.1)");
  const Error error(ErrorKind::usage, {d, d});
  EXPECT_EQ(error.diagnostics().size(), 2u);
  EXPECT_EQ(std::string(error.what()), to_string(d) + "\n" + to_string(d));
}

}  // namespace
}  // namespace tandem
