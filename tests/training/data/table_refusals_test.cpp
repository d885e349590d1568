// What damage, interrupts, pipes and changes of files leave of a prepared table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>
#include <numeric>
#include <thread>

#include "engine/config/keys/config_check.h"
#include "engine/data/data_source.h"
#include "engine/data/prepare_table.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
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
  DataConfig one_column(const std::string& functions) {
    return config("kind = 'tsv'\ncolumns = ['n']\n",
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
