// data.train.sampler and data.train.sources: from files and keys to the samples that are read.
// Mistakes: tests/expected/data/order.txt.
#include "engine/data/order/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/config/run_config.h"
#include "tests/training/data/data_config_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::data_config;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ids_of;
using testing::TemporaryFolder;
using Samples = std::vector<std::int64_t>;

class Sampler : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  /// Rows `x` from `first` on with `kind`, `weight`.
  void write_rows(const std::string& name, int first, int count, const std::string& rest) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::to_string(first + i) + "," + rest + "\n";
    write(name, text);
  }
  DataSets open(const std::string& train, const std::string& more = "") {
    return open_data(config(train, more));
  }
  DataConfig config(const std::string& train, const std::string& more = "") {
    return data_config(folder_, "kind = 'csv'\ncolumns = ['x', 'kind', 'weight']\ntrain = {" +
                                    train + "}\n" + more +
                                    "fields = { x = { from = 'x', as = ['int64'] }, kind = { from "
                                    "= 'kind', as = ['int64'] }, weight = 'weight' }\n");
  }
  static std::int64_t count_in(const Samples& samples, std::int64_t first, std::int64_t end) {
    return std::count_if(samples.begin(), samples.end(),
                         [&](std::int64_t sample) { return sample >= first && sample < end; });
  }

  TemporaryFolder folder_;
};

TEST_F(Sampler, WeightsAreAField) {
  write("a.csv", "0,0,1\n1,0,0\n2,1,3\n3,2,0\n");
  const DataSets sets =
      open("files = ['a.csv'], sampler = { kind = 'weighted', field = 'weight', samples = 4000 }");
  EXPECT_EQ(sets.epoch_samples(), 4000);
  const Samples samples = sets.order->epoch(1, 0).samples;
  EXPECT_EQ(count_in(samples, 1, 2) + count_in(samples, 3, 4), 0);
  EXPECT_NEAR(static_cast<double>(count_in(samples, 2, 3)), 3000, 140);  // 5 standard deviations
}

TEST_F(Sampler, WeightsAreThoseOfClasses) {
  write("a.csv", "0,0,1\n1,0,1\n2,1,1\n3,2,1\n");
  const DataSets sets = open(
      "files = ['a.csv'], sampler = { kind = 'weighted', field = 'kind', class_weights = [1, 2, "
      "0], "
      "samples = 4000 }");
  const Samples samples = sets.order->epoch(1, 0).samples;
  EXPECT_EQ(count_in(samples, 3, 4), 0);
  EXPECT_NEAR(static_cast<double>(count_in(samples, 2, 3)), 2000, 160);
}

TEST_F(Sampler, BalancedReadsAsManySamplesAsThereAre) {
  write("a.csv", "0,0,1\n1,0,1\n2,0,1\n3,7,1\n");
  const DataSets sets = open("files = ['a.csv'], sampler = { kind = 'balanced', field = 'kind' }");
  EXPECT_EQ(sets.epoch_samples(), 4);
  std::int64_t of_seven = 0;
  for (std::int64_t epoch = 0; epoch < 1000; ++epoch)
    of_seven += count_in(sets.order->epoch(1, epoch).samples, 3, 4);
  EXPECT_NEAR(static_cast<double>(of_seven), 2000, 160);
}

TEST_F(Sampler, AShuffleOfTheCommandLineTakesNoOptionsOfTheFile) {
  const std::string file =
      "model = 'm.onnx'\nsteps = 1\noptimizer = { kind = 'sgd' }\n[data]\nkind = 'csv'\n"
      "train = { files = ['a.csv'], sampler = { kind = 'weighted', field = 'weight', samples = 9 } "
      "}\n"
      "[data.fields]\nx = 'x'\n";
  const RunConfig run =
      parse_run_config(file, folder_ / "train.toml", {"data.train.sampler.kind=shuffle"});
  ASSERT_TRUE(run.data.has_value());
  EXPECT_EQ(run.data->sampler, SamplerConfig{});
  EXPECT_EQ(run.notes.size(), 2u);
}

TEST_F(Sampler, SourcesAreMixedByWeight) {
  write_rows("a.csv", 0, 30, "0,1");
  write_rows("b0.csv", 100, 12, "0,1");
  write_rows("b1.csv", 200, 8, "0,1");
  const std::string sources =
      "sources = [ { files = ['a.csv'], weight = 3 }, { files = ['b{0,1}.csv'] } ]";
  std::string told;
  OpenOptions options;
  options.on_message = [&](const std::string& text) { told += text; };
  const DataSets last = open_data(config(sources), options);
  EXPECT_THAT(told, AllOf(HasSubstr("from the 30 of source 1 (a.csv), 20 from the 20 of source 2 "
                                    "(b0.csv, …); it ends where the last of them")));
  const DataSets first = open(sources + ", epoch_end = 'first'");
  EXPECT_EQ(last.train->samples(), 50);
  // 20 samples that get a quarter of the places are read after 80 of them, 30 with three quarters
  // after 40.
  EXPECT_NEAR(static_cast<double>(last.epoch_samples()), 80, 2);
  EXPECT_EQ(first.epoch_samples(), 40);
  const Samples samples = last.order->epoch(1, 0).samples;
  EXPECT_EQ(count_in(samples, 30, 50), 20);
  EXPECT_NEAR(static_cast<double>(count_in(samples, 0, 30)), 60, 2);
  EXPECT_THAT(ids_of(*last.train, "x", 29), ElementsAre(29));
  EXPECT_THAT(ids_of(*last.train, "x", 30), ElementsAre(100));
}

TEST_F(Sampler, SourcesLoseWhatIsHeldOut) {
  write_rows("a.csv", 0, 30, "0,1");
  write_rows("b.csv", 100, 30, "0,1");
  const DataConfig data = config("sources = [ { files = ['a.csv'] }, { files = ['b.csv'] } ]",
                                 "eval = { fraction = 0.5 }\n");
  const DataSets sets = open_data(data);
  const std::vector<SourceShare> shares = source_shares(data, *sets.train);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].count + shares[1].count, 30);
  EXPECT_EQ(shares[1].first, shares[0].count);
  EXPECT_LT(ids_of(*sets.train, "x", shares[1].first - 1)[0], 100);
  EXPECT_GE(ids_of(*sets.train, "x", shares[1].first)[0], 100);
}

}  // namespace
}  // namespace tandem
