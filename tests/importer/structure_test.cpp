// Which parts of a model file count as its structure, and which do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "importer/file/structure.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace tandem::testing;

using Edit = std::function<void(ModelMaker&)>;

/// image [1, 4, 4] -> Conv -> two branches -> Add -> Mul by a constant -> y.
ModelMaker branched() {
  ModelMaker m;
  m.input("image", {1, 1, 4, 4}).output("y");
  m.weight("w", {2, 1, 1, 1}).weight("b", {2});
  onnx::NodeProto& conv = m.node("Conv", {"image", "w", "b"}, {"c"});
  conv.set_name("conv");
  set(conv, "dilations", std::vector<std::int64_t>{1, 1});
  m.node("Relu", {"c"}, {"left"}).set_name("relu");
  m.node("Tanh", {"c"}, {"right"}).set_name("tanh");
  m.node("Add", {"left", "right"}, {"sum"}).set_name("add");
  onnx::NodeProto& half = m.node("Constant", {}, {"half"});
  set(half, "value_float", 0.5);
  m.node("Mul", {"sum", "half"}, {"y"}).set_name("mul");
  return m;
}

onnx::NodeProto& node_named(ModelMaker& m, const std::string& name) {
  for (onnx::NodeProto& node : *m.graph().mutable_node()) {
    if (node.name() == name) return node;
  }
  throw std::runtime_error("no node " + name);
}

ModelStructure structure(const ModelMaker& m, const std::vector<std::string>& values = {}) {
  return structure_of(m.file(), values);
}

/// The first difference that the edit of `m` makes, or "none".
std::string change(const ModelMaker& m, const Edit& edit,
                   const std::vector<std::string>& values = {}) {
  ModelMaker edited;
  edited.model = m.model;
  edit(edited);
  const auto difference = first_difference(structure(m, values), structure(edited, values));
  return difference ? to_string(*difference) : "none";
}
std::string change(const Edit& edit, const std::vector<std::string>& values = {}) {
  return change(branched(), edit, values);
}

TEST(StructureTest, NamesOfOperatorsAndInnerValuesDoNotCount) {
  EXPECT_EQ(change([](ModelMaker& m) {
              m.model.set_producer_name("another exporter");
              m.model.set_doc_string("text");
              for (onnx::NodeProto& node : *m.graph().mutable_node()) {
                node.set_name(node.name() + "_renamed");
                node.set_doc_string("text");
                for (std::string& input : *node.mutable_input())
                  if (input == "c" || input == "sum") input += "_renamed";
                for (std::string& output : *node.mutable_output())
                  if (output == "c" || output == "sum") output += "_renamed";
              }
            }),
            "none");
}

TEST(StructureTest, TheOrderInTheFileDoesNotCount) {
  EXPECT_EQ(change([](ModelMaker& m) {
              m.graph().mutable_node()->SwapElements(1, 2);  // relu, tanh
              m.graph().mutable_initializer()->SwapElements(0, 1);
            }),
            "none");
}

TEST(StructureTest, WhatReachesNoOutputDoesNotCount) {
  EXPECT_EQ(change([](ModelMaker& m) { m.node("Exp", {"c"}, {"unused"}); }), "none");
}

TEST(StructureTest, TheBatchOfTheFileDoesNotCount) {
  const Edit other_batch = [](ModelMaker& m) {
    m.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_value(32);
  };
  EXPECT_EQ(change(other_batch), "none");
  EXPECT_EQ(change([](ModelMaker& m) {
              m.graph()
                  .mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape()
                  ->mutable_dim(2)
                  ->set_dim_value(8);
            }),
            "input image: type float32 [batch, 1, 4, 4], now type float32 [batch, 1, 8, 4]");
}

