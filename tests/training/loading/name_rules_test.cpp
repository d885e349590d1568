// Patterns of names, and the order of prefixes and patterns.
#include "engine/formats/weights/name_rules.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(NamePattern, WildcardsStandForWhatTheyMatched) {
  struct Case {
    const char *from, *to, *name, *expected;  // "": no match
  };
  const Case cases[] = {
      {"model.**", "**", "model.encoder.fc.weight", "encoder.fc.weight"},
      {"model.**", "**", "models.fc.weight", ""},
      {"model.**", "m.**", "model", "m"},
      {"encoder.layer.*.x", "layers.*.x", "encoder.layer.11.x", "layers.11.x"},
      {"encoder.layer.*.x", "layers.*.x", "encoder.layer.11.0.x", ""},
      {"encoder.layer.*.**", "layers.*.**", "encoder.layer.3.a.b", "layers.3.a.b"},
      {"**.gamma", "**.weight", "a.b.gamma", "a.b.weight"},
      {"**.gamma", "**.weight", "gamma", "weight"},
      {"**.x.**.y", "**.**.y", "a.x.b.x.c.y", "a.x.b.c.y"},  // the first takes most
      {"layer*_*.w", "block*.part*.w", "layer1_2_3.w", "block1_2.part3.w"},
      {"h.*.c_attn.*", "h.*.attn.*", "h.0.c_attn.bias", "h.0.attn.bias"},
      {"fc1.weight", "onnx::MatMul_12", "fc1.weight", "onnx::MatMul_12"},
      {"*", "a.*", "weight", "a.weight"},
      {"*", "a.*", "fc.weight", ""},
      {"**", "a.**", "fc.weight", "a.fc.weight"},
      {"a.w?", "b", "a.wx", ""},  // no wildcard
  };
  for (const Case& c : cases) {
    EXPECT_EQ(name_pattern_problem(c.from, c.to), "") << c.from;
    EXPECT_EQ(NamePattern(c.from, c.to).applied(c.name), c.expected) << c.from << " " << c.name;
  }
}

// A pattern that would take forever by trial: 2^40 ways.
TEST(NamePattern, TakesTimeOfPatternTimesName) {
  std::string pattern, parts;
  for (int i = 0; i < 40; ++i) pattern += "**.a.";
  for (int i = 0; i < 200; ++i) parts += "a.";
  EXPECT_EQ(NamePattern(pattern + "b", pattern + "b").applied(parts + "c"), "");
  EXPECT_EQ(NamePattern(pattern + "b", pattern + "b").applied(parts + "b"), parts + "b");
  const std::string text(300, 'a');
  std::string in_a_part;
  for (int i = 0; i < 40; ++i) in_a_part += "*a";
  EXPECT_EQ(NamePattern(in_a_part + "b", in_a_part + "b").applied(text), "");
  EXPECT_EQ(NamePattern(in_a_part, in_a_part).applied(text), text);
}

TEST(NamePattern, PairsThatMeanNothingAreTold) {
  const std::string wildcards =
      "the new name needs the wildcards of the old one, in the same order";
  EXPECT_EQ(name_pattern_problem("a.*", "b"), wildcards);
  EXPECT_EQ(name_pattern_problem("a.*", "b.**"), wildcards);
  EXPECT_EQ(name_pattern_problem("a.*.**", "**.*"), wildcards);
  EXPECT_EQ(name_pattern_problem("a", "b.*"), wildcards);
  EXPECT_EQ(name_pattern_problem("a.b**", "a.b**"), "** must be a whole part between dots");
  EXPECT_EQ(name_pattern_problem("", "b"), "an empty name");
  EXPECT_EQ(name_pattern_problem("a", ""), "an empty name");
}

TEST(NameRules, StripThenTheFirstPatternThenAdd) {
  const NameRules rules("model.", {{"head.*", "fc.*"}, {"head.**", "never.**"}, {"a.**", "b.**"}},
                        "net.");
  EXPECT_EQ(rules.applied("model.head.weight"), "net.fc.weight");
  EXPECT_EQ(rules.applied("head.weight"), "net.fc.weight");
  EXPECT_EQ(rules.applied("model.head.0.weight"), "net.never.0.weight");
  EXPECT_EQ(rules.applied("model.a.w"), "net.b.w");
  EXPECT_EQ(rules.applied("model.model.w"), "net.model.w") << "once";
  EXPECT_EQ(rules.applied("model."), "net.model.") << "something is left of a name";
  EXPECT_EQ(NameRules("", {}, "").applied("a.b"), "a.b");
}

}  // namespace
}  // namespace tandem
