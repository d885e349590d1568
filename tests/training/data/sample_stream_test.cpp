// Rows of text tables as a stream: micro-batches across files, files without columns that nothing
// reads, headers in another order, bad rows.
#include "engine/data/sample_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config/keys/config_check.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

/// The text of the Error{data} that f throws.
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

  struct MicroBatch {
    std::vector<std::int64_t> values, rows;
  };
  static std::vector<MicroBatch> micro_batches(SampleStream& stream, std::int64_t most) {
    std::vector<MicroBatch> all;
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
  static inline std::vector<std::string> places_;  // in the last micro-batch

  TemporaryFolder folder_;
  const std::string tsv_ = "kind = 'tsv'\ncolumns = ['label', 'a', 'b']\n", csv_ = "kind = 'csv'\n";
};

TEST_F(SampleStreamTest, PassesGoAcrossFiles) {
  const auto stream = stream_table(request(tsv_, {"1\t1\t2\n0\t3\t4\n0\t5\t6\n", "7\t8\n9\t10\n"}));
  const std::vector<MicroBatch> all = micro_batches(*stream, 4);
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
  const std::string text = data_error(
      [&] { micro_batches(*stream_table(request(tsv_, {"1\n2\t3\n1\t2\t3\t4\n"})), 4); });
  EXPECT_THAT(text, HasSubstr(folder_ / "0:1:2: "));
  EXPECT_THAT(text, HasSubstr("expected 3 fields, or 2 without `label`, got 1"));
  EXPECT_THAT(text, HasSubstr(folder_ / "0:3:3: a field more than there are columns"));
  EXPECT_THAT(data_error([&] { micro_batches(*stream_table(request(tsv_, {"2\tx\n"})), 4); }),
              HasSubstr("0:1:2: data.fields.x: column `b`: not a number"));
}

// There is no way to know which of them are bad rows: a first row that is cut short looks like one
// without a label, and its next field would be taken for another one.
TEST_F(SampleStreamTest, RowsOfTwoLengthsAreRefusedWhateverBecomesOfBadRows) {
  for (const char* bad : {"error", "skip"}) {
    const std::string keys = tsv_ + "on_bad = '" + bad + "'\n";
    std::string text =
        data_error([&] { micro_batches(*stream_table(request(keys, {"2\t3\n1\t2\t3\n"})), 4); });
    EXPECT_THAT(text, HasSubstr(folder_ / "0:2: "));
    EXPECT_THAT(text, HasSubstr("rows of two lengths: line 1 has 2 fields, line 2 has 3 fields: "
                                "expected in all rows either 3 fields, or 2 fields without "
                                "`label`"));
    text = data_error([&] {
      micro_batches(*stream_table(request(keys, {"1\t2\t3\n", "1\t2\t3\n1\t4\t5\n6\t7\n"})), 2);
    });
    EXPECT_THAT(text, HasSubstr(folder_ / "1:3: "));
    EXPECT_THAT(text, HasSubstr("line 1 has 3 fields, line 3 has 2 fields"));
  }
}

TEST_F(SampleStreamTest, EmptyLinesAreRowsUnlessTheyEndTheFile) {
  const auto stream = stream_table(request(tsv_ + "on_bad = 'skip'\n", {"2\t3\n\n4\t5\n\n\r\n"}));
  const std::vector<MicroBatch> all = micro_batches(*stream, 4);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].values, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(all[0].rows, ElementsAre(0, 2));
  EXPECT_EQ(stream->rows(), 3);
  EXPECT_THAT(
      data_error([&] { micro_batches(*stream_table(request(tsv_, {"2\t3\n\n4\t5\n"})), 4); }),
      HasSubstr("0:2:1: an empty line: expected 2 fields"));
  // Empty lines before the header are not rows.
  const auto headed = stream_table(request(csv_, {"\n\nb,a\n2,1\n"}));
  EXPECT_THAT(micro_batches(*headed, 4).at(0).values, ElementsAre(1, 2));
}

TEST_F(SampleStreamTest, LeftOutRowsKeepTheirNumbers) {
  const auto stream = stream_table(
      request(tsv_ + "on_bad = 'skip'\n", {"x\n1\t1\t2\n0\tx\t4\n", "0\t5\t6\n\n0\t7\t8\n0\n"}));
  const std::vector<MicroBatch> all = micro_batches(*stream, 2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].rows, ElementsAre(1, 3));
  EXPECT_THAT(all[1].rows, ElementsAre(5));
  EXPECT_EQ(stream->rows(), 7);
  EXPECT_EQ(stream->left_out(), 4);
  EXPECT_THAT(stream->first_bad(), HasSubstr(folder_ / "0:1:"));
}

TEST_F(SampleStreamTest, HeadersNameColumnsInAnyOrder) {
  const auto stream = stream_table(request(csv_, {"b,other,a\n2,x,1\n", "label,a,b\n0,3,4\n"}));
  const std::vector<MicroBatch> all = micro_batches(*stream, 4);
  EXPECT_THAT(all[0].values, ElementsAre(1, 2, 3, 4));
  const std::string text =
      data_error([&] { micro_batches(*stream_table(request(csv_, {"a,label\n1,2\n"})), 4); });
  EXPECT_THAT(text, HasSubstr("0:1: the header does not name the column `b`"));
  EXPECT_THAT(data_error([&] { micro_batches(*stream_table(request(csv_, {"b,a\n1,x\n"})), 4); }),
              HasSubstr("0:2:2: data.fields.x: column `a`: not a number"));
}

