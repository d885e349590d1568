// The keys of [data] with kind = "images".
#include <algorithm>
#include <cmath>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/run_config.h"

namespace tandem {
namespace {

/// Height and width, or one number for both; empty: unset.
KeyForm sides(std::vector<std::int64_t>& member) {
  return {integer_value | list_value,
          [&](const Found& found) {
            std::vector<double> numbers;
            form(numbers).read(found);
            const bool is_whole = !numbers.empty() && numbers.size() <= 2 &&
                                  std::all_of(numbers.begin(), numbers.end(), [](double n) {
                                    return n >= 1 && n <= 1e6 && n == std::floor(n);
                                  });
            if (!is_whole)
              return found.report("not a size", "[ height, width ] from 1 to 1000000",
                                  describe(found.value));
            for (const double number : {numbers.front(), numbers.back()})
              member.push_back(static_cast<std::int64_t>(number));
          },
          [&] {
            std::vector<std::string> texts;
            for (const std::int64_t side : member) texts.push_back(std::to_string(side));
            return texts.empty() ? std::string() : toml_list(texts);
          }};
}

void check_images(const TableReader& table, const ImageFiles& c) {
  if (c.channels != 1 && c.channels != 3) {
    table.report(table.find("channels")->where, "channels", "out of range", "1 or 3",
                 std::to_string(c.channels));
  }
  if (!c.resize.empty() && c.resize_short > 0) {
    table.report(table.find("resize_short")->where, "resize_short",
                 "either a size or that of the shorter side", "", "both",
                 "leave data.resize or data.resize_short out");
  }
  const std::int64_t least = c.resize.empty() ? c.resize_short : std::min(c.resize[0], c.resize[1]);
  if (least > 0 && c.center_crop > least) {
    table.report(table.find("center_crop")->where, "center_crop", "larger than what is cut",
                 "at most " + std::to_string(least), std::to_string(c.center_crop));
  }
}

}  // namespace

void visit(KeyVisitor& v, ImageFiles& c) {
  v.key("labels", c.labels, by_default("(a sub-folder is a class)"), written_if(!c.labels.empty()),
        "name of a list in each folder: a line `path,label` for each picture");
  v.key("channels", c.channels, "3: colours, 1: grey");
  v.key("resize", sides(c.resize), by_default("(as the files are)"), written_if(!c.resize.empty()),
        parts("[]", integer_value, at_least(1), "height, width"),
        "height and width that every picture gets, or one number for both");
  v.key("resize_short", c.resize_short, at_least(0), by_default("(as the files are)"),
        written_if(c.resize_short > 0), "length that the shorter side gets");
  v.key("center_crop", c.center_crop, at_least(0), by_default("(all of it)"),
        written_if(c.center_crop > 0), "sides of the square in the middle that is kept then");
  v.key("scaled_decode", c.scaled_decode,
        "decode a JPEG at 1/2, 1/4 or 1/8 where that is twice the resized picture or more");
  v.key("on_bad", c.on_bad, on_bad_help);
  v.when_read([&](const TableReader& table) { check_images(table, c); });
}

}  // namespace tandem
