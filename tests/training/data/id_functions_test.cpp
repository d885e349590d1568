// Functions that decide ids: which count, and that others are refused.
#include "engine/data/id_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

RunConfig config_with(const std::string& functions) {
  return parse_run_config(R"toml(
model = "model.onnx"
batch_size = 4
steps = 1
[optimizer]
kind = "sgd"
[data]
kind = "tsv"
columns = [ "a", "b" ]
train = { files = [ "rows.tsv" ] }
[data.fields]
label = "b"
ids = { from = "a", as = [ )toml" +
                              functions + " ] }\n",
                          "/nowhere/train.toml");
}

std::string functions_of_ids(const std::string& functions) {
  return id_functions(*config_with(functions).data).at("ids");
}

TEST(IdFunctionsTest, WhatIdsDependOn) {
  EXPECT_EQ(functions_of_ids("'hash( 300 )'"), "hash(300)");
  EXPECT_EQ(functions_of_ids("'missing(-1)', 'hash(300)'"), "hash(300)");
  EXPECT_EQ(functions_of_ids("'split(\"|\", max=8, pad=3)', 'hash(300)'"), "hash(300)");
  EXPECT_EQ(functions_of_ids("'split(\"|\", max=8)', 'hash(300)'"), "split(..., pad=0), hash(300)");
  EXPECT_EQ(functions_of_ids("'log1p', 'bucketize(1, 10.5)', 'hash(7)'"),
            "log1p, bucketize(1, 10.5), hash(7)");
  EXPECT_EQ(functions_of_ids("'bucketize(1, 2)', 'log1p', 'scale(0.5)'"), "bucketize(1, 2)");
  EXPECT_EQ(functions_of_ids("'log1p', 'scale(1/4)', 'bucketize(1, 2)'"),
            "log1p, scale(0.25), bucketize(1, 2)");
  EXPECT_EQ(functions_of_ids("'normalize(1, 0.5)', 'float16', 'bucketize(1)'"),
            "normalize(1; 0.5), float16, bucketize(1)");
  EXPECT_EQ(functions_of_ids("\"classes('no', \\\"it's\\\", 3)\", 'float32'"),
            "classes('no', \"it's\", '3')");
  EXPECT_EQ(functions_of_ids("'log1p', 'float32'"), "");
  EXPECT_EQ(functions_of_ids("'vocabulary'"), "");  // the vocabulary's file says it
}

TEST(IdFunctionsTest, WhichValuesTextHolds) {
  const auto cells_of = [](const std::string& functions) {
    const auto all = id_functions(*config_with(functions).data);
    const auto found = all.find("ids/cells");
    return found == all.end() ? "no entry" : found->second;
  };
  EXPECT_EQ(cells_of("'missing( -1 )', 'hash(300)'"), "missing('-1')");
  EXPECT_EQ(cells_of("'missing(\"none\")', 'split(\"|\", max=8, pad=3)', 'vocabulary'"),
            "missing('none'), split('|', pad=3)");
  EXPECT_EQ(cells_of("'split(\"|\", max=4)', 'hash(300)'"),
            cells_of("'split(\"|\", max=8)', 'hash(300)'"));
  EXPECT_EQ(cells_of("'vocabulary'"), "");
  EXPECT_EQ(cells_of("'missing(0)', 'log1p'"), "no entry") << "no ids";
}

TEST(IdFunctionsTest, OthersAreRefused) {
  const auto refusal = [](const std::string& before, const std::string& functions) {
    return testing::error_text([&] {
      refuse_other_functions({{"ids", before}}, config_with(functions), "run", "train a new one");
    });
  };
  EXPECT_EQ(refusal("hash(300)", "'missing(0)', 'hash(300)'"), "no error");
  EXPECT_THAT(refusal("hash(300)", "'hash(299)'"),
              HasSubstr("data.fields.ids: the run was trained with other functions of this field: "
                        "ids would mean other rows: expected hash(300), got hash(299) (write "
                        "hash(300), or train a new one)"));
  EXPECT_THAT(refusal("bucketize(1, 2)", "'bucketize(1, 3)'"), HasSubstr("got bucketize(1, 3)"));
  EXPECT_THAT(refusal("scale(0.5), bucketize(1)", "'scale(2)', 'bucketize(1)'"),
              HasSubstr("got scale(2), bucketize(1)"));
  EXPECT_EQ(refusal("scale(0.5), bucketize(1)", "'scale(1/2)', 'bucketize(1.0)'"), "no error");
  EXPECT_THAT(refusal("hash(300)", "'int64'"),
              HasSubstr("got neither classes, hash nor bucketize"));
  EXPECT_THAT(refusal("", "'hash(3)'"), HasSubstr("(leave hash(3) out, or train a new one)"));
  const auto cells_refusal = [](const std::string& before, const std::string& functions) {
    return testing::error_text([&] {
      refuse_other_functions({{"ids/cells", before}}, config_with(functions), "run", "");
    });
  };
  EXPECT_THAT(cells_refusal("missing('-1')", "'missing(-2)', 'vocabulary'"),
              HasSubstr("ids would mean other rows: expected missing('-1'), got missing('-2') "
                        "(write missing('-1'), or "));
  EXPECT_THAT(cells_refusal("", "'split(\"|\", max=2)', 'vocabulary'"),
              HasSubstr("expected none of missing, trim, lower and split, got split('|', pad=0)"));
  EXPECT_EQ(cells_refusal("missing('-1')", "'missing(\"-1\")', 'hash(7)'"), "no error");
  // A run that says nothing about this field refuses nothing.
  refuse_other_functions({{"label", ""}}, config_with("'hash(3)'"), "run", "");
}

}  // namespace
}  // namespace tandem