TEST(StructureTest, ValuesOfParametersDoNotCountTheirShapesDo) {
  EXPECT_EQ(change([](ModelMaker& m) {
              onnx::TensorProto& w = *m.graph().mutable_initializer(0);
              ASSERT_GT(w.float_data_size() + static_cast<int>(w.raw_data().size()), 0);
              w.clear_raw_data();
              w.clear_float_data();
              for (const float value : {7.0f, 8.0f}) w.add_float_data(value);
            }),
            "none");
  const std::string text = change([](ModelMaker& m) {
    ModelMaker other;
    other.weight("w", {2, 1, 3, 3});
    *m.graph().mutable_initializer(0) = other.graph().initializer(0);
  });
  EXPECT_EQ(text, "initializer w: type float32[2, 1, 1, 1], now type float32[2, 1, 3, 3]");
}

TEST(StructureTest, ChangesAreNamed) {
  EXPECT_EQ(change([](ModelMaker& m) { node_named(m, "relu").set_op_type("Sigmoid"); }),
            "operator 2 (relu): operator Relu, version 14, now operator Sigmoid, version 13");
  EXPECT_EQ(
      change([](ModelMaker& m) { node_named(m, "conv").mutable_attribute(0)->set_ints(1, 2); }),
      "operator 1 (conv): attribute dilations [1, 1], now attribute dilations [1, 2]");
  EXPECT_EQ(change([](ModelMaker& m) { node_named(m, "conv").clear_attribute(); }),
            "operator 1 (conv): attribute dilations [1, 1], now none");
  EXPECT_EQ(
      change([](ModelMaker& m) { m.graph().mutable_node(4)->mutable_attribute(0)->set_f(2); }),
      "operator 5 (Constant → half): attribute value_float 0.5, now attribute value_float 2");
  EXPECT_EQ(change([](ModelMaker& m) {
              node_named(m, "add").set_input(0, "right");
              node_named(m, "add").set_input(1, "right");
            }),
            "operator 2 (tanh): operator Relu, version 14, now operator Tanh, version 13");
  EXPECT_EQ(
      change([](ModelMaker& m) { node_named(m, "mul").set_input(0, "left"); }),
      "operator 3 (Constant → half): operator Tanh, version 13, inputs operator 1, now operator "
      "Constant, version 19, attribute value_float 0.5, inputs none");
  EXPECT_EQ(
      change([](ModelMaker& m) { node_named(m, "add").set_input(1, "left"); }),
      "operator 3 (add): operator Tanh, version 13, inputs operator 1, now operator Add, version "
      "14, inputs operator 2, operator 2");
  EXPECT_EQ(change([](ModelMaker& m) { node_named(m, "mul").set_input(1, "sum"); }),
            "operator 5 (mul): operator Constant, version 19, attribute value_float 0.5, inputs "
            "none, now "
            "operator Mul, version 14, inputs operator 4, operator 4");
  EXPECT_EQ(change([](ModelMaker& m) {
              node_named(m, "mul").set_output(0, "inner");
              m.node("Identity", {"inner"}, {"y"}).set_name("same");
            }),
            "operator 7 (same): output y, now operator 7 (same)");
}

TEST(StructureTest, SwappedInputsAreNamedByTheNumbersOfTheirOperators) {
  ModelMaker m;
  m.input("x", {1, 3}).output("y");
  m.node("Relu", {"x"}, {"r"}).set_name("relu");
  m.node("Sub", {"x", "r"}, {"y"}).set_name("sub");
  EXPECT_EQ(change(m,
                   [](ModelMaker& edited) {
                     node_named(edited, "sub").set_input(0, "r");
                     node_named(edited, "sub").set_input(1, "x");
                   }),
            "operator 2 (sub): inputs \"x\", operator 1, now inputs operator 1, \"x\"");
}

TEST(StructureTest, ONNXsDefaultsMayBeWritten) {
  EXPECT_EQ(change([](ModelMaker& m) {
              set(node_named(m, "conv"), "auto_pad", std::string("NOTSET"));
              set(node_named(m, "conv"), "group", std::int64_t{1});
            }),
            "none");
}

