// Rows of text tables as a stream: passes across files, files without columns that nothing reads,
// headers in another order, bad rows.
#include "engine/training/data/sample_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

/// Of the Error{data} that f throws.
template <class F>
std::string data_error(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "no error";
}

// Field x takes columns a and b, field label takes column label.
class SampleStreamTest : public ::testing::Test {
 protected:
  TableRequest request(const std::string& keys, const std::vector<std::string>& texts,
                       const std::vector<std::string>& columns = {"label", "a", "b"},
                       const std::vector<char>& may_lack = {1, 0, 0}) {
    const RunConfig config = parse_run_config(
        "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n[data]\n" + keys +
            "[data.train]\nfiles = ['a']\n[data.fields]\nx = { from = ['a', 'b'], as = "
            "['int64'] }\n",
        folder_ / "train.toml");
    TableRequest request;
    request.config = *config.data;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      request.paths.push_back(folder_ / std::to_string(i));
      write_file(request.paths.back(), texts[i]);
    }
    std::vector<Diagnostic> errors;
    request.plan = plan_table(request.config, columns, errors);
    EXPECT_THAT(errors, IsEmpty());
    request.may_lack = may_lack;
    return request;
  }

  struct Pass {
    std::vector<std::int64_t> values, rows;
  };
  static std::vector<Pass> passes(SampleStream& stream, std::int64_t most) {
    std::vector<Pass> all;
    while (const std::optional<SampleRange> range = stream.next(most)) {
      HostTensor values(TensorType{DType::int64, {range->count, 2}});
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < range->count; ++i) samples.push_back(range->first + i);
      range->source->fill(0, samples, nullptr, values.data());
      all.push_back({values.integers(), range->rows});
      places_.clear();
      for (const std::int64_t i : samples) places_.push_back(range->source->describe(0, i));
    }
    return all;
  }
  static inline std::vector<std::string> places_;  // of the last pass

  TemporaryFolder folder_;
  const std::string tsv_ = "kind = 'tsv'\ncolumns = ['label', 'a', 'b']\n", csv_ = "kind = 'csv'\n";
};

TEST_F(SampleStreamTest, PassesGoAcrossFiles) {
  const auto stream = stream_table(request(tsv_, {"1\t1\t2\n0\t3\t4\n0\t5\t6\n", "7\t8\n9\t10\n"}));
  const std::vector<Pass> all = passes(*stream, 4);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(all[0].rows, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(all[1].values, ElementsAre(9, 10));
  EXPECT_THAT(all[1].rows, ElementsAre(4));
  EXPECT_THAT(places_, ElementsAre((folder_ / "1") + ":2"));
  EXPECT_EQ(stream->rows(), 5);
  EXPECT_EQ(stream->part_read(), 1);
}

TEST_F(SampleStreamTest, RowsOfAFileHaveOneLength) {
  const std::string text =
      data_error([&] { passes(*stream_table(request(tsv_, {"1\n2\t3\n1\t2\t3\n"})), 4); });
  EXPECT_THAT(text, HasSubstr(folder_ / "0:1:2: "));
  EXPECT_THAT(text, HasSubstr("expected 3 fields, or 2 without `label`, got 1"));
  EXPECT_THAT(text, HasSubstr(folder_ / "0:3:3: a field more than there are columns"));
  EXPECT_THAT(data_error([&] { passes(*stream_table(request(tsv_, {"2\tx\n"})), 4); }),
              HasSubstr("0:1:2: data.fields.x: column `b`: not a number"));
}

TEST_F(SampleStreamTest, LeftOutRowsKeepTheirNumbers) {
  const auto stream = stream_table(
      request(tsv_ + "on_bad = 'skip'\n", {"x\n1\t1\t2\n0\tx\t4\n", "0\t5\t6\n\n0\t7\t8\n0\n"}));
  const std::vector<Pass> all = passes(*stream, 2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].rows, ElementsAre(1, 3));
  EXPECT_THAT(all[1].rows, ElementsAre(4));
  EXPECT_EQ(stream->rows(), 6);
  EXPECT_EQ(stream->left_out(), 3);
  EXPECT_THAT(stream->first_bad(), HasSubstr(folder_ / "0:1:"));
}

TEST_F(SampleStreamTest, HeadersNameColumnsInAnyOrder) {
  const auto stream = stream_table(request(csv_, {"b,other,a\n2,x,1\n", "label,a,b\n0,3,4\n"}));
  const std::vector<Pass> all = passes(*stream, 4);
  EXPECT_THAT(all[0].values, ElementsAre(1, 2, 3, 4));
  const std::string text =
      data_error([&] { passes(*stream_table(request(csv_, {"a,label\n1,2\n"})), 4); });
  EXPECT_THAT(text, HasSubstr("0:1: the header does not name the column `b`"));
  EXPECT_THAT(data_error([&] { passes(*stream_table(request(csv_, {"b,a\n1,x\n"})), 4); }),
              HasSubstr("0:2:2: data.fields.x: column `a`: not a number"));
}

TEST_F(SampleStreamTest, NothingToPredictIsAnError) {
  EXPECT_THAT(data_error([&] { passes(*stream_table(request(tsv_, {""})), 4); }),
              HasSubstr("there are no samples"));
}

TEST_F(SampleStreamTest, TablesAreEncodedWhole) {
  const TemporaryFolder arrays;
  const auto source =
      encode_tables(request(tsv_, {"1\t1\t2\n0\t3\t4\n", "1\t5\t6\n"}), arrays.path());
  EXPECT_EQ(source->samples(), 3);
  const auto stream = stream_samples(source);
  const std::vector<Pass> all = passes(*stream, 2);
  EXPECT_THAT(all[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(all[1].values, ElementsAre(5, 6));
  EXPECT_THAT(places_, ElementsAre((folder_ / "1") + ":1"));
}

}  // namespace
}  // namespace tandem
