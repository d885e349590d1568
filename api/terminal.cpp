// Text for people, as a terminal may get it.
#include "tandem/terminal.h"

#include "engine/formats/tokenizer/utf8.h"

namespace tandem::api {

std::string for_terminal(std::string_view text) { return printable(text, "\n\t"); }

}  // namespace tandem::api
