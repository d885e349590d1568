// Text tables: functions of columns, vocabularies, bad rows, the prepared arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "engine/config/keys/config_check.h"
#include "engine/data/data_source.h"
#include "engine/data/loader.h"
#include "engine/data/prepare_table.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

// [data] of a configuration whose folder is `folder`.
std::vector<double> values(const DataSource& source, const std::string& name) {
  const int field = source.find_field(name);
  EXPECT_GE(field, 0) << name;
  TensorType type = source.fields()[static_cast<std::size_t>(field)].sample;
  type.shape.insert(type.shape.begin(), source.samples());
  HostTensor result(type);
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
  std::iota(all.begin(), all.end(), 0);
  source.fill(field, all, nullptr, result.data());
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < type.elements(); ++i) numbers.push_back(result.number(i));
  return numbers;
}

const TensorType& type_of(const DataSource& source, const std::string& name) {
  return source.fields()[static_cast<std::size_t>(source.find_field(name))].sample;
}

// Criteo's format: label, 13 integers, 26 categories; empty fields and negative integers occur.
std::string criteo_row(int label, const std::vector<std::string>& integers,
                       const std::vector<std::string>& categories) {
  std::string row = std::to_string(label);
  for (std::size_t i = 0; i < 13; ++i) row += "\t" + (i < integers.size() ? integers[i] : "");
  for (std::size_t i = 0; i < 26; ++i) row += "\t" + (i < categories.size() ? categories[i] : "");
  return row + "\n";
}

constexpr const char* criteo = R"toml(kind = "tsv"
columns = [ "label", "i{1..13}", "c{1..26}" ]
[data.train]
files = [ "day_{0..1}" ]
shuffle = "none"
[data.eval]
files = [ "day_2" ]
[data.fields]
ids = { from = [ "i{1..13}", "c{1..26}" ], as = [ "missing(-1)", "vocabulary(min_count=2)" ] }
dense = { from = "i{1..13}", as = [ "missing(0)", "log1p" ] }
label = { from = "label", as = [ "float32" ] }
)toml";

void write_criteo(const TemporaryFolder& folder) {
  write_file(folder / "day_0", criteo_row(1, {"5", "-2", "", "100"}, {"68fd1e64", "80e26c9b"}) +
                                   criteo_row(0, {"5", "", "7"}, {"68fd1e64", "05db9164"}));
  write_file(folder / "day_1", criteo_row(0, {"6", "-2"}, {"80e26c9b", "68fd1e64"}));
  write_file(folder / "day_2", criteo_row(1, {"5", "9"}, {"80e26c9b", "", "68fd1e64"}));
}

TEST(Table, CriteoRows) {
  const TemporaryFolder folder;
  write_criteo(folder);
  const DataSets sets = open_data(data_config(folder, criteo));
  EXPECT_EQ(type_of(*sets.train, "ids"), (TensorType{DType::int64, {39}}));
  EXPECT_EQ(type_of(*sets.train, "dense"), (TensorType{DType::float32, {13}}));
  EXPECT_EQ(type_of(*sets.train, "label"), (TensorType{DType::float32, {}}));
  EXPECT_THAT(values(*sets.train, "label"), ElementsAre(1, 0, 0));

  // Counts of (column, value), the missing ones as -1: three times in i5…i13 and c3…c26 (33
  // columns); twice i1=5, i2=-2, i3=-1, i4=-1, c1=68fd1e64. Ties are in the order of columns, then
  // of text.
  ASSERT_EQ(sets.vocabularies.size(), 1u);
  EXPECT_EQ(sets.vocabularies[0].rows, 1 + 33 + 5);
  EXPECT_EQ(sets.vocabularies[0].name, "ids");
  std::vector<double> expected(3 * 39);
  const auto set = [&](std::size_t row, std::size_t column, double id) {
    expected[row * 39 + column] = id;
  };
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t c = 4; c < 13; ++c) set(row, c, static_cast<double>(c - 3));
    for (std::size_t c = 15; c < 39; ++c) set(row, c, static_cast<double>(c - 5));
  }
  set(0, 0, 34), set(1, 0, 34);
  set(0, 1, 35), set(2, 1, 35);
  set(0, 2, 36), set(2, 2, 36);
  set(1, 3, 37), set(2, 3, 37);
  set(0, 13, 38), set(1, 13, 38);
  EXPECT_EQ(values(*sets.train, "ids"), expected);

  const std::vector<double> dense = values(*sets.train, "dense");
  EXPECT_FLOAT_EQ(static_cast<float>(dense[0]), std::log1p(5.0f));
  EXPECT_EQ(dense[1], 0);  // negative counts as 0
  EXPECT_EQ(dense[2], 0);
  EXPECT_FLOAT_EQ(static_cast<float>(dense[3]), std::log1p(100.0f));

  // The held-out rows use the training data's vocabulary: what it lacks is 0.
  const std::vector<double> held = values(*sets.eval, "ids");
  EXPECT_EQ(held[0], 34);
  EXPECT_EQ(held[1], 0);
  EXPECT_EQ(held[13], 0);
  EXPECT_EQ(held[14], 0);
  EXPECT_EQ(held[15], 0);
  EXPECT_EQ(held[16], 11);

  const std::string text = read_file(sets.vocabularies[0].path);
  EXPECT_THAT(text, ::testing::StartsWith("column\tvalue\tcount\ni5\t-1\t3\n"));
  EXPECT_THAT(text, ::testing::EndsWith("c1\t68fd1e64\t2\n"));
  EXPECT_EQ(sets.vocabularies[0].sha256, sha256(text.data(), text.size()));
  EXPECT_EQ(sets.train->describe(0, 2), (folder / "day_1") + ":1");
}

