// The fixed parts of a report's page.
#pragma once

#include <string_view>

namespace tandem::api {

extern const std::string_view page_style;   // content of <style>
extern const std::string_view page_script;  // content of <script>: hovering, and switching runs off

}  // namespace tandem::api