TEST(StructureTest, TheOperatorsVersionCountsNotTheFiles) {
  ModelMaker m(13);
  m.input("x", {1, 3}).output("y");
  m.node("Softmax", {"x"}, {"y"});
  const auto with_opset = [](std::int64_t version) {
    return [version](ModelMaker& edited) {
      edited.model.mutable_opset_import(0)->set_version(version);
    };
  };
  EXPECT_EQ(change(m, with_opset(14)), "none");  // Softmax is the same from 13 on
  EXPECT_EQ(change(m, with_opset(12)), "operator 1 (Softmax → y): version 13, now version 11");
}

TEST(StructureTest, ConstantsCountHoweverTheyAreStored) {
  ModelMaker m;
  m.input("x", {1, 12}).output("y");
  m.integers("shape", {1, 3, 4});
  m.node("Reshape", {"x", "shape"}, {"y"});
  const auto stored = [](const std::vector<std::int64_t>& values, bool raw) {
    return [values, raw](ModelMaker& edited) {
      onnx::TensorProto& shape = *edited.graph().mutable_initializer(0);
      shape.clear_int64_data();
      shape.clear_raw_data();
      for (const std::int64_t value : values) {
        if (!raw) shape.add_int64_data(value);
        if (raw) shape.mutable_raw_data()->append(reinterpret_cast<const char*>(&value), 8);
      }
    };
  };
  EXPECT_EQ(change(m, stored({1, 3, 4}, true)), "none");
  EXPECT_EQ(change(m, stored({1, 3, 4}, false)), "none");
  EXPECT_EQ(change(m, stored({1, 4, 3}, false)),
            "initializer shape: values [1, 3, 4], now values [1, 4, 3]");
}

/// If on a constant over x, whose branches are a LeakyRelu and a Neg.
ModelMaker choice() {
  ModelMaker m;
  m.input("x", {1, 3}).output("y");
  onnx::TensorProto& yes = *m.graph().add_initializer();
  yes.set_name("yes");
  yes.set_data_type(onnx::TensorProto::BOOL);
  yes.add_int32_data(1);
  m.node("Relu", {"x"}, {"r"}).set_name("relu");
  onnx::NodeProto& node = m.node("If", {"yes"}, {"y"});
  node.set_name("choice");
  for (const char* name : {"then_branch", "else_branch"}) {
    ModelMaker branch;
    const bool first = std::string(name) == "then_branch";
    onnx::NodeProto& inner = branch.node(first ? "LeakyRelu" : "Neg", {"r"}, {std::string(name)});
    if (first) set(inner, "alpha", 0.25);
    branch.output(name);
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    *attribute.mutable_g() = branch.model.graph();
  }
  return m;
}

TEST(StructureTest, GraphsInsideOfOperatorsCount) {
  const auto branch = [](ModelMaker& m, int i) -> onnx::GraphProto& {
    return *m.graph().mutable_node(1)->mutable_attribute(i)->mutable_g();
  };
  EXPECT_EQ(change(choice(),
                   [&](ModelMaker& m) {
                     branch(m, 0).mutable_node(0)->mutable_attribute(0)->set_f(0.5);
                   }),
            "operator 2.then_branch.1 (LeakyRelu → then_branch): attribute alpha 0.25, now "
            "attribute alpha 0.5");
  EXPECT_THAT(
      change(choice(), [&](ModelMaker& m) { branch(m, 1).mutable_node(0)->set_input(0, "x"); }),
      HasSubstr("inputs operator 1, now inputs \"x\""));
  EXPECT_EQ(change(choice(),
                   [&](ModelMaker& m) {
                     branch(m, 0).mutable_node(0)->set_output(0, "renamed");
                     branch(m, 0).mutable_output(0)->set_name("renamed");
                     branch(m, 0).set_name("renamed");
                   }),
            "none");
}