DataConfig tsv(const TemporaryFolder& folder, const std::string& columns, const std::string& fields,
               const std::string& more = "") {
  return data_config(folder, "kind = 'tsv'\ncolumns = [" + columns + "]\n" + more +
                                 "[data.train]\nfiles = ['a']\n[data.fields]\n" + fields);
}

// As pandas.read_csv(na_values=["-999"]) reads such columns: the word counts in every spelling of
// its number, and as text only as it is written.
TEST(Table, NumbersThatMeanMissingMayHaveAFraction) {
  const TemporaryFolder folder;
  write_file(folder / "a", "-999.0\t-999.0\n 1\t-999\n-999\tx\n-9.99e2\t-999.0\n-99.9\tx\n");
  const DataSets sets =
      open_data(tsv(folder, "'n', 't'",
                    "x = { from = 'n', as = ['missing(7)', 'float32'] }\n"
                    "y = { from = 't', as = [\"missing('gone')\", 'vocabulary'] }\n",
                    "missing = ['-999']\n"));
  EXPECT_THAT(values(*sets.train, "x"), ElementsAre(7, 1, 7, 7, -99.9f));
  EXPECT_THAT(values(*sets.train, "y"), ElementsAre(1, 3, 2, 1, 2));
}

// The numbers are those of a few lines of Python after the description in vocabulary.h.
TEST(Table, HashesAreFixed) {
  EXPECT_EQ(ColumnHash("c1")("68fd1e64"), 17247735971394882143u);
  EXPECT_EQ(ColumnHash("c2")("68fd1e64"), 799805994329980927u);
  EXPECT_EQ(ColumnHash("")(""), 2737183428366584608u);
  const TemporaryFolder folder;
  write_file(folder / "a", "68fd1e64\t68fd1e64\n");
  const DataSets sets =
      open_data(tsv(folder, "'c1', 'c2'",
                    "x = { from = 'c{1..2}', as = ['hash(1000)'] }\n"
                    "y = { from = 'c1', as = [\"split('|', max=2)\", 'hash(1000)'] }\n"));
  EXPECT_THAT(values(*sets.train, "x"),
              ElementsAre(17247735971394882143u % 1000, 799805994329980927u % 1000));
  EXPECT_THAT(values(*sets.train, "y"), ElementsAre(1 + 17247735971394882143u % 999, 0));
}

TEST(Vocabulary, OddValuesSurviveTheFile) {
  ValueCounts counts;
  for (const char* value : {"a\tb", "\\n", "line\nend\r", "", "plain"}) {
    counts.count(counts.find_or_add(1, value), 3);
  }
  std::vector<std::int32_t> ids;
  const Vocabulary made(counts, 1, ids);
  const std::vector<std::string> columns = {"x", "y\tz"};
  const Vocabulary read = Vocabulary::parse(made.text(columns), columns);
  EXPECT_EQ(read.text(columns), made.text(columns));
  EXPECT_EQ(read.rows(), 6);
  EXPECT_EQ(read.id(1, "line\nend\r"), made.id(1, "line\nend\r"));
  EXPECT_EQ(read.id(0, "plain"), 0);
  for (const char* broken :
       {"", "x\n", "column\tvalue\tcount\nx\ta\t1", "column\tvalue\tcount\nx\n",
        "column\tvalue\tcount\nq\ta\t1\n", "column\tvalue\tcount\n\ta\t1\n",
        "column\tvalue\tcount\nx\ta\t1\nx\ta\t1\n"}) {
    if (*broken == 0) continue;
    EXPECT_THROW(Vocabulary::parse(broken, columns), std::invalid_argument) << broken;
  }
  EXPECT_THROW(Vocabulary::parse(made.text(columns), {}), std::invalid_argument);
}

