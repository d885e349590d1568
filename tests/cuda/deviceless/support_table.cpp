// The questions to cuDNN and its answers as text.
#include "tests/cuda/deviceless/support_table.h"

#include <dlfcn.h>

#include "engine/graph/error.h"

namespace tandem::testing {
namespace {

constexpr const char *own_kernel = "own", *no_engine = "none", *no_plan = "no plan";

std::string bytes_text(std::size_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  double amount = static_cast<double>(bytes);
  int unit = 0;
  while (amount >= 1024 && unit < 3) amount /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || amount >= 100 ? "%.0f %s" : "%.1f %s", amount,
                units[unit]);
  return text;
}

/// "38, 131 B": number of engines that the rules allow, workspace of the chosen one.
std::string cell(cuda::Plans& plans, const cuda::NetworkGraph& graph,
                 const cuda::EngineRules& rules) {
  if (graph.operations().empty()) return own_kernel;
  const cuda::EngineCount count = plans.count(graph, rules);
  if (count.allowed == 0) return no_engine;
  try {
    const auto plan = plans.plan(graph, rules);
    return std::to_string(count.allowed) + ", " + bytes_text(plan->workspace_bytes) +
           (plan->is_compiled ? ", c" : "");
  } catch (const Error&) {
    return no_plan;
  }
}

}  // namespace

DevicelessCudnn open_deviceless_cudnn() {
  DevicelessCudnn result;
  // Libraries get the library that is already loaded as libcuda.so.1.
  if (::dlopen(TANDEM_DRIVER_WITHOUT_CARD, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* text = ::dlerror();
    result.problem = text != nullptr ? text : "the driver without a GPU cannot be opened";
    return result;
  }
  result.libraries = cuda::make_real_libraries();
  result.table = result.libraries->cudnn();
  if (result.table != nullptr) return result;
  result.problem = "cuDNN cannot be used";
  for (const FoundLibrary& library : result.libraries->report()) {
    if (library.name == "cuDNN")
      result.problem += ": " + library.problem + " (" + library.fix + ")";
  }
  return result;
}

std::string DevicelessCudnn::version() const {
  const std::size_t number = table->cudnnGetVersion();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

SupportTable::SupportTable(const cuda::Cudnn& cudnn) {
  for (const DescribedGpu& gpu : described_gpus())
    gpus_.push_back(cuda::Plans::described(cudnn, gpu.properties));
  counts_.resize(std::size(all_numbers) * gpus_.size());
}

namespace {

/// The head of a table: these columns, then those that every table has.
std::string head_after(const std::string& first, const std::string& first_rule) {
  std::string names = first, rule = first_rule;
  for (const Numbers numbers : all_numbers) {
    for (const DescribedGpu& gpu : described_gpus()) {
      names += " " + name_of(numbers) + " " + gpu.name.substr(0, gpu.name.find(' ')) + " |";
      rule += "---|";
    }
  }
  return names + "\n" + rule + "\n";
}

}  // namespace

std::string SupportTable::head() { return head_after("| operation | uses |", "|---|---|"); }

std::string SupportTable::line(const Question& question) {
  std::string text = "| " + question.operation + " | " + std::to_string(question.uses) + " |";
  auto count = counts_.begin();
  for (const Numbers numbers : all_numbers) {
    const auto at = static_cast<std::size_t>(numbers);
    for (const auto& gpu : gpus_) {
      const std::string said = cell(*gpu, question.graphs[at], question.rules[at]);
      text += " " + said + " |";
      const bool own = said == own_kernel;
      count->own += own;
      count->asked += !own;
      count->accepted += !own && said != no_engine && said != no_plan;
      ++count;
    }
  }
  return text + "\n";
}

std::string SupportTable::summary() const {
  std::string text = head_after("| different graphs |", "|---|");
  const auto row = [&](const std::string& name, int Count::*what) {
    text += "| " + name + " |";
    for (const Count& count : counts_) text += " " + std::to_string(count.*what) + " |";
    text += "\n";
  };
  row("asked of cuDNN", &Count::asked);
  row("accepted, with a plan", &Count::accepted);
  row("not asked: a kernel of Tandem's own", &Count::own);
  return text;
}

std::string title(const std::string& version) {
  return "# What cuDNN " + version + " computes of well-known models\n";
}

}  // namespace tandem::testing
