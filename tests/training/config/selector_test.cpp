// The grammar of selectors, and the search for the nearest name.
#include "engine/graph/selector.h"

#include <gtest/gtest.h>

#include "engine/graph/error.h"

namespace tandem {
namespace {

struct Case {
  const char* selector;
  std::vector<const char*> matches;
  std::vector<const char*> others;
};

TEST(Selector, MatchesWholePathsOnly) {
  const Case cases[] = {
      {"layers.1", {"layers.1"}, {"layers.10", "layers.1.x", "x.layers.1", "layers"}},
      {"*", {"fc1", ""}, {"fc1.Gemm", "fc1:weight"}},
      {"fc?.Gemm", {"fc1.Gemm", "fcx.Gemm"}, {"fc.Gemm", "fc12.Gemm", "fc..Gemm"}},
      {"conv*.**", {"conv1", "conv1.Conv", "conv2.a.b", "conv1:weight"}, {"xconv1.Conv", "con.x"}},
      {"**", {"", "a", "a.b.c", "a.b:c"}, {}},
      {"**.norm", {"norm", "a.norm", "a.b.norm"}, {"xnorm", "a.xnorm", "norm.a"}},
      {"a.**.z", {"a.z", "a.b.z", "a.b.c.z"}, {"az", "a.bz", "a.z.c"}},
      {"a.**.b.**", {"a.b", "a.x.b.y", "a.b.c"}, {"a", "b"}},
      {"**:weight", {"fc1:weight", "a.b:weight"}, {"weight", "fc1:weights"}},
      {"blocks.{0..5}.**", {"blocks.0.x", "blocks.5"}, {"blocks.6.x", "blocks.05.x", "blocks.10"}},
      {"l{8..12}", {"l8", "l9", "l10", "l12"}, {"l7", "l13", "l1", "l80"}},
      {"{wide,deep}:*", {"wide:weight", "deep:bias"}, {"wide", "wide.x:weight"}},
      {"x{a,b{1..2},}y", {"xay", "xb1y", "xb2y", "xy"}, {"xb3y", "xby"}},
      {"blocks.*.norm?.**", {"blocks.3.norm1.Add", "blocks.3.norm2"}, {"blocks.3.x.norm1"}},
      {"re:'blocks\\.(1|3)\\..*'", {"blocks.1.x", "blocks.3.y"}, {"blocks.2.x", "a.blocks.1.x"}},
      {"re:a+", {"a", "aaa"}, {"ab", ""}},
      {"re:(?=.*a)(?!.*b[(?=]).*", {"a", "xab"}, {"xab(", "b"}},
  };
  for (const Case& c : cases) {
    const Selector selector(c.selector);
    for (const char* path : c.matches)
      EXPECT_TRUE(selector.matches(path)) << c.selector << " " << path;
    for (const char* path : c.others)
      EXPECT_FALSE(selector.matches(path)) << c.selector << " " << path;
  }
}

TEST(Selector, CoversParametersByPathRawNameScopeAndReaders) {
  EXPECT_TRUE(Selector("fc1:weight").covers_parameter("fc1:weight", "onnx::MatMul_12"));
  EXPECT_TRUE(Selector("onnx::MatMul_12").covers_parameter("fc1:weight", "onnx::MatMul_12"));
  EXPECT_TRUE(Selector("fc1").covers_parameter("fc1:weight", "x"));
  EXPECT_TRUE(Selector("blocks.0.**").covers_parameter("blocks.0.fc:bias", "x"));
  EXPECT_TRUE(Selector("**").covers_parameter("fc1:weight", "x"));
  EXPECT_FALSE(Selector("fc").covers_parameter("fc1:weight", "x"));
  EXPECT_FALSE(Selector("fc1:bias").covers_parameter("fc1:weight", "x"));
  EXPECT_TRUE(Selector("re:(?:fc|conv)1").covers_parameter("fc1:weight", "x"));

  const std::vector<std::string> one = {"fc1.Gemm"}, two = {"fc1.Gemm", "head.Gemm"};
  EXPECT_TRUE(Selector("fc1.Gemm").covers_parameter("fc1:weight", "x", one));
  EXPECT_FALSE(
      Selector("fc1.Gemm").covers_parameter("fc1:weight", "x", two));  // read elsewhere too
  EXPECT_TRUE(Selector("{fc1,head}.Gemm").covers_parameter("fc1:weight", "x", two));
}

TEST(Selector, RefusesWhatItCannotRead) {
  for (const char* text : {"", "a**", "**b", "a.x**.b", "{1..", "a}", "{5..1}", "{x..3}", "re:'('",
                           "re:'(a)\\1'", "re:'((a{20}){20}){20}'", "re:a{99999999999999999999}",
                           "re:'(\\{{30}){30}{9}'", "re:(?=.*(?!.*b)).*"}) {
    try {
      const Selector selector(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.diagnostics()[0].path, text);
    }
  }
}

TEST(Selector, TakesLinearTime) {
  std::string pattern, path;
  for (int i = 0; i < 200; ++i) pattern += "*a{b,*}", path += "ab";
  EXPECT_FALSE(Selector(pattern + "!").matches(path));
  for (const char* nested : {"re:'(a*)*b'", "re:'(a|aa)+b'", "re:'((a+)+)+b'", "re:'(?=(a*)*b)a*'"})
    EXPECT_FALSE(Selector(nested).matches(std::string(400, 'a'))) << nested;
  EXPECT_TRUE(Selector("re:'(blocks\\.\\d{1,2}\\.)*x'").matches("blocks.1.blocks.12.x"));
}

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"batch_size", "epochs", "optimizer", "lr"};
  EXPECT_EQ(nearest_name("bach_size", names), "batch_size");
  EXPECT_EQ(nearest_name("epoch", names), "epochs");
  EXPECT_EQ(nearest_name("optimiser", names), "optimizer");
  EXPECT_EQ(nearest_name("rl", names), "lr");
  EXPECT_EQ(nearest_name("something else", names), "");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
}

}  // namespace
}  // namespace tandem
