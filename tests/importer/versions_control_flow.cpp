// Rows of branches, loops, sequences and optionals. The nodes are in ONNX's text form.
#include "onnx/defs/parser.h"
#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// Appends nodes, and the initializers of "<...>" before them.
std::function<void(ModelMaker&)> text(const std::string& nodes, const std::string& weights = "") {
  const std::string graph = "rows () => () " + weights + "{" + nodes + "}";
  return [graph](ModelMaker& m) {
    onnx::GraphProto parsed;
    const auto status = onnx::OnnxParser::Parse(parsed, graph.c_str());
    if (!status.IsOK()) throw std::runtime_error(status.ErrorMessage());
    m.graph().mutable_node()->MergeFrom(parsed.node());
    m.graph().mutable_initializer()->MergeFrom(parsed.initializer());
  };
}

const HostTensor one_pair() { return floats({2}, {1, -2}); }
const HostTensor three_pairs() { return floats({3, 2}, {1, 2, 3, 4, 5, 6}); }

void add_branches(Rows& all) {
  const std::string branches =
      "<then_branch = a () => (float[2] p) { p = Relu (x0) }, "
      "else_branch = b () => (float[2] q) { q = Neg (x0) }>";
  for (const bool taken : {true, false}) {
    const HostTensor y = taken ? floats({2}, {1, 0}) : floats({2}, {-1, 2});
    all.push_back(
        {.op = "If",
         .inputs = {one_pair()},
         .outputs = {y},
         .note = taken ? "known and true" : "known and false",
         .nodes = text("y0 = If (c) " + branches, taken ? "<bool c = {1}>" : "<bool c = {0}>")});
    all.push_back({.op = "If",
                   .inputs = {one_pair(), booleans({}, {taken ? 1.0 : 0.0})},
                   .outputs = {y},
                   .note = taken ? "data says true" : "data says false",
                   .nodes = text("y0 = If (x1) " + branches)});
  }
}

void add_loops(Rows& all) {
  all.push_back(
      {.op = "Loop",
       .inputs = {one_pair()},
       .outputs = {floats({2}, {8, -16}), floats({3, 2}, {2, -4, 4, -8, 8, -16})},
       .note = "a trip count",
       .nodes = text("y0, y1 = Loop (trips, , x0) <body = step (int64 i, bool go, float[2] v) => "
                     "(bool on, float[2] w, float[2] row) { on = Identity (go) w = Add (v, v) "
                     "row = Identity (w) }>",
                     "<int64 trips = {3}>")});
  all.push_back(
      {.op = "Loop",
       .inputs = {one_pair(), booleans({}, {1})},
       .outputs = {floats({2}, {2, -4})},
       .note = "data ends it",
       .nodes = text("y0 = Loop (trips, x1, x0) <body = step (int64 i, bool go, float[2] v) => "
                     "(bool on, float[2] w) { on = Not (x1) w = Add (v, v) }>",
                     "<int64 trips = {3}>")});
  const std::string body =
      "body = step (float[2] v, float[2] one) => (float[2] w, float[2] row) "
      "{ w = Add (v, one) row = Identity (w) }";
  all.push_back({.op = "Scan",
                 .first = 9,
                 .inputs = {one_pair(), three_pairs()},
                 .outputs = {floats({2}, {10, 10}), floats({3, 2}, {2, 0, 5, 4, 10, 10})},
                 .nodes = text("y0, y1 = Scan <num_scan_inputs = 1, " + body + "> (x0, x1)")});
  all.push_back({.op = "Scan",
                 .first = 9,
                 .inputs = {one_pair(), three_pairs()},
                 .outputs = {floats({2}, {10, 10}), floats({2, 3}, {10, 9, 6, 10, 8, 4})},
                 .note = "backwards",
                 .nodes = text("y0, y1 = Scan <num_scan_inputs = 1, scan_input_directions = [1], "
                               "scan_output_directions = [1], scan_output_axes = [-1], " +
                               body + "> (x0, x1)")});
  all.push_back({.op = "Scan",
                 .last = 8,
                 .inputs = {floats({1, 2}, {1, -2}), floats({1, 3, 2}, {1, 2, 3, 4, 5, 6})},
                 .outputs = {floats({1, 2}, {10, 10}), floats({1, 3, 2}, {2, 0, 5, 4, 10, 10})},
                 .note = "sample by sample",
                 .nodes = text("y0, y1 = Scan <num_scan_inputs = 1, " + body + "> (, x0, x1)")});
}

void add_sequences(Rows& all) {
  const auto add = [&](const char* op, const HostTensor& y, const std::string& nodes,
                       const std::string& note = "") {
    all.push_back({.op = op,
                   .inputs = {one_pair(), floats({2}, {3, 4})},
                   .outputs = {y},
                   .note = note,
                   .nodes = text(nodes, "<int64 first = {0}, int64 last = {-1}>")});
  };
  const std::string stack = "y0 = ConcatFromSequence <axis = 0, new_axis = 1> (s)";
  add("SequenceEmpty", integers({}, {0}),
      "e = SequenceEmpty <dtype = 1> () y0 = SequenceLength (e)");
  add("SequenceLength", integers({}, {2}),
      "p = SequenceConstruct (x0, x1) y0 = SequenceLength (p)");
  add("SequenceInsert", floats({2, 2}, {1, -2, 3, 4}),
      "p = SequenceConstruct (x0) s = SequenceInsert (p, x1) " + stack, "at the end");
  add("SequenceInsert", floats({2, 2}, {3, 4, 1, -2}),
      "p = SequenceConstruct (x0) s = SequenceInsert (p, x1, first) " + stack, "at a position");
  add("SequenceInsert", floats({2, 2}, {3, 4, 1, -2}),
      "p = SequenceConstruct (x0) s = SequenceInsert (p, x1, last) " + stack, "before the last");
  add("SequenceErase", floats({1, 2}, {1, -2}),
      "p = SequenceConstruct (x0, x1) s = SequenceErase (p) " + stack, "the last");
  add("SequenceErase", floats({1, 2}, {3, 4}),
      "p = SequenceConstruct (x0, x1) s = SequenceErase (p, first) " + stack, "at a position");
  add("SequenceMap", floats({2, 2}, {4, 2, 6, 8}),
      "p = SequenceConstruct (x0, x1) s = SequenceMap (p, x1) <body = each (float[2] one, float[2] "
      "more) => (float[2] sum) { sum = Add (one, more) }> " +
          stack);
}

void add_optionals(Rows& all) {
  const auto add = [&](const char* op, const HostTensor& y, const std::string& nodes,
                       const std::string& note = "", int first = 15) {
    all.push_back({.op = op,
                   .first = first,
                   .inputs = {one_pair()},
                   .outputs = {y},
                   .note = note,
                   .nodes = text(nodes)});
  };
  add("Optional", one_pair(), "o = Optional (x0) y0 = OptionalGetElement (o)");
  add("OptionalGetElement", one_pair(), "o = Optional (x0) y0 = OptionalGetElement (o)");
  add("OptionalHasElement", booleans({}, {1}), "o = Optional (x0) y0 = OptionalHasElement (o)",
      "a value");
  add("OptionalHasElement", booleans({}, {0}),
      "o = Optional <type = float[2]> () y0 = OptionalHasElement (o)", "none");
  add("OptionalHasElement", booleans({}, {0}), "y0 = OptionalHasElement ()", "no input", 18);
}

}  // namespace

void add_control_flow_rows(Rows& rows) {
  add_branches(rows);
  add_loops(rows);
  add_sequences(rows);
  add_optionals(rows);
}

}  // namespace tandem::testing
