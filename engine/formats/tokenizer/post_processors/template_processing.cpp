// TemplateProcessing: the tokens of the template for one text.
#include "engine/formats/tokenizer/post_processors/frame_tokens.h"

namespace tandem::post_processors {
namespace {

struct Template final : Framing {
  explicit Template(const JsonItem& item) {
    bool has_text = false;
    for (const JsonItem& piece : item.at("single").list()) {
      if (const auto text = piece.find("Sequence")) {
        if (has_text || text->at("id").any_text() != "A")
          text->refuse("a template has the text once", "Sequence A");
        has_text = true;
        own.type = type_at(*text);
        continue;
      }
      const JsonItem special = piece.at("SpecialToken");
      const std::string name = special.at("id").any_text();
      const std::optional<JsonItem> known = item.at("special_tokens").find(name);
      if (!known) special.at("id").refuse("this token is not among special_tokens");
      for (const JsonItem& id : known->at("ids").list())
        (has_text ? own.behind : own.before).push_back({token_id_at(id), type_at(special)});
    }
    if (!has_text) item.at("single").refuse("a template without the text", "Sequence A");
  }

 private:
  static std::uint8_t type_at(const JsonItem& item) {
    return static_cast<std::uint8_t>(item.at("type_id").natural(0, 255));
  }
};

}  // namespace

PartKind<PostProcessor> template_processing() {
  return {"TemplateProcessing", [](const JsonItem& item) -> std::unique_ptr<const PostProcessor> {
            return std::make_unique<Template>(item);
          }};
}

}  // namespace tandem::post_processors
