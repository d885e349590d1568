// tokens(length=128): the ids that data.tokenizer makes of a text, special ones included, cut or
// filled up to one length; give="mask" is 1 for each of them and 0 after them, give="types" their
// segments, give="targets" at each place the id that follows, -100 where none does.
#include <fmt/format.h>

#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

struct Tokens final : TextFunction {
  TokenPart part = TokenPart::ids;
  EncodeOptions encoding;

  explicit Tokens(Call& call) {
    constexpr const char* usage = "tokens(length=128)";
    if (const auto id = call.take_number("pad")) encoding.pad = whole(*id, 0, "pad");
    if (encoding.pad >= 1 << 22) throw std::invalid_argument("pad is below 4194304");
    if (const auto given = call.take_text("give")) {
      if (*given != "ids" && *given != "mask" && *given != "types" && *given != "targets")
        throw std::invalid_argument("give is 'ids', 'mask', 'types' or 'targets'");
      part = *given == "ids"     ? TokenPart::ids
             : *given == "mask"  ? TokenPart::mask
             : *given == "types" ? TokenPart::types
                                 : TokenPart::targets;
    }
    if (const auto special = call.take_number("special"))
      encoding.adds_special = whole(*special, 0, "special") != 0;
    const auto length = call.take_number("length");
    if (!length) throw std::invalid_argument(std::string("write ") + usage);
    encoding.length = whole(*length, 1, "length");
    if (encoding.length > 1 << 20) throw std::invalid_argument("length is at most 1048576");
    call.count(0, 0, usage);
  }

  bool take_text(FieldPlanner& plan) const override {
    plan.end_as_tokens(part, encoding);
    return true;
  }
  std::string decides_ids() const override {
    return fmt::format("tokens(special={}{})", encoding.adds_special ? 1 : 0,
                       encoding.pad >= 0 ? fmt::format(", pad={}", encoding.pad) : "");
  }
};

}  // namespace

FieldFunctionKind tokens() {
  return {.name = "tokens",
          .form = "tokens(length=128)",
          .read = read_call<Tokens>,
          .of_text = true,
          .gives_ids = true};
}

}  // namespace tandem::functions
