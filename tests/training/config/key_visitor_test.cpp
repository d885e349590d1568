// Visits of a struct that is no part of train.toml: rows of keys, reading, writing, refusals.
#include "engine/training/config/key_visitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::drawing {

// What a newcomer writes: members, and a line for each key.
struct Square {
  static constexpr std::string_view name = "square";
  double side = 1;
  bool operator==(const Square&) const = default;
};
struct Circle {
  static constexpr std::string_view name = "circle";
  double radius = 2;
  std::optional<std::int64_t> parts;
  bool operator==(const Circle&) const = default;
};
struct Corner {
  std::string name;
  double angle = 90;
  Where where;
  bool operator==(const Corner&) const = default;
};
struct Drawing {
  std::variant<Square, Circle> kind;
  std::string title = "untitled";
  std::vector<Corner> corners, named;
  Duration every{2, Duration::Unit::steps};
  Where where;
  bool operator==(const Drawing&) const = default;
};

static void visit(KeyVisitor& v, Square& c) { v.key("side", c.side, at_least(0), "how long"); }
static void visit(KeyVisitor& v, Circle& c) {
  v.key("radius", c.radius, between(0, 10), required, "half of how wide");
  v.key("parts", c.parts, "pieces");
}
static void visit(KeyVisitor& v, Drawing& c) {
  const auto corner = [](KeyVisitor& inside, Corner& item) {
    inside.key("angle", item.angle, "in degrees");
  };
  v.place(c.where);
  v.key("kind", c.kind, required, later("star"), "the shape");
  v.of_kind(c.kind);
  v.key("title", c.title, written_if(c.title != "untitled"), "above it");
  v.tables("corners", c.corners, "one corner", corner, "all of them");
  v.named_tables("named", c.named, &Corner::name, "a corner", corner,
                 or_only("angle", number_value), "by name");
  v.key("every", c.every, "how often");
  v.later_key("colour", string_value, "of the line");
  v.when_read([&](const TableReader& table) {
    if (c.corners.size() == 1) table.report(table.where(), "corners", "one corner is none");
  });
}

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const KeyTable& keys() {
  static const std::vector<KeyInfo> rows = list_keys([](KeyVisitor& v) {
    Drawing any;
    visit(v, any);
  });
  static const KeyTable table{"drawing.toml", rows, {}, "", ""};
  return table;
}

/// What is wrong, a line each.
std::string read(const std::string& text, Drawing& to) {
  std::vector<Diagnostic> errors;
  const std::string folder = "/folder";
  ConfigValue tree = parse_toml(text, "drawing.toml", errors);
  check_config(tree, errors, keys());
  read_keys(TableReader(&tree, "", folder, errors), [&](KeyVisitor& v) { visit(v, to); });
  std::string all;
  for (const Diagnostic& error : errors) all += to_string(error) + "\n";
  return all;
}

std::string written(Drawing drawing) {
  return write_keys([&](KeyVisitor& v) { visit(v, drawing); });
}

TEST(KeyVisitor, MakesRowsOfMembersAndNotes) {
  std::vector<std::string> rows;
  for (const KeyInfo& key : keys().keys) {
    rows.push_back(std::string(key.path) + ": " + type_text(key.type) + " [" +
                   std::string(key.fallback) + "] " + std::string(key.help));
  }
  EXPECT_THAT(
      rows,
      ElementsAre("kind: string [required] the shape", "side: number [1.0] how long (square)",
                  "radius: number [] half of how wide (circle)",
                  "parts: integer [] pieces (circle)",  //
                  "title: string [\"untitled\"] above it", "corners: list [[]] all of them",
                  "corners[]: table [] one corner",
                  "corners[].angle: number [90.0] in degrees",  //
                  "named: table [] by name", "named.*: number or table [] a corner",
                  "named.*.angle: number [90.0] in degrees",
                  "every: duration [\"2 steps\"] how often", "colour: string [] of the line"));
  EXPECT_EQ(keys().find("kind")->allowed, "square|circle");
  EXPECT_EQ(keys().find("radius")->high, 10);
  EXPECT_EQ(keys().find("colour")->later, "*");
}

TEST(KeyVisitor, ReadsAndWrites) {
  Drawing drawing;
  EXPECT_EQ(read("kind = 'circle'\nradius = 3\ncorners = [{ angle = 45 }, { }]\n"
                 "[named]\n'left top' = 30\nright = { angle = 60 }\n",
                 drawing),
            "");
  const Circle* circle = std::get_if<Circle>(&drawing.kind);
  ASSERT_NE(circle, nullptr);
  EXPECT_EQ(circle->radius, 3);
  ASSERT_EQ(drawing.named.size(), 2u);
  EXPECT_EQ(drawing.named[0].name, "left top");
  EXPECT_EQ(drawing.named[0].angle, 30);
  EXPECT_EQ(drawing.named[1].where.line, 6);
  EXPECT_EQ(written(drawing),
            "kind = \"circle\"\nradius = 3.0\ncorners = [\n  { angle = 45.0 },\n  { angle = 90.0 "
            "},\n]\nevery = \"2 steps\"\n\n[named]\n\"left top\" = { angle = 30.0 }\nright = { "
            "angle = 60.0 }\n");
  Drawing again;
  EXPECT_EQ(read(written(drawing), again), "");
  EXPECT_EQ(again, drawing);
  EXPECT_EQ(written({}), "kind = \"square\"\nside = 1.0\nevery = \"2 steps\"\n");
}

TEST(KeyVisitor, RefusesWhatAKindDoesNotHave) {
  Drawing drawing;
  EXPECT_EQ(read("kind = 'square'\nradius = 1\n", drawing),
            "drawing.toml:2:10: radius: not an option of square\n");
  EXPECT_EQ(read("kind = 'circle'\n", drawing),
            "drawing.toml:1:1: radius: this key is missing: circle needs it: expected number\n");
  EXPECT_THAT(read("kind = 'star'\nside = 1\n", drawing), HasSubstr("comes in a later version"));
  EXPECT_THAT(read("kind = 'square'\nside = -1\n", drawing), HasSubstr("at least 0"));
  EXPECT_THAT(read("kind = 'square'\ncolour = 'red'\n", drawing),
              HasSubstr("colour: this key comes in a later version"));
  EXPECT_EQ(read("kind = 'square'\ncorners = [{ }]\n", drawing),
            "drawing.toml:1:1: corners: one corner is none\n");
}

}  // namespace
}  // namespace tandem::drawing
