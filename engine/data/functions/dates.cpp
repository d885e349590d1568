// unix_time, year, month, day, weekday, yearday, hour, minute: what a date in a column says, as a
// number. unix_time('%d.%m.%Y') reads dates of that form besides those of ISO 8601.
#include <fmt/format.h>

#include "engine/config/keys/config_keys.h"
#include "engine/data/cells/dates.h"
#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"
#include "engine/graph/text.h"

namespace tandem::functions {
namespace {

constexpr std::string_view part_names = "unix_time|year|month|day|weekday|yearday|hour|minute";

struct DatePart final : TextFunction {
  std::string name, format;
  TimePart part = TimePart::unix_time;

  explicit DatePart(Call& call) : name(call.name()) {
    const std::string usage = name + " or " + name + "('%d.%m.%Y')";
    call.count(0, 1, usage, true);
    if (call.size() == 1) {
      if (!call[0].is_text || call[0].text.find('%') == std::string::npos)
        throw std::invalid_argument("the form of the dates is a text in quotes: write " + usage);
      format = call[0].text;
    }
    for (std::size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%') continue;
      if (++i == format.size() || std::string_view("YymdHMS").find(format[i]) == std::string::npos)
        throw std::invalid_argument("the form of dates takes %Y, %y, %m, %d, %H, %M and %S");
    }
    const std::vector<std::string> names = words_of(part_names);
    while (names[static_cast<std::size_t>(part)] != name)
      part = static_cast<TimePart>(static_cast<std::size_t>(part) + 1);
  }

  bool take_text(FieldPlanner& plan) const override {
    std::string expected =
        "a number (of a time: seconds or milliseconds since 1970), or a date as ";
    expected += (format.empty() ? "" : format + " or ") + "2024-03-01 or 2024-03-01T12:30:00Z";
    plan.read_text({[p = part, form = format](std::string_view text,
                                              const CellText& cells) -> std::optional<double> {
                      const std::optional<DateTime> time = read_time(text, form, cells);
                      return time ? std::optional<double>(part_of(*time, p)) : std::nullopt;
                    },
                    "neither a number nor a date", expected,
                    [as = name](std::string_view text) {
                      const auto call = [&](const std::string& form) {
                        return as + "('" + form + "')";
                      };
                      const std::vector<std::string> forms = formats_of_date(text);
                      return forms.empty() ? "" : joined(forms, " or ", call) + " reads such dates";
                    },
                    true},
                   part != TimePart::unix_time);
    return true;
  }
  std::string decides_ids() const override {
    return format.empty() ? name : fmt::format("{}('{}')", name, format);
  }
};

}  // namespace

FieldFunctionKind dates() {
  return {.form = "unix_time, weekday, hour, year, month, day, yearday, minute",
          .words = part_names,
          .read = read_call<DatePart>,
          .of_text = true};
}

}  // namespace tandem::functions