TEST(StructureTest, FunctionsThatAreCalledCount) {
  ModelMaker m;
  onnx::OperatorSetIdProto& own = *m.model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  for (const char* name : {"f", "unused"}) {
    onnx::FunctionProto& f = *m.model.add_functions();
    f.set_name(name);
    f.set_domain("own");
    f.add_input("a");
    f.add_output("b");
    f.add_attribute("slope");
    f.add_opset_import()->set_version(20);
    onnx::NodeProto& body = *f.add_node();
    body.set_op_type("LeakyRelu");
    body.add_input("a");
    body.add_output("b");
    onnx::AttributeProto& alpha = *body.add_attribute();
    alpha.set_name("alpha");
    alpha.set_type(onnx::AttributeProto::FLOAT);
    alpha.set_ref_attr_name("slope");
  }
  m.input("x", {1, 3}).output("y");
  onnx::NodeProto& call = m.node("f", {"x"}, {"y"});
  call.set_domain("own");
  set(call, "slope", 0.25);
  const auto body = [](ModelMaker& edited, int i) {
    return edited.model.mutable_functions(i)->mutable_node(0);
  };
  EXPECT_EQ(change(m, [&](ModelMaker& edited) { body(edited, 1)->set_op_type("Elu"); }), "none");
  EXPECT_EQ(
      change(m, [&](ModelMaker& edited) { body(edited, 0)->set_op_type("Elu"); }),
      "operator own::f.1 (Elu → b): operator LeakyRelu, version 16, now operator Elu, version 6");
  EXPECT_EQ(change(m,
                   [&](ModelMaker& edited) {
                     body(edited, 0)->set_input(0, "renamed");
                     edited.model.mutable_functions(0)->set_input(0, "renamed");
                   }),
            "none");
  EXPECT_THAT(change(m,
                     [&](ModelMaker& edited) {
                       edited.graph().mutable_node(0)->mutable_attribute(0)->set_f(0.5);
                     }),
              HasSubstr("attribute slope 0.25, now attribute slope 0.5"));
}

TEST(StructureTest, InnerValuesThatTheConfigurationNamesCount) {
  const Edit swap_names = [](ModelMaker& m) {  // nothing but the names of two values
    for (onnx::NodeProto& node : *m.graph().mutable_node()) {
      const auto swap = [](std::string& name) {
        name = name == "left" ? "right" : name == "right" ? "left" : name;
      };
      for (std::string& input : *node.mutable_input()) swap(input);
      for (std::string& output : *node.mutable_output()) swap(output);
    }
  };
  EXPECT_EQ(change(swap_names), "none");
  EXPECT_EQ(change(swap_names, {"left", "y"}),
            "value left: made by operator 2, now made by operator 3");
}

TEST(StructureTest, InitializersInOnePlaceOfAFileAreOne) {
  ScratchFolder folder;
  folder.write("weights.bin", std::string(2 * 36, '\1'));
  ModelMaker m;
  m.input("x", {1, 3}).output("y");
  for (const char* name : {"first", "second"}) {
    onnx::TensorProto& tensor = *m.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (int i = 0; i < 2; ++i) tensor.add_dims(3);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair{"location", "weights.bin"}, {"offset", "0"}, {"length", "36"}}) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }
  m.node("MatMul", {"x", "first"}, {"h"});
  m.node("MatMul", {"h", "second"}, {"y"});
  const auto in_folder = [&] {
    return structure_of(OnnxFile::open(folder.write("m.onnx", m.bytes())));
  };
  const ModelStructure tied = in_folder();
  m.graph().mutable_initializer(1)->mutable_external_data(1)->set_value("36");
  const auto difference = first_difference(tied, in_folder());
  ASSERT_TRUE(difference);
  EXPECT_EQ(to_string(*difference), "initializer second: the same tensor as \"first\", now none");
}

// A model of which no checkpoint keeps the parts.
TEST(StructureTest, WithoutPartsTheHashTellsThatTheModelChanged) {
  ModelStructure before = structure(branched());
  before.parts.clear();
  EXPECT_FALSE(first_difference(before, structure(branched())));
  ModelMaker other = branched();
  node_named(other, "relu").set_op_type("Sigmoid");
  const auto difference = first_difference(before, structure(other));
  ASSERT_TRUE(difference);
  EXPECT_THAT(to_string(*difference),
              HasSubstr("graph, which is too large to be listed: structure of sha256 "));
}

}  // namespace
}  // namespace tandem
