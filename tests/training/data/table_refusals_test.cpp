// Text tables: how hostile files and configurations are refused, and what damage and interrupts
// leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <thread>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/training/config/config_check.h"
#include "engine/training/data/data_source.h"
#include "engine/training/data/prepare_table.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

class TableRefusals : public ::testing::Test {
 protected:
  DataConfig config(const std::string& keys, const std::string& fields) {
    const std::string text = "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n[data]\n" +
                             keys + "[data.train]\nfiles = ['a']\n[data.fields]\n" + fields;
    return *parse_run_config(text, folder_ / "train.toml").data;
  }
  /// A configuration with one field x, read from a single column n.
  DataConfig one_column(const std::string& functions, const std::string& more = "") {
    return config("kind = 'tsv'\ncolumns = ['n']\n" + more,
                  "x = { from = 'n', as = [" + functions + "] }\n");
  }
  void write(const std::string& text) { write_file(folder_ / "a", text); }

  static std::vector<double> values(const DataConfig& config) {
    const DataSets sets = open_data(config);
    TensorType type = sets.train->fields()[0].sample;
    type.shape.insert(type.shape.begin(), sets.train->samples());
    HostTensor result(type);
    std::vector<std::int64_t> all(static_cast<std::size_t>(sets.train->samples()));
    std::iota(all.begin(), all.end(), 0);
    sets.train->fill(0, all, nullptr, result.data());
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < type.elements(); ++i) numbers.push_back(result.number(i));
    return numbers;
  }

  TemporaryFolder folder_;
};

TEST_F(TableRefusals, PadsFitWhatIdsAreStoredIn) {
  write("3\n");
  const auto padded = [&](const std::string& pad, const std::string& function) {
    return one_column("\"split('|', max=2, pad=" + pad + ")\", '" + function + "'");
  };
  const auto refusal = [&](const std::string& pad, const std::string& function) {
    return error_of([&] { open_data(padded(pad, function)); });
  };
  EXPECT_THAT(refusal("4294967299", "vocabulary"),
              HasSubstr("split('|', max=2, pad=4294967299): `pad` does not fit: expected at most "
                        "2147483647, got 4294967299"));
  EXPECT_THAT(refusal("2147483648", "vocabulary"), HasSubstr("expected at most 2147483647"));
  EXPECT_THAT(refusal("2147483648", "bucketize(5)"), HasSubstr("expected at most 2147483647"));
  EXPECT_THAT(refusal("2147483648", "int32"), HasSubstr("expected at most 2147483647"));
  EXPECT_THAT(refusal("256", "uint8"), HasSubstr("expected at most 255"));
  EXPECT_THAT(refusal("2", "float32"), HasSubstr("`pad` is an id, but the values are numbers"));
  EXPECT_THAT(values(padded("2147483647", "vocabulary")), ElementsAre(1, 2147483647));
  EXPECT_THAT(values(padded("255", "uint8")), ElementsAre(3, 255));
  EXPECT_THAT(values(padded("4294967299", "int64")), ElementsAre(3, 4294967299));
  EXPECT_EQ(values(padded("4294967299", "hash(10)")).at(1), 4294967299);
}

TEST_F(TableRefusals, ClassesAreTheListedWordsAlone) {
  write("dog\nyak\ncat\ndog\n");
  EXPECT_THAT(values(one_column("\"classes('dog', 'cat', 'yak')\"")), ElementsAre(0, 2, 1, 0));
  EXPECT_THAT(values(one_column("\"classes('cat', 'dog', 'yak')\", 'float32'")),
              ElementsAre(1, 2, 0, 1));
  EXPECT_THAT(error_of([&] { open_data(one_column("\"classes('cat', 'dog')\"")); }),
              HasSubstr(folder_ / "a:2:1: data.fields.x: column `n`: none of the classes: expected "
                                  "\"cat\", \"dog\", got \"yak\""));
  const DataConfig skipping = one_column("\"classes('cat', 'dog')\"", "on_bad = 'skip'\n");
  EXPECT_THAT(values(skipping), ElementsAre(1, 0, 1));
  write("3\n1\n\n");
  EXPECT_THAT(values(one_column("'missing(1)', 'classes(1, 2, 3)'")), ElementsAre(2, 0));
  write("3\n\n1\n");
  EXPECT_THAT(values(one_column("'missing(1)', 'classes(1, 2, 3)'")), ElementsAre(2, 0, 0));
  EXPECT_THAT(error_of([&] { open_data(one_column("'classes(1, 2, 3)'")); }),
              HasSubstr(folder_ / "a:2:1: data.fields.x: column `n`: empty"));
  for (const char* wrong : {"classes", "classes('a')", "classes('a', '')", "classes('a', [1, 2])"})
    EXPECT_NE(error_of([&] { one_column("\"" + std::string(wrong) + "\""); }), "no error") << wrong;
  EXPECT_THAT(error_of([&] { one_column("\"classes('a', 'b', 'a')\""); }),
              HasSubstr("two classes are called 'a'"));
}

