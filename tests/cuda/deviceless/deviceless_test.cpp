// Compares some lines of the committed table of what cuDNN supports with the library's answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/cuda/deviceless/support_table.h"
#include "tests/harness/folders.h"

// Read by the leak checker. Where there is no driver, cuDNN keeps the handles of cuBLASLt that it
// failed to create.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcudnn_engines_precompiled\n";
}

namespace tandem::testing {
namespace {

const std::string table_path = source_folder() + "/docs/gpu/cudnn.md";

const DevicelessCudnn& cudnn() {
  static const DevicelessCudnn opened = open_deviceless_cudnn();
  return opened;
}

std::string table_text() {
  std::ifstream file(table_path);
  return {std::istreambuf_iterator<char>(file), {}};
}

#define SKIP_WITHOUT_CUDNN() \
  if (!cudnn().problem.empty()) GTEST_SKIP() << cudnn().problem

struct Key {
  const char* section;  // the section's beginning
  const char* operation;
};
/// The first, last and unusual lines of each network and pass. A line has every type and GPU.
constexpr const char *forward = "ResNet-50, batch 256: forward",
                     *of_input = "ResNet-50, batch 256: gradient of the input",
                     *of_weight = "ResNet-50, batch 256: gradient of the weight",
                     *folded = "ResNet-50, batch 256: forward with its epilogue",
                     *bert = "BERT-base, batch 32", *gpt_small = "GPT, 12 layers";
constexpr Key keys[] = {
    {forward, "7 × 7, stride 2, 3 to 64, map 224"},
    {forward, "3 × 3, 64 to 64, map 56"},
    {forward, "1 × 1, 256 to 64, map 56"},
    {forward, "1 × 1, stride 2, 256 to 512, map 56"},
    {forward, "3 × 3, stride 2, 512 to 512, map 14"},
    {forward, "1 × 1, 2048 to 512, map 7"},
    {of_input, "3 × 3, 64 to 64, map 56"},
    {of_input, "1 × 1, stride 2, 256 to 512, map 56"},
    {of_input, "3 × 3, stride 2, 512 to 512, map 14"},
    {of_input, "1 × 1, 2048 to 512, map 7"},
    {of_weight, "7 × 7, stride 2, 3 to 64, map 224"},
    {of_weight, "3 × 3, 64 to 64, map 56"},
    {of_weight, "1 × 1, stride 2, 256 to 512, map 56"},
    {of_weight, "1 × 1, 2048 to 512, map 7"},
    {folded, "7 × 7, stride 2, 3 to 64, map 224, bias, Relu"},
    {folded, "3 × 3, 64 to 64, map 56, bias, Relu"},
    {folded, "1 × 1, 64 to 256, map 56, bias, residual, Relu"},
    {bert, "sequence 128, masked"},
    {bert, "gradient, deterministic; sequence 128, masked"},
    {bert, "gradient, not deterministic; sequence 128, masked"},
    {bert, "sequence 512, no mask"},
    {bert, "gradient, deterministic; sequence 512, no mask"},
    {gpt_small, "sequence 1024, causal"},
    {gpt_small, "gradient, deterministic; sequence 1024, causal"},
    {gpt_small, "gradient, not deterministic; sequence 1024, causal"},
};

TEST(Deviceless, TheTableIsWhatCudnnSays) {
  SKIP_WITHOUT_CUDNN();
  const std::string text = table_text();
  ASSERT_FALSE(text.empty()) << table_path;
  if (!text.starts_with(title(cudnn().version()))) {
    GTEST_SKIP() << "the table is of another version than " << cudnn().version()
                 << ": cudnn_support writes it anew";
  }
  SupportTable table(*cudnn().table);
  const std::vector<Question> questions = all_questions();
  for (const Key& key : keys) {
    SCOPED_TRACE(std::string(key.section) + ": " + key.operation);
    const auto question = std::find_if(questions.begin(), questions.end(), [&](const Question& q) {
      return q.operation == key.operation && q.section.starts_with(key.section);
    });
    ASSERT_TRUE(question != questions.end()) << "nobody asks this any more";
    const std::string line = table.line(*question);
    const std::size_t section = text.find("\n## " + question->section + "\n");
    ASSERT_NE(section, std::string::npos);
    const std::size_t end = std::min(text.find("\n## ", section + 1), text.size());
    EXPECT_NE(text.substr(section, end - section).find("\n" + line), std::string::npos)
        << "cuDNN says " << line;
  }
}

TEST(Deviceless, EveryQuestionIsInTheTable) {
  const std::string text = table_text();
  ASSERT_FALSE(text.empty()) << table_path;
  for (const Question& question : all_questions()) {
    EXPECT_NE(text.find("| " + question.operation + " | " + std::to_string(question.uses) + " |"),
              std::string::npos)
        << question.operation;
  }
  EXPECT_EQ(text.find(" none |"), std::string::npos) << "a kernel counts on what cuDNN refuses";
  EXPECT_EQ(text.find("no plan"), std::string::npos);
}

// The page's summary: as many graphs were accepted as the networks have.
TEST(Deviceless, EveryGraphIsAccepted) {
  std::string numbers;
  for (const Numbers type : all_numbers) {
    int graphs = 0;
    for (const Question& question : all_questions())
      graphs += !question.graphs[static_cast<std::size_t>(type)].operations().empty();
    EXPECT_GT(graphs, 90);
    for (std::size_t gpu = 0; gpu < described_gpus().size(); ++gpu)
      numbers += " " + std::to_string(graphs) + " |";
  }
  const std::string text = table_text();
  EXPECT_NE(text.find("\n| asked of cuDNN |" + numbers + "\n"), std::string::npos) << numbers;
  EXPECT_NE(text.find("\n| accepted, with a plan |" + numbers + "\n"), std::string::npos);
}

// The checks above mean something only if cuDNN refuses what it cannot do.
TEST(Deviceless, CudnnRefusesWhatItCannotDo) {
  SKIP_WITHOUT_CUDNN();
  const auto gpu = cuda::Plans::described(*cudnn().table, described_gpus().back().properties);
  cuda::NetworkGraph odd;  // a product whose operands do not fit
  const cuda::TensorId a = odd.tensor(CUDNN_DATA_HALF, {1, 8, 16}, {128, 16, 1});
  const cuda::TensorId b = odd.tensor(CUDNN_DATA_HALF, {1, 24, 8}, {192, 8, 1});
  const cuda::TensorId y = odd.tensor(CUDNN_DATA_HALF, {1, 8, 8}, {64, 8, 1});
  odd.product(a, b, y);
  const cuda::EngineCount count = gpu->count(odd, {});
  EXPECT_EQ(count.allowed, 0);
  EXPECT_NE(count.problem, "");
}

}  // namespace
}  // namespace tandem::testing

#undef SKIP_WITHOUT_CUDNN
