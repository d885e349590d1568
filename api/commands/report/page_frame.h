// The fixed parts of a report's page, or of a fragment.
#pragma once

#include <string>
#include <string_view>

namespace tandem::api {

std::string page_style();                   // content of <style>
extern const std::string_view page_script;  // content of <script>: hovering, and switching runs off

/// Content in an element of its own, whose style holds in no other one.
std::string fragment(std::string_view content);

}  // namespace tandem::api