TEST_F(TableRefusals, MissingMayHaveAValueForEachColumn) {
  write("1\t\n\t4\n");
  const auto filled = [&](const std::string& with) {
    return config("kind = 'tsv'\ncolumns = ['n', 'm']\n",
                  "x = { from = ['n', 'm'], as = ['missing(" + with + ")', 'float32'] }\n");
  };
  EXPECT_THAT(values(filled("[7, -0.5]")), ElementsAre(1, -0.5, 7, 4));
  EXPECT_THAT(values(filled("[7]")), ElementsAre(1, 7, 7, 4));
  EXPECT_THAT(error_of([&] { open_data(filled("[7, 8, 9]")); }),
              HasSubstr("`missing` has 3 values for 2 columns"));
}

// Every line is a row, whatever it holds, so that predictions stand next to their lines.
TEST_F(TableRefusals, EmptyLinesAreRowsUnlessTheyEndTheFile) {
  write("1\n\n2\n\n\r\n");
  EXPECT_THAT(values(one_column("'missing(7)'")), ElementsAre(1, 7, 2));
  EXPECT_THAT(error_of([&] { open_data(one_column("")); }),
              HasSubstr(folder_ / "a:2:1: data.fields.x: column `n`: empty"));
  write("n\n1\n\"\"\n");
  EXPECT_THAT(values(config("kind = 'csv'\n", "x = { from = 'n', as = ['missing(7)'] }\n")),
              ElementsAre(1, 7));

  write("1\t2\n\n3\t4\n\n");
  const std::string two = "kind = 'tsv'\ncolumns = ['n', 'm']\n";
  EXPECT_THAT(error_of([&] { open_data(config(two, "x = 'm'\n")); }),
              HasSubstr(folder_ / "a:2:1: an empty line: expected 2 fields"));
  const DataConfig skipping = config(two + "on_bad = 'skip'\n", "x = 'm'\n");
  EXPECT_THAT(values(skipping), ElementsAre(2, 4));
  EXPECT_EQ(prepare_table(skipping, {}).train.bad(), 1);
  EXPECT_EQ(open_data(skipping).train->describe(0, 1), folder_ / "a:3");
}

TEST_F(TableRefusals, OnlyTrueOverflowIsNoNumber) {
  const std::string zeros(400, '0');
  write("1e-400\n-1e-400\n0." + zeros + "1\n1e-310\n1e-99999999999999999999\n0e999\n");
  EXPECT_THAT(values(one_column("'float64'")), ElementsAre(0, 0, 0, 1e-310, 0, 0));
  EXPECT_THAT(values(one_column("")), ElementsAre(0, 0, 0, 0, 0, 0));
  write("1e400\n-1e99999999999999999999\n1" + zeros + ".5\n1e-400x\n1e39\n");
  const std::string text = error_of([&] { open_data(one_column("")); });
  for (const char* line : {"a:1:1: ", "a:2:1: ", "a:3:1: ", "a:4:1: ", "a:5:1: "})
    EXPECT_THAT(text, HasSubstr(folder_ / line));
}

TEST_F(TableRefusals, TextIsCutBetweenCharacters) {
  const std::string before(59, 'x'), bytes(70, '\x80');
  write(before + "\u20ac\u20ac\n" + before + "y\u20ac\n" + bytes + "\n");
  const std::string text = error_of([&] { open_data(one_column("")); });
  EXPECT_THAT(text, HasSubstr("got \"" + before + "…\""));
  EXPECT_THAT(text, HasSubstr("got \"" + before + "y…\""));
  std::string shown;
  for (int i = 0; i < 57; ++i) shown += "\\x80";
  EXPECT_THAT(text, HasSubstr("got \"" + shown + "…\""));
}

