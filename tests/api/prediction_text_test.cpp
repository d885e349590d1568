// Words in predictions as text: each stays one cell, whatever it contains.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "api/predict/prediction_output.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

std::string written_as(const std::string& ending) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / ("words" + ending);
  PredictedArray labels;
  labels.name = "label";
  labels.sample = {DType::int64, {}};
  labels.words = {"a\tb", "c\nd", "e,\"f\""};
  const std::unique_ptr<PredictionFile> file = open_text_predictions(path, true);
  file->start({labels});
  file->add({HostTensor::from<std::int64_t>({3}, {0, 1, 2})}, 0, 3);
  file->finish();
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(PredictionText, EscapesWordsInTsv) {
  EXPECT_EQ(written_as(".tsv"), "label\na\\tb\nc\\nd\ne,\"f\"\n");
}

TEST(PredictionText, QuotesWordsInCsv) {
  EXPECT_EQ(written_as(".csv"), "label\na\tb\n\"c\nd\"\n\"e,\"\"f\"\"\"\n");
}

}  // namespace
}  // namespace tandem::api
