// The processors' intrinsics. g++ 12 takes "undefined" registers of their headers for uninitialised
// variables, and warns that other ABIs pass vectors otherwise.
#pragma once

#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wpsabi"

#include <immintrin.h>