TEST_F(TableRefusals, ANameThatNoHeaderHas) {
  write("price,the name\n1,2\n");
  const std::string text = error_of([&] { open_data(config("kind = 'csv'\n", "x = 'prize'\n")); });
  EXPECT_THAT(text, HasSubstr("no column `prize` in " + folder_ / "a" +
                              ": expected one of price, the name (did you mean \"price\"?)"));
}

TEST_F(TableRefusals, ACacheThatCannotBeWritten) {
  write("1\n");
  write_file(folder_ / "file", "");
  const std::string text = error_of([&] { open_data(one_column("", "cache = 'file/data'\n")); });
  EXPECT_THAT(text, HasSubstr("cannot create folder"));
  EXPECT_THAT(text, HasSubstr("(name another folder with data.cache)"));
}

TEST_F(TableRefusals, ADamagedVocabularyIsMadeAgain) {
  write("u\nv\nu\n");
  const DataConfig words = one_column("'vocabulary'");
  const PreparedTable first = prepare_table(words, {});
  ASSERT_TRUE(first.built);
  const std::string path = first.vocabularies.at(0).path, whole = read_file(path);
  std::string edited = whole;
  edited[edited.find("u\t2")] = 'w';
  write_file(path, edited);
  EXPECT_TRUE(prepare_table(words, {}).built);
  EXPECT_EQ(read_file(path), whole);
  EXPECT_FALSE(prepare_table(words, {}).built);
}

// Asked to stop at any of the places where it looks, a preparation leaves nothing.
TEST_F(TableRefusals, AnInterruptLeavesNothing) {
  write("u\nv\nu\n");
  const DataConfig words = one_column("'vocabulary(min_count=2)'");
  OpenOptions options;
  options.threads = 1;
  int stop = 1;
  for (; stop < 100; ++stop) {
    remove_all(words.table()->cache);
    int asked = 0;
    options.stop_requested = [&] { return ++asked >= stop; };
    const std::string text = error_of([&] { prepare_table(words, options); });
    if (text == "no error") break;
    EXPECT_THAT(text, HasSubstr("interrupted while the table was prepared"));
    const std::vector<std::string> tables = list_directory(words.table()->cache);
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_TRUE(list_directory(words.table()->cache + "/" + tables[0]).empty()) << stop;
  }
  EXPECT_GE(stop, 3);
  EXPECT_LT(stop, 100);
  EXPECT_FALSE(prepare_table(words, options).built);
}

TEST_F(TableRefusals, AHeaderIsNoRow) {
  const std::string words = "x = { from = ['n', 'm'], as = ['vocabulary'] }\n";
  const auto two = [&](const std::string& more = "", const std::string& names = "'n', 'm'") {
    return config("kind = 'tsv'\ncolumns = [" + names + "]\n" + more, words);
  };
  for (const char* header : {"n\tm\n", "m\t n\r\n"}) {
    write(header + std::string("u\tv\nu\tm\n"));
    EXPECT_THAT(error_of([&] { open_data(two()); }),
                HasSubstr(folder_ / "a:1:1: this row names the columns (set data.header = true)"));
    EXPECT_THAT(values(two("on_bad = 'skip'\n")), ElementsAre(1, 3, 1, 2));
  }
  write("n\tm\nu\tv\nn\tm\nu\tv\n");  // files with headers joined
  EXPECT_THAT(error_of([&] { open_data(two("header = true\n")); }),
              HasSubstr(folder_ / "a:3:1: a header among the rows (remove the line; data.on_bad = "
                                  "\"skip\" leaves it out)"));
  write("n\n1\n");
  EXPECT_THAT(error_of([&] { open_data(one_column("'vocabulary'")); }),
              HasSubstr("set data.header = true; where it is a value, give the column another"));
  write("m\nn\n");
  EXPECT_THAT(values(one_column("'vocabulary'")), ElementsAre(1, 2));
  write("0\t1\n");
  const std::string numbers = "x = { from = ['0', '1'], as = ['vocabulary'] }\n";
  EXPECT_THAT(values(config("kind = 'tsv'\ncolumns = ['0', '1']\n", numbers)), ElementsAre(1, 2));
}