TEST(Vocabulary, ManyValues) {
  ValueCounts counts;
  for (int i = 0; i < 50'000; ++i) {
    const std::string value = std::to_string(i);
    EXPECT_EQ(counts.find_or_add(static_cast<std::uint32_t>(i % 3), value), i);
    counts.count(i, i % 7);
  }
  for (int i = 0; i < 50'000; ++i) {
    EXPECT_EQ(counts.find(static_cast<std::uint32_t>(i % 3), std::to_string(i)), i);
    EXPECT_EQ(counts.find(static_cast<std::uint32_t>(i % 3 + 1), std::to_string(i)), -1);
  }
  std::vector<std::int32_t> ids;
  const Vocabulary vocabulary(counts, 6, ids);
  EXPECT_EQ(vocabulary.rows(), 1 + 50'000 / 7);
  EXPECT_EQ(ids[5], 0);
  EXPECT_GT(ids[6], 0);
}

TEST(Table, BadRowsLeaveNoTable) {
  const TemporaryFolder folder;
  write_file(folder / "a", "1\n\n2\n");
  EXPECT_NE(error_of([&] { open_data(tsv(folder, "'n'", "x = 'n'\n")); }), "no error");
  EXPECT_EQ(list_directory(folder / "runs/data").size(), 1u);
  EXPECT_TRUE(
      list_directory(folder / ("runs/data/" + list_directory(folder / "runs/data")[0])).empty());
}

TEST(Table, TheResolvedConfigurationReadsBack) {
  const TemporaryFolder folder;
  const std::string text = std::string(
                               "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n"
                               "[data]\non_bad = 'skip'\ncache = 'elsewhere'\n") +
                           criteo;
  const RunConfig config = parse_run_config(text, folder / "train.toml");
  EXPECT_EQ(config.data->table()->cache, folder / "elsewhere");
  EXPECT_EQ(config.data->fields[0].columns.size(), 39u);
  EXPECT_EQ(parse_run_config(to_toml(config), folder / "other.toml"), config);
  RunConfig other = config;
  other.data->fields[0].out_of_range = OutOfRange::zero;
  EXPECT_EQ(parse_run_config(to_toml(other), folder / "other.toml"), other);
}

struct Prepared {
  bool built;
  std::string folder;
};
Prepared prepare(const DataConfig& config) {
  const PreparedTable table = prepare_table(config, {});
  return {table.built, table.folder};
}

TEST(PreparedTable, IsMadeOnceAndAgainWhereSomethingChanged) {
  const TemporaryFolder folder;
  write_criteo(folder);
  const DataConfig config = data_config(folder, criteo);
  const Prepared first = prepare(config);
  EXPECT_TRUE(first.built);
  EXPECT_FALSE(prepare(config).built);

  DataConfig scaled = config;  // what acts on the arrays needs no new ones
  scaled.fields[2].as.push_back(parse_transform("reshape(1)"));
  EXPECT_FALSE(prepare(scaled).built);
  scaled.fields[2].as.push_back(parse_transform("scale(2)"));
  EXPECT_TRUE(prepare(scaled).built);  // float64 instead of float32
  scaled.fields[2].as.back() = parse_transform("scale(3)");
  EXPECT_FALSE(prepare(scaled).built);
  DataConfig counted = config;
  counted.fields[0].as[1] = parse_transform("vocabulary(min_count=3)");
  const Prepared other = prepare(counted);
  EXPECT_TRUE(other.built);
  EXPECT_FALSE(prepare(config).built);  // both stay

  write_file(folder / "day_1", criteo_row(1, {"8"}, {}));
  const Prepared renewed = prepare(config);
  EXPECT_TRUE(renewed.built);
  EXPECT_FALSE(path_exists(first.folder));  // the old one of these files is gone
  EXPECT_THAT(values(*open_data(config).train, "label"), ElementsAre(1, 0, 1));

  truncate_file(renewed.folder + "/train-0.0", 7);  // damage
  EXPECT_TRUE(prepare(config).built);
  write_file(renewed.folder + "/manifest.json", "{");
  EXPECT_TRUE(prepare(config).built);
}

// Stopped before any of its file operations, a preparation leaves either nothing or the whole.
TEST(PreparedTable, SurvivesBeingStopped) {
  const TemporaryFolder folder;
  write_file(folder / "a", "u\nv\nu\n");
  const DataConfig config =
      tsv(folder, "'n'", "ids = { from = 'n', as = ['vocabulary(min_count=2)'] }\n");
  OpenOptions options;
  options.threads = 1;
  const std::uint64_t before = file_operations();
  const std::vector<double> expected = values(*open_data(config, options).train, "ids");
  const std::uint64_t operations = file_operations() - before;
  EXPECT_GT(operations, 20u);
  for (std::uint64_t stop = 1; stop <= operations; ++stop) {
    remove_all(config.table()->cache);
    const std::uint64_t start = file_operations();
    struct Stopped {};
    set_file_hook([&](std::string_view, std::string_view) {
      if (file_operations() - start >= stop) throw Stopped{};
    });
    try {
      prepare_table(config, options);
    } catch (const Stopped&) {
    }
    set_file_hook({});
    ASSERT_EQ(values(*open_data(config, options).train, "ids"), expected) << stop;
  }
}

TEST(PreparedTable, ThreadsDoNotMatter) {
  const TemporaryFolder folder;
  std::string files;
  for (int day = 0; day < 7; ++day) {
    std::string text;
    for (int row = 0; row < 5'000; ++row) {
      const unsigned x = static_cast<unsigned>(row * 7919 + day * 104729);
      text += std::to_string(x % 97) + "\t" + std::to_string(x % 89) + "|" +
              std::to_string(x % 13) + "\n";
    }
    write_file(folder / ("d" + std::to_string(day)), text);
  }
  const DataConfig config = data_config(
      folder,
      "kind = 'tsv'\ncolumns = ['a', 'b']\n[data.train]\nfiles = ['d{0..5}']\n[data.eval]\n"
      "files=['d6']\n[data.fields]\nx = { from = 'a', as = ['vocabulary(min_count=310)'] }\n"
      "y = { from = 'b', as = [\"split('|', max=3)\", 'vocabulary(by=\"value\")'] }\nz = 'a'\n");
  std::vector<std::vector<double>> all;
  for (const int threads : {1, 4}) {
    remove_all(config.table()->cache);
    OpenOptions options;
    options.threads = threads;
    const DataSets sets = open_data(config, options);
    EXPECT_EQ(sets.train->samples(), 30'000);
    EXPECT_EQ(sets.train->describe(0, 29'999), (folder / "d5") + ":5000");
    std::vector<double>& one = all.emplace_back();
    for (const char* name : {"x", "y", "z"}) {
      for (const DataSource* source : {sets.train.get(), sets.eval.get()}) {
        const std::vector<double> some = values(*source, name);
        one.insert(one.end(), some.begin(), some.end());
      }
    }
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_GT(*std::max_element(all[0].begin(), all[0].begin() + 30'000), 10);
  EXPECT_EQ(*std::min_element(all[0].begin(), all[0].begin() + 30'000), 0);
}

TEST(PreparedTable, LoadsInEveryOrderAndResumes) {
  const TemporaryFolder folder;
  std::string text;
  for (int row = 0; row < 103; ++row) text += std::to_string(row) + "\n";
  write_file(folder / "a", text);
  DataConfig config = tsv(folder, "'n'", "x = { from = 'n', as = ['int64'] }\n");
  config.eval_fraction = 0.2;
  const DataSets sets = open_data(config);
  EXPECT_EQ(sets.train->samples() + sets.eval->samples(), 103);
  using Kind = ShuffleConfig::Kind;
  for (const ShuffleConfig shuffle :
       {ShuffleConfig{Kind::full}, ShuffleConfig{Kind::none}, ShuffleConfig{Kind::buffer, 10}}) {
    const auto deliver = [&](DataPosition start) {
      std::vector<std::int64_t> ring(3 * 8), seen;
      LoaderOptions options{.fields = {0},
                            .batch_size = 8,
                            .micro_batch_size = 8,
                            .shuffle = shuffle,
                            .start = start,
                            .epochs = 2,
                            .threads = 2};
      Loader loader(sets.train, options, [&](int, const MicroBatch& micro_batch) {
        return &ring[micro_batch.ticket % 3 * 8];
      });
      while (const auto micro_batch = loader.next()) {
        const auto from = ring.begin() + static_cast<long>(micro_batch->ticket % 3 * 8);
        seen.insert(seen.end(), from, from + micro_batch->count);
        loader.release(micro_batch->ticket);
      }
      return seen;
    };
    const std::vector<std::int64_t> whole = deliver({});
    ASSERT_EQ(static_cast<std::int64_t>(whole.size()), 2 * sets.train->samples());
    EXPECT_EQ(deliver({0, 40}), std::vector<std::int64_t>(whole.begin() + 40, whole.end()));
  }
}

TEST(Table, RangesAreCheckedWithTheirLines) {
  const TemporaryFolder folder;
  write_file(folder / "a", "3\nx\n4\n-1\n7\n");
  const DataSets sets =
      open_data(tsv(folder, "'n'", "x = { from = 'n', as = ['int32'] }\n", "on_bad = 'skip'\n"));
  sets.train->check_range(0, 8, std::vector<std::int64_t>{-1}.data());
  const std::string text = error_of([&] { sets.train->check_range(0, 7, nullptr); });
  EXPECT_THAT(text,
              HasSubstr("a:4: data.fields.x: out of range (and 1 row more): expected 0 to 6, got "
                        "-1, of the column \"n\"; all that are out of range: -1 to 7"));
}

}  // namespace
}  // namespace tandem
