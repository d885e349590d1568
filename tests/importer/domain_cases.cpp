#include "tests/importer/domain_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/files.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "tests/harness/folders.h"
#include "tests/importer/json_nodes.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

Json read(const DomainCases& cases) {
  return Json::parse(read_file(source_folder() + "/tests/data/" + cases.file)).at("cases");
}

void add_domain(ModelMaker& m, const std::string& domain, int version) {
  onnx::OperatorSetIdProto& set = *m.model.add_opset_import();
  set.set_domain(domain);
  set.set_version(version);
}

struct DomainCase {
  ModelMaker model;
  ImportOptions options = with_evaluator();
  NamedTensors feeds;

  DomainCase(const Json& json, const DomainCases& cases) : model(json.at("opset").get<int>()) {
    add_domain(model, cases.domain, cases.version);
    std::vector<std::string> names, results;
    for (const Json& entry : json.at("inputs")) {
      names.push_back(entry.is_null() ? "" : fmt::format("x{}", names.size()));
      if (entry.is_null()) continue;
      const HostTensor tensor = tensor_of(entry);
      model.input(names.back(), tensor.shape(), importer::dtype_to_onnx(tensor.dtype()));
      feeds.emplace_back(names.back(), tensor);
    }
    for (const Json& entry : json.at("outputs")) {
      results.push_back(entry.is_null() ? "" : fmt::format("y{}", results.size()));
      if (entry.is_object()) model.output(results.back());  // else text, or absent
    }
    onnx::NodeProto& node = model.node(json.at("op"), names, results);
    node.set_domain(json.at("domain"));
    for (const auto& [name, value] : json.at("attributes").items()) {
      set_attribute(node, name, value);
    }
  }
};

}  // namespace

void expect_onnxruntimes_results(const DomainCases& cases) {
  for (const Json& json : read(cases)) {
    SCOPED_TRACE(json.at("op").get<std::string>() + ": " + json.at("name").get<std::string>());
    try {
      const DomainCase c(json, cases);
      const Graph graph = import_graph(c.model.file(), engine_operators(), c.options).graph;
      ASSERT_NO_THROW(verify(graph)) << to_text(graph);
      const NamedTensors got = run_graph(graph, c.feeds);
      std::size_t next = 0;
      for (const Json& entry : json.at("outputs")) {
        if (!entry.is_object()) continue;
        const auto& [name, y] = got.at(next++);
        const HostTensor want = tensor_of(entry);
        ASSERT_EQ(y.type(), want.type()) << name;
        for (std::int64_t i = 0; i < want.type().elements(); ++i) {
          EXPECT_NEAR(y.number(i), want.number(i), 1e-5) << name << ", element " << i;
        }
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

std::string operators_without_case(const DomainCases& cases, const std::string& others) {
  std::set<std::string> proven{cases.domain + "::" + others};
  for (const Json& json : read(cases)) {
    proven.insert(cases.domain + "::" + json.at("op").get<std::string>());
  }
  std::string missing;
  for (const importer::Lowering& lowering : importer::lowerings_of(cases.domain)) {
    if (proven.count(lowering.op) == 0) missing += std::string(lowering.op) + " ";
  }
  return missing;
}

std::string error_of_nodes(const std::string& domain, int version,
                           const std::function<void(ModelMaker&)>& make) {
  ModelMaker m(17);
  add_domain(m, domain, version);
  m.input("x", {2, 4}).output("y");
  make(m);
  return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
}

}  // namespace tandem::testing
