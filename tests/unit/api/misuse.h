// Calls that must be refused: with an rlx::Error that names what was wrong, and never as a fault of ours.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "tests/support/error_text.h"

/// The expression throws an rlx::Error whose text holds `part`.
#define REFUSED(part, ...)                                                                                 \
  do {                                                                                                     \
    const std::string refused_text = ::rlx::test::error_text([&] { (void)(__VA_ARGS__); });                \
    CHECK_MESSAGE(::rlx::test::contains(refused_text, part), #__VA_ARGS__ " gave: '", refused_text, "'");  \
    CHECK_MESSAGE(!::rlx::test::contains(refused_text, "please report"), #__VA_ARGS__ ": ", refused_text); \
  } while (false)