// Words of a header are values that no vocabulary knows.
TEST_F(SampleStreamTest, AHeaderIsNoRow) {
  TableRequest words = request(tsv_, {"a\tb\n1\t2\n"});
  words.config.fields[0].as = {parse_transform("hash(100)")};
  std::vector<Diagnostic> errors;
  words.plan = plan_table(words.config, words.plan.columns, errors);
  EXPECT_THAT(data_error([&] { micro_batches(*stream_table(words), 4); }),
              HasSubstr("0:1:1: this row names the columns (set data.header = true)"));
  words.config.table()->on_bad = OnBad::skip;
  const auto stream = stream_table(words);
  EXPECT_THAT(micro_batches(*stream, 4).at(0).rows, ElementsAre(1));
  EXPECT_EQ(stream->left_out(), 1);
}

TEST_F(SampleStreamTest, NothingToPredictIsAnError) {
  EXPECT_THAT(data_error([&] { micro_batches(*stream_table(request(tsv_, {""})), 4); }),
              HasSubstr("there are no samples"));
}

// Functions of numbers give the same for the same text in training, in a stream of rows to predict
// and in rows that are evaluated.
TEST(SampleStream, FunctionsOfNumbersAreThoseOfTraining) {
  const TemporaryFolder folder, arrays;
  const std::string path = folder / "a";
  write_file(path, "0\t3\n6\t100\n\t-5\n12.5\t1\n");
  const DataConfig config = *parse_run_config(
                                 "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n"
                                 "[data]\nkind = 'tsv'\ncolumns = ['a', 'b']\n"
                                 "[data.train]\nfiles = ['a']\n[data.fields]\n"
                                 "log = { from = ['a', 'b'], as = ['missing(0)', 'log1p'] }\n"
                                 "of_array = { from = ['a', 'b'], as = ['missing(0)', 'float32', "
                                 "'log1p'] }\n"
                                 "bucket = { from = ['a', 'b'], as = ['missing(-1)', "
                                 "'bucketize(0, 10, 100)'] }\n"
                                 "id = { from = 'b', as = ['log1p', 'bucketize(1, 4.6)', "
                                 "'vocabulary'] }\n",
                                 folder / "train.toml")
                                 .data;
  const DataSets sets = open_data(config);
  ASSERT_EQ(sets.vocabularies.size(), 1u);
  TableRequest request{.config = config, .paths = {path}, .may_lack = {0, 0}};
  std::vector<Diagnostic> errors;
  request.plan = plan_table(config, {"a", "b"}, errors);
  ASSERT_THAT(errors, IsEmpty());
  request.vocabularies.push_back(
      Vocabulary::parse(read_file(sets.vocabularies[0].path), request.plan.columns));
  const std::shared_ptr<const DataSource> evaluated = encode_tables(request, arrays.path());
  const auto stream = stream_table(std::move(request));
  const std::optional<SampleRange> predicted = stream->next(4);
  ASSERT_TRUE(predicted && predicted->count == 4);

  const auto expect = [&](const std::string& name, const HostTensor& expected) {
    for (const DataSource* source : {sets.train.get(), predicted->source.get(), evaluated.get()}) {
      HostTensor values(expected.type());
      const int field = source->find_field(name);
      ASSERT_GE(field, 0) << name;
      const std::int64_t samples[] = {0, 1, 2, 3};
      TensorType type = source->fields()[static_cast<std::size_t>(field)].sample;
      type.shape.insert(type.shape.begin(), 4);
      ASSERT_EQ(type, expected.type()) << name;
      source->fill(field, samples, nullptr, values.data());
      EXPECT_TRUE(testing::same_bytes(values, expected)) << name;
    }
  };
  const HostTensor logarithms = HostTensor::from<float>(
      {4, 2}, {0, 1.38629436f, 1.9459101f, 4.61512041f, 0, 0, 2.60268974f, 0.693147182f});
  expect("log", logarithms);
  expect("of_array", logarithms);
  expect("bucket", HostTensor::from<std::int64_t>({4, 2}, {1, 1, 1, 3, 0, 0, 2, 1}));
  expect("id", HostTensor::from<std::int64_t>({4}, {2, 3, 1, 1}));  // buckets 1, 2, 0, 0
}

TEST_F(SampleStreamTest, TablesAreEncodedWhole) {
  const TemporaryFolder arrays;
  const auto source =
      encode_tables(request(tsv_, {"1\t1\t2\n0\t3\t4\n", "1\t5\t6\n"}), arrays.path());
  EXPECT_EQ(source->samples(), 3);
  const auto stream = stream_samples(source);
  const std::vector<MicroBatch> all = micro_batches(*stream, 2);
  EXPECT_THAT(all[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(all[1].values, ElementsAre(5, 6));
  EXPECT_THAT(places_, ElementsAre((folder_ / "1") + ":1"));
}

}  // namespace
}  // namespace tandem