TEST_F(TableRefusals, OtherFormatsAreNamed) {
  const DataConfig words = one_column("'vocabulary'", "on_bad = 'skip'\n");
  for (const auto& [bytes, name] :
       std::vector<std::pair<std::string, std::string>>{{std::string("\xfd"
                                                                     "7zXZ\0\0",
                                                                     7),
                                                         "an xz file"},
                                                        {"\x28\xb5\x2f\xfd\n", "a Zstandard file"},
                                                        {"BZh91AY&SY\n", "a bzip2 file"},
                                                        {"PK\x03\x04\n", "a zip archive"},
                                                        {std::string("\xff\xfe"
                                                                     "1\0\n\0",
                                                                     6),
                                                         "text in UTF-16"}}) {
    write(bytes);
    EXPECT_THAT(
        error_of([&] { open_data(words); }),
        HasSubstr(folder_ / "a: this is " + name + ": expected text in UTF-8, plain or gzipped"));
  }
  write("PKW\nBZh\n");
  EXPECT_THAT(values(words), ElementsAre(2, 1));
}

TEST_F(TableRefusals, ControlCharactersOfCellsSteerNoTerminal) {
  write("\x1b[31m\x7f" + std::string(1, '\0') + "ü\n");
  EXPECT_THAT(error_of([&] { open_data(one_column("")); }),
              HasSubstr("got \"\\x1b[31m\\x7f\\x00ü\""));
  write(
      "\x9b"
      "31m\xc2\x9b"
      "ü\xe2\x82\n");  // the same command as one byte, and as a character
  EXPECT_THAT(error_of([&] { open_data(one_column("")); }),
              HasSubstr("got \"\\x9b"
                        "31m\\xc2\\x9bü\\xe2\\x82\""));
}

TEST_F(TableRefusals, PatternsOfShellsAreNone) {
  DataConfig several = one_column("");
  several.train.files[0].paths = {folder_ / "day_*"};
  EXPECT_THAT(error_of([&] { open_data(several); }), HasSubstr("part_{0..9}.tsv: * and ? stand"));
}

TEST_F(TableRefusals, APipeIsReadOnce) {
  const std::string pipe = folder_ / "a";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string words = "x = { from = 'n', as = ['vocabulary'] }\n";
  EXPECT_THAT(error_of([&] { open_data(config("kind = 'csv'\n", words)); }),
              HasSubstr(pipe + ": a pipe is read once: its columns have to be known before: "
                               "expected data.columns, got a header"));
  std::thread writer([&] { std::ofstream(pipe) << "n\nu\n"; });
  EXPECT_THAT(values(config("kind = 'csv'\ncolumns = ['n']\nheader = true\n", words)),
              ElementsAre(1));
  writer.join();
}

TEST_F(TableRefusals, AFileThatChangesWhileItIsRead) {
  write("u\nv\n");
  const DataConfig words = one_column("'vocabulary'");
  set_file_hook([&](std::string_view operation, std::string_view path) {
    if (operation != "create" || !path.ends_with("train-0.0")) return;
    set_file_hook({});
    OutputFile(folder_ / "a", OutputFile::Mode::append).write("w\n");
  });
  EXPECT_THAT(error_of([&] { open_data(words); }),
              HasSubstr(folder_ / "a: the file changed while it was read"));
  set_file_hook({});
  EXPECT_THAT(values(words), ElementsAre(1, 2, 3));
}

TEST_F(TableRefusals, AManifestOfAnotherTableIsNotTaken) {
  write("u\nv\n");
  const DataConfig words = one_column("'vocabulary'");
  const std::string path = prepare_table(words, {}).folder + "/manifest.json";
  const std::string whole = read_file(path);
  for (const char* list : {"files", "fields", "vocabularies"}) {
    const std::size_t at = whole.find('[', whole.find(list));
    std::size_t end = at, depth = 0;
    do {
      depth += whole[end] == '[' ? 1 : 0;
      depth -= whole[end] == ']' ? 1 : 0;
    } while (depth > 0 && ++end < whole.size());
    write_file(path, whole.substr(0, at + 1) + whole.substr(end));
    EXPECT_TRUE(prepare_table(words, {}).built) << list;
    EXPECT_EQ(read_file(path), whole) << list;
  }
}

}  // namespace
}  // namespace tandem
