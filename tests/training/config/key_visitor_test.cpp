// Visits of a struct that is not part of train.toml: rows of keys, reading, writing, refusals.
#include "engine/config/keys/key_visitor.h"

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
  double gap = 0;
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
  v.key("gap", c.gap, from_below(0, 1), "part that is open");
}
static void visit(KeyVisitor& v, Drawing& c) {
  const auto corner = [](KeyVisitor& inside, Corner& item) {
    inside.key("angle", item.angle, "in degrees");
  };
  v.place(c.where);
  v.key("kind", c.kind, required, "the shape");
  v.of_kind(c.kind);
  v.key("title", c.title, written_if(c.title != "untitled"), "above it");
  v.tables("corners", c.corners, "one corner", corner, "all of them");
  v.named_tables("named", c.named, &Corner::name, "a corner", corner,
                 or_only("angle", number_value), "by name");
  v.key("every", c.every, "how often");
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

/// The errors, one a line.
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
      ElementsAre(
          "kind: string [required] the shape", "side: number [1.0] how long (square)",
          "radius: number [] half of how wide (circle)", "parts: integer [] pieces (circle)",
          "gap: number [0.0] part that is open (circle)", "title: string [\"untitled\"] above it",
          "corners: list [[]] all of them", "corners[]: table [] one corner",
          "corners[].angle: number [90.0] in degrees",  //
          "named: table [] by name", "named.*: number or table [] a corner",
          "named.*.angle: number [90.0] in degrees", "every: duration [\"2 steps\"] how often"));
  EXPECT_EQ(keys().find("kind")->allowed, "square|circle");
  EXPECT_EQ(keys().find("radius")->high, 10);
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
            "kind = \"circle\"\nradius = 3.0\ngap = 0.0\ncorners = [\n  { angle = 45.0 },\n  { "
            "angle = 90.0 "
            "},\n]\nevery = \"2 steps\"\n\n[named]\n\"left top\" = { angle = 30.0 }\nright = { "
            "angle = 60.0 }\n");
  Drawing again;
  EXPECT_EQ(read(written(drawing), again), "");
  EXPECT_EQ(again, drawing);
  EXPECT_EQ(written({}), "kind = \"square\"\nside = 1.0\nevery = \"2 steps\"\n");
}

// A page of keys lists each once, with the default of most kinds and the exceptions.
TEST(KeyVisitor, DefaultsThatDependOnTheKindAreTold) {
  const std::vector<KeyInfo> rows = list_keys([](KeyVisitor& v) {
    const auto visit_kind = [](KeyVisitor& inside, std::size_t kind) {
      double width = kind == 1 ? 5 : 2;
      inside.key("width", width, "of the line");
      if (kind != 2) inside.key("depth", width, by_default(""), kind == 0 ? "near" : "far");
    };
    v.of_kind({.names = "pen|brush|chalk", .visit = visit_kind});
  });
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].fallback, "(2.0; 5.0 for brush)");
  EXPECT_EQ(rows[0].help, "of the line");
  EXPECT_EQ(rows[1].help, "near (pen); far (brush)");
}

// A table without a kind of its own takes that of another one; keys of other kinds may pass
// silently.
TEST(KeyVisitor, KindsAreInheritedAndKeysPassedOver) {
  const auto messages = [](bool is_inherited, std::string_view refusal) {
    std::vector<Diagnostic> errors;
    const std::string folder = "/folder";
    const ConfigValue tree = parse_toml("side = 1\nradius = 2\n", "drawing.toml", errors);
    double side = 0, radius = 0;
    const auto visit_kind = [&](KeyVisitor& inside, std::size_t kind) {
      inside.key(kind == 0 ? "side" : "radius", kind == 0 ? side : radius, "how long");
    };
    read_keys(TableReader(&tree, "", folder, errors), [&](KeyVisitor& v) {
      v.of_kind({.names = "square|circle",
                 .visit = visit_kind,
                 .refusal = refusal,
                 .is_inherited = is_inherited});
    });
    EXPECT_EQ(side, is_inherited ? 1 : 0);
    EXPECT_EQ(radius, 0);
    std::string all;
    for (const Diagnostic& error : errors) all += to_string(error) + "\n";
    return all;
  };
  EXPECT_EQ(messages(false, ""), "");
  EXPECT_EQ(messages(true, ""), "drawing.toml:2:10: radius: not an option of square\n");
  EXPECT_EQ(messages(true, passed_over), "");
}

TEST(KeyVisitor, RefusesWhatAKindDoesNotHave) {
  Drawing drawing;
  EXPECT_EQ(read("kind = 'square'\nradius = 1\n", drawing),
            "drawing.toml:2:10: radius: not an option of square\n");
  EXPECT_EQ(read("kind = 'circle'\nradius = 1\ngap = 1\n", drawing),
            "drawing.toml:3:7: gap: out of range: expected below 1, got 1.0\n");
  EXPECT_EQ(read("kind = 'circle'\n", drawing),
            "drawing.toml:1:1: radius: this key is missing: circle needs it: expected number\n");
  EXPECT_THAT(read("kind = 'star'\nside = 1\n", drawing), HasSubstr("unknown value"));
  EXPECT_THAT(read("kind = 'square'\nside = -1\n", drawing), HasSubstr("at least 0"));
  EXPECT_THAT(read("kind = 'square'\ncolour = 'red'\n", drawing), HasSubstr("colour: unknown key"));
  EXPECT_EQ(read("kind = 'square'\ncorners = [{ }]\n", drawing),
            "drawing.toml:1:1: corners: one corner is none\n");
}

}  // namespace
}  // namespace tandem::drawing
