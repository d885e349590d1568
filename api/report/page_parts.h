// The fixed parts of a report's page.
#pragma once

#include <string_view>

namespace tandem::api {

extern const std::string_view page_style;   // of <style>
extern const std::string_view page_script;  // of <script>: hovering, and runs that are switched off

}  // namespace tandem::api
