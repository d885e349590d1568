#include "importer/training_info/check.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem::importer {
namespace {

using Names = std::unordered_set<std::string_view>;
using Binding = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;

class Bindings {
 public:
  explicit Bindings(const OnnxFile::Content& content) : content_(content) {
    const onnx::ModelProto& model = *content_.model;
    for (const onnx::GraphProto* graph : {&model.graph(), &info().algorithm()}) {
      for (const onnx::TensorProto& tensor : graph->initializer()) states_.insert(tensor.name());
      for (const onnx::ValueInfoProto& output : graph->output()) steps_.insert(output.name());
    }
    for (const onnx::ValueInfoProto& output : info().initialization().output())
      starts_.insert(output.name());
  }

  void run() const {
    if (info().initialization().input_size() > 0) {
      fail("training_info.initialization", "the initialization graph has an input", "no inputs",
           info().initialization().input(0).name());
    }
    check("training_info.initialization_binding", info().initialization_binding(), starts_,
          "an output of training_info.initialization");
    check("training_info.update_binding", info().update_binding(), steps_,
          "an output of training_info.algorithm or of the graph");
    if (info().update_binding().empty()) {
      fail("training_info.update_binding", "there is no binding: no step would change anything",
           "an initializer and its new value for each parameter");
    }
    check_cycles();
  }

 private:
  const onnx::TrainingInfoProto& info() const { return content_.model->training_info(0); }

  [[noreturn]] void fail(const std::string& where, std::string message, std::string expected = "",
                         std::string got = "", std::string fix = "") const {
    refuse(content_.path, where, std::move(message), std::move(expected), std::move(got),
           std::move(fix));
  }

  [[noreturn]] void unknown(const std::string& where, std::string message, std::string expected,
                            const std::string& got, const Names& known) const {
    const std::vector<std::string> names(known.begin(), known.end());
    fail(where, std::move(message), std::move(expected), "'" + got + "'",
         did_you_mean(nearest_name(got, names), "", "'"));
  }

  void check(const std::string& where, const Binding& binding, const Names& values,
             const char* expected) const {
    Names keys;
    for (const onnx::StringStringEntryProto& entry : binding) {
      if (states_.count(entry.key()) == 0) {
        unknown(where, "a binding has a key that is no initializer",
                "an initializer of the graph or of training_info.algorithm", entry.key(), states_);
      }
      if (values.count(entry.value()) == 0) {
        unknown(where,
                fmt::format("the binding of '{}' has a value that is no output", entry.key()),
                expected, entry.value(), values);
      }
      if (!keys.insert(entry.key()).second)
        fail(where, fmt::format("two bindings have the key '{}'", entry.key()));
    }
  }

  // A state may take what another one was; two that exchange their values have no order in which
  // each is still there when the other takes it.
  void check_cycles() const {
    std::unordered_map<std::string_view, std::string_view> from;
    for (const onnx::StringStringEntryProto& entry : info().update_binding())
      from.emplace(entry.key(), entry.value());
    for (const auto& [key, value] : from) {
      std::string path(key);
      std::string_view at = value;
      for (std::size_t i = 0; i < from.size(); ++i) {
        path += fmt::format(" takes {}", at);
        if (at == key && value == key) break;  // stays as it is
        if (at == key) {
          fail("training_info.update_binding",
               "the update is cyclic: initializers that take each "
               "other's values",
               "values that nodes make", path, "let an Identity make each value");
        }
        const auto next = from.find(at);
        if (next == from.end()) break;
        at = next->second;
        path += ", which";
      }
    }
  }

  const OnnxFile::Content& content_;
  Names states_, steps_, starts_;
};

}  // namespace

void check_bindings(const OnnxFile::Content& content) { Bindings(content).run(); }

}  // namespace tandem::importer
