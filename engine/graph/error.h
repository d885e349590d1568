// The error form of Tandem; defined in the public headers because users of the library catch it.
#pragma once

#include "include/tandem/error.h"
